#include "haloscope/schedule/builder.hpp"

namespace haloscope {

/// The parts of `split` without its overlap: exchange, then interior, then boundary. Its extra cost over `bulk` is
/// the cost of dividing a sweep (Davis 2017, G and K: the controls of overlap).
static Program make_divided(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  const ExchangeOps exchange = b.exchange();
  const Box inner = b.interior();
  std::vector<int> done{b.first_sweep(inner, Part::inner, {exchange.ready()})};
  for (const Box& box : b.shell(inner)) done.push_back(b.first_sweep(box, Part::outer, {exchange.ready()}));
  b.later_sweeps(done, exchange);
  return b.take();
}

extern const Schedule divided_schedule{.name = "divided",
                                       .summary = "exchange, then interior and boundary apart: the control of split",
                                       .colour = "#8c6d31",
                                       .make = make_divided};

}  // namespace haloscope
