#include "haloscope/schedule/builder.hpp"

namespace haloscope {

/// One rank whose sweeps find the cells beyond an edge by wrapping around: no halos, no copies, no messages (White &
/// Dongarra 2011, version E).
Program make_resident(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  b.program().wraps = true;
  const Box all = plan.owned(0);
  std::vector<int> before;
  const int levels = b.blocked() ? options.steps : 1;
  for (int step = 0; step < options.steps; step += levels) {
    const int slot = step % 2;
    before = {b.sweep({all, all, static_cast<std::uint8_t>(1 - slot), step, levels, Part::full}, slot, before)};
    b.program().final_slot = 1 - slot;
  }
  return b.take();
}

}  // namespace haloscope
