// Kinds: ranks with equal plans.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "haloscope/error.hpp"
#include "haloscope/model/ranks.hpp"

namespace haloscope::model {

namespace {

constexpr int tags_of_stage = 1 << 20;  // messages of each stage between two ranks have separate tags

void append_stage(Kind& kind, const Layout& layout, const ExchangeSpec& spec) {
  const int stage = static_cast<int>(kind.plans.size());
  const Plan& plan = kind.plans.emplace_back(make_plan(layout, kind.members.front(), spec));
  const int rounds = stage == 0 ? 0 : kind.rounds;
  kind.first_message.push_back(static_cast<int>(kind.messages.size()));
  for (Message message : plan.messages) {
    message.round += rounds;
    message.tag += stage * tags_of_stage;
    kind.messages.push_back(std::move(message));
  }
  kind.rounds = rounds + plan.rounds;
  for (const Traffic& traffic : traffic_of_messages(plan)) kind.traffic.push_back(traffic);
}

void find_peers(Kind& kind, const Layout& layout) {
  kind.peers.resize(kind.members.size() * kind.messages.size());
  std::size_t first = 0;
  for (const Plan& plan : kind.plans) {
    const PeerOffsets offsets(layout, plan);
    for (std::size_t i = 0; i < kind.members.size(); ++i)
      offsets.peers_of(kind.members[i], kind.peers.data() + i * kind.messages.size() + first);
    first += plan.messages.size();
  }
}

/// Everything that a plan reads of its rank: its numbers of cells, and a bit for each neighbour that it has. Without
/// holes, the neighbours across faces determine all.
std::array<std::int64_t, 4> place_of(const Layout& layout, int rank) {
  const Index cells = layout.local_cells(rank);
  std::array<std::int64_t, 4> place{cells[0], cells[1], cells[2], 0};
  for (int at = 0; at < 27; ++at) {
    const std::array<int, 3> offset{at % 3 - 1, at / 3 % 3 - 1, at / 9 - 1};
    const int apart = std::abs(offset[0]) + std::abs(offset[1]) + std::abs(offset[2]);
    if (apart == 1 || (apart > 1 && layout.has_holes()))
      place[3] = 2 * place[3] + (layout.neighbour(rank, offset) >= 0);
  }
  return place;
}

}  // namespace

std::vector<int> plan_classes(const Layout& layout) {
  std::map<std::array<std::int64_t, 4>, int> known;
  std::vector<int> classes;
  for (int rank = 0; rank < layout.size(); ++rank)
    classes.push_back(known.try_emplace(place_of(layout, rank), static_cast<int>(known.size())).first->second);
  return classes;
}

PeerOffsets::PeerOffsets(const Layout& layout, const Plan& plan) : layout_(layout) {
  for (const Message& message : plan.messages) {
    if (plan.rank < 0 || plan.rank >= layout.size() || message.peer < 0 || message.peer >= layout.size())
      throw UsageError("the plan is not of this layout: it has ranks beyond its " + std::to_string(layout.size()));
    const auto from = layout.coords(plan.rank), to = layout.coords(message.peer);
    std::array<int, 3> offset{};
    for (int d = 0; d < 3; ++d) offset[d] = to[d] - from[d] + layout.ranks()[d];
    offsets_.push_back(offset);
  }
}

void PeerOffsets::peers_of(int rank, int* peers) const {
  const auto from = layout_.coords(rank);
  for (const auto& offset : offsets_) {
    std::array<int, 3> at{};
    for (int d = 0; d < 3; ++d) at[d] = (from[d] + offset[d]) % layout_.ranks()[d];
    *peers++ = layout_.rank_at(at);
  }
}

std::span<const Traffic> Kind::traffic_of(int stage) const {
  const auto first = static_cast<std::size_t>(first_message[stage]);
  return {traffic.data() + first, static_cast<std::size_t>(first_message[stage + 1]) - first};
}

Kinds kinds_of(const Layout& layout, const std::vector<ExchangeSpec>& specs) {
  const std::vector<int> classes = plan_classes(layout);
  Kinds kinds;
  for (int rank = 0; rank < layout.size(); ++rank) {
    if (classes[rank] == static_cast<int>(kinds.size())) kinds.emplace_back();
    kinds[classes[rank]].members.push_back(rank);
  }
  for (Kind& kind : kinds) {
    for (const ExchangeSpec& spec : specs) append_stage(kind, layout, spec);
    kind.first_message.push_back(static_cast<int>(kind.messages.size()));
    find_peers(kind, layout);
  }
  return kinds;
}

}  // namespace haloscope::model
