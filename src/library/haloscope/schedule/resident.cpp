#include "haloscope/choice.hpp"
#include "haloscope/schedule/builder.hpp"

namespace haloscope {

/// Runs one rank whose sweeps read the cells beyond an edge by wrapping around: no halos, no copies, no messages
/// (White & Dongarra 2011, version E).
static Program make_resident(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  b.program().wraps = true;
  const Box all = plan.own_cells();
  std::vector<int> before;
  const int levels = b.blocked() ? options.steps : 1;
  for (int step = 0; step < options.steps; step += levels) {
    const int slot = step % 2;
    before = {b.sweep({.region = all,
                       .valid = all,
                       .into = static_cast<std::uint8_t>(1 - slot),
                       .step = step,
                       .levels = levels,
                       .whole = all},
                      slot, before)};
    b.program().final_slot = 1 - slot;
  }
  return b.take();
}

namespace {

std::string refuse_neighbours(const Candidate& c) {
  if (c.choice.ranks == 1) return "";
  return "schedule 'resident' keeps the whole grid on one device and exchanges nothing; use --ranks 1, or bulk or "
         "streams";
}

}  // namespace

extern const Schedule resident_schedule{.name = "resident",
                                        .summary = "one rank on a device: sweeps wrap around, nothing is exchanged",
                                        .colour = "#72b7b2",
                                        .make = make_resident,
                                        .on_host = false,
                                        .on_device = true,
                                        .blocked = true,
                                        .computes_on_host = false,
                                        .one_sweep = true,
                                        .illegal = refuse_neighbours};

}  // namespace haloscope
