#include "haloscope/schedule/builder.hpp"

namespace haloscope {

/// One thread packs, communicates and unpacks, then joins the others, who sweep the interior from the start under
/// guided or dynamic sharing; the boundary follows (White & Dongarra 2011, version D; Davis 2017, K and L).
Program make_comm_thread(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  const ExchangeOps exchange = b.exchange();
  const Box inner = b.interior();
  std::vector<int> done{b.first_step(inner, Part::inner, {exchange.local})};
  for (const Box& box : b.shell(inner)) done.push_back(b.first_step(box, Part::outer, {exchange.ready()}));
  b.later_steps(done, exchange);
  b.program().comm_thread = true;
  b.program().sharing = options.sharing;
  return b.take();
}

}  // namespace haloscope
