#include "haloscope/schedule/builder.hpp"

namespace haloscope {

/// Sweeps the interior on one stream of a device; packing, copies, messages and then the boundary run concurrently on
/// another (White & Dongarra 2011, version G; Valen 2023, overlapped).
static Program make_streams(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  const ExchangeOps exchange = b.exchange();
  const Box inner = b.interior(b.blocked() ? options.steps : 1);
  std::vector<int> done{
      b.first_sweep(inner, Part::inner, {exchange.local, options.pack_first ? exchange.first_packed : -1})};
  for (const Box& box : b.shell(inner)) done.push_back(b.first_sweep(box, Part::outer, {exchange.ready()}));
  b.later_sweeps(done, exchange);
  return b.take();
}

extern const Schedule streams_schedule{
    .name = "streams",
    .summary = "device: interior on one stream; packing, copies, messages and boundary concurrently",
    .colour = "#e4894b",
    .make = make_streams,
    .options = {"pack"},
    .on_host = false,
    .on_device = true,
    .blocked = true,
    .computes_on_host = false};

}  // namespace haloscope
