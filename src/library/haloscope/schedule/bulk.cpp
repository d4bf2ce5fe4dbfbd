#include "haloscope/schedule/builder.hpp"

namespace haloscope {

/// Nothing overlaps: exchange, then every sub-step (White & Dongarra 2011, version B; Valen 2023, phased).
static Program make_bulk(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  const ExchangeOps exchange = b.exchange();
  const Box all = b.blocked() ? plan.own_cells() : b.region();
  const int first = b.first_sweep(all, Part::full, {exchange.ready()});
  b.later_sweeps({first}, exchange);
  return b.take();
}

extern const Schedule bulk_schedule{.name = "bulk",
                                    .summary = "exchange, then compute; nothing overlaps",
                                    .colour = "#4c78a8",
                                    .make = make_bulk,
                                    .plain = true,
                                    .on_device = true,
                                    .blocked = true};

}  // namespace haloscope
