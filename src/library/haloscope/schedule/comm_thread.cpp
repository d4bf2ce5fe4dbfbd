#include "haloscope/choice.hpp"
#include "haloscope/schedule/builder.hpp"

namespace haloscope {

/// Makes one thread pack, communicate and unpack, then join the others, which sweep the interior from the start with
/// guided or dynamic sharing; the boundary follows (White & Dongarra 2011, version D; Davis 2017, K and L).
static Program make_comm_thread(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  const ExchangeOps exchange = b.exchange();
  const Box inner = b.interior();
  std::vector<int> done{b.first_sweep(inner, Part::inner, {exchange.local})};
  for (const Box& box : b.shell(inner)) done.push_back(b.first_sweep(box, Part::outer, {exchange.ready()}));
  b.later_sweeps(done, exchange);
  b.program().comm_thread = true;
  b.program().sharing = options.sharing;
  return b.take();
}

namespace {

std::string refuse_one_thread(const Candidate& c) {
  if (c.choice.threads >= 2) return "";
  return "schedule 'comm-thread' needs one thread to communicate and at least one to compute; use --threads 2 or more";
}

}  // namespace

extern const Schedule comm_thread_schedule{.name = "comm-thread",
                                           .summary = "one thread communicates while the others compute the interior",
                                           .colour = "#b279a2",
                                           .make = make_comm_thread,
                                           .options = {"sharing"},
                                           .illegal = refuse_one_thread};

}  // namespace haloscope
