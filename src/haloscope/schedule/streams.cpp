#include "haloscope/schedule/builder.hpp"

namespace haloscope {

/// The interior on one stream of a device; packing, copies, messages and then the boundary beside it on another (White
/// & Dongarra 2011, version G; Valen 2023, overlapped).
Program make_streams(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  const ExchangeOps exchange = b.exchange();
  const Box inner = b.interior(b.blocked() ? options.steps : 1);
  std::vector<int> done{
      b.first_step(inner, Part::inner, {exchange.local, options.pack_first ? exchange.first_packed : -1})};
  for (const Box& box : b.shell(inner)) done.push_back(b.first_step(box, Part::outer, {exchange.ready()}));
  b.later_steps(done, exchange);
  return b.take();
}

}  // namespace haloscope
