#include "haloscope/schedule/builder.hpp"

namespace haloscope {

/// Nothing overlaps: exchange, then every sub-step (White & Dongarra 2011, version B; Valen 2023, phased).
Program make_bulk(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  const ExchangeOps exchange = b.exchange();
  const Box all = b.blocked() ? plan.owned(0) : b.region(0);
  const int first = b.first_step(all, Part::full, {exchange.ready()});
  b.later_steps({first}, exchange);
  return b.take();
}

}  // namespace haloscope
