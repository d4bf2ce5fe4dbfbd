#include "haloscope/choice.hpp"
#include "haloscope/schedule/builder.hpp"

namespace haloscope {

/// Divides the interior into one slab per round, with slab r between the sends and the waits of round r (White &
/// Dongarra 2011, version C).
static Program make_interleaved(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  const ExchangeOps exchange = b.exchange();
  const Box inner = b.interior();
  const int d = plan.dims - 1;
  std::vector<int> done;
  for (int r = 0; r < plan.rounds; ++r) {
    Box slab = inner;
    slab.lo[d] = inner.lo[d] + inner.extent(d) * r / plan.rounds;
    slab.hi[d] = inner.lo[d] + inner.extent(d) * (r + 1) / plan.rounds;
    const int swept = b.first_sweep(slab, Part::inner, {exchange.sent[r], exchange.local});
    done.push_back(swept);
    // A wait whose slab comes first in time, though later in the list: the comm lane stops until the slab is swept.
    if (swept >= 0 && exchange.received[r] != exchange.sent[r]) b.ops()[b.wait_of(r)].after.push_back(swept);
  }
  for (const Box& box : b.shell(inner)) done.push_back(b.first_sweep(box, Part::outer, {exchange.ready()}));
  b.later_sweeps(done, exchange);
  return b.take();
}

namespace {

std::string refuse_rounds(const Candidate& c) {
  if (c.choice.strategy.fields == Merge::pipelined)
    return "schedule 'interleaved' works between the sends and the waits of a round, where fields=pipelined starts the "
           "next one; use fields=serial or --schedule split";
  if (c.choice.strategy.pattern == Pattern::ordered) return "";
  return "schedule 'interleaved' works between the rounds of an ordered pattern, and 'direct' has one round; use "
         "'ordered/...' or --schedule split";
}

}  // namespace

extern const Schedule interleaved_schedule{
    .name = "interleaved",
    .summary = "interior in slabs between the sends and waits of an ordered pattern's rounds",
    .colour = "#54a27a",
    .make = make_interleaved,
    .illegal = refuse_rounds};

}  // namespace haloscope
