// What models need of plans: how messages and copies lie in memory, and the peers of ranks with equal plans.
#include "haloscope/model/traffic.hpp"

#include "haloscope/c/bridge.hpp"
#include "haloscope/model/ranks.hpp"

using namespace haloscope;
using namespace haloscope::c;

namespace {

/// One of several. @throws UsageError for a number that there is not.
const auto& pick(const auto& all, std::int32_t number, const char* name) {
  return all[enumerator<std::size_t>(number, static_cast<int>(all.size()), name)];
}

hs_traffic to_c(const model::Traffic& traffic) { return {traffic.bytes, traffic.run_bytes, traffic.in_place, 0}; }

}  // namespace

hs_status hs_plan_traffic(const hs_plan* plan, int32_t message, hs_traffic* traffic) {
  return guarded([&] {
    const auto all = model::traffic_of_messages(needed(plan, "plan").plan);
    needed(traffic, "traffic") = to_c(pick(all, message, "message"));
  });
}

hs_status hs_program_traffic(const hs_program* program, const hs_plan* plan, int32_t copy_set, hs_traffic* traffic) {
  return guarded([&] {
    const auto all = model::traffic_of_copies(needed(program, "program").program, needed(plan, "plan").plan);
    needed(traffic, "traffic") = to_c(model::together(pick(all, copy_set, "copy set")));
  });
}

hs_status hs_plan_peers(const hs_layout* layout, const hs_plan* plan, int32_t count, const int32_t* ranks,
                        int32_t* peers) {
  return guarded([&] {
    const Layout& l = needed(layout, "layout").layout;
    const Plan& p = needed(plan, "plan").plan;
    check_rank(l, p.rank);
    const model::PeerOffsets offsets(l, p);
    for (int32_t i = 0; i < count; ++i) {
      check_rank(l, (&needed(ranks, "ranks"))[i]);
      offsets.peers_of(ranks[i], &needed(peers, "peers") + i * static_cast<std::ptrdiff_t>(p.messages.size()));
    }
  });
}
