#include "haloscope/extend/plan.hpp"

#include <algorithm>
#include <map>

#include "haloscope/core/bounds.hpp"
#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

/// Returns the number of a direction of travel, 0..26; 13 is "nowhere" and serves as the tag of messages merged per
/// peer.
int direction_number(const Offset& v) { return (v[0] + 1) + 3 * (v[1] + 1) + 9 * (v[2] + 1); }

/// Makes a round per dimension. A reverse plan undoes the rounds of an exchange from the last to the first.
std::vector<Round> make_ordered_rounds(const Plan& plan) {
  const ExchangeSpec& spec = plan.spec;
  std::array<int, 3> order = spec.order;
  if (spec.reverse()) std::reverse(order.begin(), order.end());
  std::vector<Round> rounds;
  std::array<bool, 3> done{};
  for (int d : order) {
    if (d >= plan.dims) continue;
    Round round;
    round.with_halo = spec.corners ? done : std::array<bool, 3>{};
    round.number = static_cast<int>(2 * rounds.size());
    for (int side : {-1, +1}) {
      Offset v{};
      v[d] = side;
      round.directions.push_back(v);
    }
    rounds.push_back(round);
    done[d] = true;
  }
  if (spec.reverse()) std::reverse(rounds.begin(), rounds.end());
  return rounds;
}

/// Makes one round of all directions. @param max_moves maximum number of dimensions that a direction moves in.
Round make_direct_round(const Plan& plan, int max_moves) {
  Round all;
  for (int z = -1; z <= 1; ++z)
    for (int y = -1; y <= 1; ++y)
      for (int x = -1; x <= 1; ++x) {
        const int moves = (x != 0) + (y != 0) + (z != 0);
        if (moves == 0 || moves > max_moves) continue;
        if ((y != 0 && plan.dims < 2) || (z != 0 && plan.dims < 3)) continue;
        all.directions.push_back({x, y, z});
      }
  return all;
}

/// Returns true if several ranks, or both ends of a periodic dimension, hold a plane of some quantity; equal on all
/// ranks.
bool has_common_planes(const Plan& plan) {
  for (const Quantity& q : plan.spec.quantities)
    for (int d = 0; d < plan.dims; ++d)
      if (staggered(q.centring, d) != 0 && (plan.split[d] || plan.own_neighbour[d])) return true;
  return false;
}

std::vector<Round> make_rounds_of_all(const Plan& plan) {
  const ExchangeSpec& spec = plan.spec;
  if (spec.motion == Motion::share) return {make_direct_round(plan, 3)};
  std::vector<Round> rounds = spec.pattern == Pattern::ordered
                                  ? make_ordered_rounds(plan)
                                  : std::vector{make_direct_round(plan, spec.corners ? 3 : 1)};
  if (spec.reverse() && has_common_planes(plan)) {
    int ways = 0;
    for (const Round& round : rounds) ways += static_cast<int>(round.directions.size());
    rounds.push_back(make_direct_round(plan, 3));
    rounds.back().number = ways;
    rounds.back().planes = true;
  }
  return rounds;
}

/// Makes the rounds of each quantity, where quantities have separate rounds, in the order of place_of().
std::vector<Round> make_rounds(const Plan& plan) {
  const std::vector<Round> of_all = make_rounds_of_all(plan);
  if (!apart(plan.spec.merge)) return of_all;
  const std::size_t fields = plan.spec.quantities.size(), steps = of_all.size();
  std::vector<Round> rounds(fields * steps);
  for (std::size_t q = 0; q < fields; ++q)
    for (std::size_t step = 0; step < steps; ++step) {
      Round& round = rounds[plan.spec.merge == Merge::serial ? q * steps + step : step * fields + q] = of_all[step];
      round.fields = {static_cast<int>(q)};
    }
  return rounds;
}

/// Returns quantities that share a message of a round, as groups of quantity numbers; empty groups are not sent in
/// it.
std::vector<std::vector<int>> groups_of_round(const ExchangeSpec& spec, const Round& round) {
  if (round.fields.empty()) return message_groups(spec.quantities, spec.merge);
  std::vector<std::vector<int>> groups(spec.quantities.size());
  for (const int q : round.fields) groups[q] = {q};
  return groups;
}

/// Returns the points of quantity q that a message moves along v, in the coordinates of this rank.
std::vector<Box> boxes_moved(const Plan& plan, const Layout& layout, const Round& round, int q, const Offset& v,
                             const Message& message) {
  if (plan.spec.motion != Motion::share) return {region_box(plan, round, q, v, message.out != plan.spec.reverse())};
  const int holder = message.out ? message.peer : plan.rank;
  std::vector<Box> boxes = shared_boxes(layout, holder, plan.spec.quantities[q], opposite(v));
  Index shift{0, 0, 0};  // from the holder's coordinates
  for (int d = 0; d < 3 && message.out; ++d)
    shift[d] = v[d] < 0 ? -layout.local_cells(holder)[d] : v[d] > 0 ? plan.cells[d] : 0;
  for (Box& box : boxes) box = shifted(box, shift);
  return boxes;
}

/// Adds the regions of a message. In a reverse plan halos are sent, and arrive in separate quantities.
void add_regions(Message& message, const Plan& plan, const Layout& layout, const Round& round,
                 const std::vector<int>& group, int way) {
  const bool lands = plan.spec.reverse() && !message.out;
  for (int q : group)
    for (const Box& box : boxes_moved(plan, layout, round, q, round.directions[way], message)) {
      if (box.empty()) continue;
      message.regions.push_back(lands ? Region{landing_of(plan, round.number + way, q), at_origin(box)}
                                      : Region{q, box});
      message.bytes += box.volume() * plan.spec.quantities[q].element_bytes;
    }
}

/// Adds the messages of one round in one direction of transfer. Regions are listed by direction of travel at both
/// ends.
void add_messages(Plan& plan, const Layout& layout, const Round& round, int number, bool out) {
  const auto groups = groups_of_round(plan.spec, round);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::map<int, std::size_t> of_peer;  // merge_peers: peer -> place in plan.messages
    for (int way = 0; way < static_cast<int>(round.directions.size()); ++way) {
      const Offset& v = round.directions[way];
      const int peer = layout.neighbour(plan.rank, out != plan.spec.reverse() ? v : opposite(v));
      if (peer < 0 || peer == plan.rank) continue;
      if (plan.spec.merge_peers && of_peer.contains(peer)) {
        add_regions(plan.messages[of_peer[peer]], plan, layout, round, groups[g], way);
        continue;
      }
      Message message{.out = out, .peer = peer, .tag = 0, .round = number, .regions = {}, .bytes = 0};
      message.tag = static_cast<int>(g + (round.planes ? groups.size() : 0)) * 27 +
                    (plan.spec.merge_peers ? 13 : direction_number(v));
      add_regions(message, plan, layout, round, groups[g], way);
      of_peer[peer] = plan.messages.size();
      plan.messages.push_back(message);
    }
  }
  std::erase_if(plan.messages, [](const Message& m) { return m.bytes == 0; });
}

void add_copies(Plan& plan, const Layout& layout, const Round& round, int number) {
  for (int q = 0; q < static_cast<int>(plan.spec.quantities.size()); ++q)
    for (const Offset& v : round.directions) {
      if (!round.fields.empty() && q != round.fields.front()) continue;
      if (layout.neighbour(plan.rank, opposite(v)) != plan.rank) continue;
      for (const Box& box : boxes_moved(plan, layout, round, q, v, {})) {
        Copy copy{.quantity = q, .round = number, .to = box};
        for (int d = 0; d < 3; ++d) copy.shift[d] = v[d] * plan.cells[d];
        if (!copy.to.empty()) plan.copies.push_back(copy);
      }
    }
}

/// Adds copies for the ghost layers of a field beyond edges, in order: each is filled from an inner one. Goes dimension
/// by dimension, so that layers beyond an edge of two or three dimensions are filled from ghost points.
void add_edges_of(Plan& plan, int q) {
  const ExchangeSpec& spec = plan.spec;
  for (int d = 0; d < plan.dims; ++d) {
    const Quantity& quantity = spec.quantities[q];
    const ExchangeSpec::Sides sides = spec.sides_of(q);
    const Box points = grown(plan.owned(q), sides.rows_low, sides.rows_high);
    Copy copy{.quantity = q, .round = plan.rounds, .to = points};
    for (int e = 0; e < plan.dims && spec.corners; ++e) {
      if (e == d) continue;
      const auto filled = [&](int side) {
        return plan.has_neighbour[e][side] || (e < d && plan.edge(q, e, side) != Edge::fixed);
      };
      if (filled(0)) copy.to.lo[e] -= sides.low[e];
      if (filled(1)) copy.to.hi[e] += sides.high[e];
    }
    const int on_edge = staggered(quantity.centring, d);
    for (const int side : {0, 1}) {
      const Edge edge = plan.edge(q, d, side);
      if (edge == Edge::fixed) continue;
      const int layers = side == 0 ? sides.low[d] : sides.high[d];
      copy.negate = edge == Edge::odd;
      for (int layer = 1; layer <= layers; ++layer) {
        copy.to.lo[d] = side == 0 ? -layer : plan.owned(q).hi[d] + layer - 1;
        copy.to.hi[d] = copy.to.lo[d] + 1;
        copy.shift[d] = (1 - 2 * side) * (edge == Edge::nearest ? layer : 2 * layer - 1 + on_edge);
        plan.copies.push_back(copy);
      }
      copy.shift[d] = 0;
    }
  }
}

void add_edges(Plan& plan) {
  if (plan.own_cells().empty()) return;
  for (int q = 0; q < fields_in(plan.spec); ++q) add_edges_of(plan, q);
}

/// Returns the bytes of all ranks' fields, halos included.
double field_bytes(const Layout& layout, const ExchangeSpec& spec) {
  double sum = 0;
  for (int q = 0; q < static_cast<int>(spec.quantities.size()); ++q) {
    double bytes = spec.quantities[q].element_bytes;
    for (int d = 0; d < layout.dims(); ++d)
      bytes *=
          double(layout.grid().cells[d]) + double(layout.ranks()[d]) * (1.0 + spec.low_of(q)[d] + spec.high_of(q)[d]);
    sum += bytes;
  }
  return sum;
}

/// @throws UsageError for a request that halos wider than blocks exclude.
void check_beyond(const Layout& layout, const ExchangeSpec& spec) {
  if (!spec.beyond || !is_beyond(layout, spec)) return;
  const auto refuse = [](const std::string& fault) {
    throw UsageError("a halo is wider than a block that it is filled from, which excludes " + fault +
                     "; use fewer layers, fewer ranks in that dimension, or a larger grid");
  };
  if (spec.reverse()) refuse("accumulations");
  constexpr std::int64_t most_turns = 100;
  for (int d = 0; d < layout.dims(); ++d)
    for (int q = 0; q < static_cast<int>(spec.quantities.size()); ++q)
      if (const int width = std::max(spec.low_of(q)[d], spec.high_of(q)[d]);
          layout.grid().periodic[d] && width > most_turns * layout.grid().cells[d])
        throw UsageError("a halo of " + std::to_string(width) + " layers in " + std::string(1, "xyz"[d]) +
                         " goes around " + std::to_string(layout.grid().cells[d]) + " cells more than " +
                         std::to_string(most_turns) + " times; use fewer layers");
  for (int q = 0; q < static_cast<int>(spec.quantities.size()); ++q) {
    const ExchangeSpec::Sides sides = spec.sides_of(q);
    const Quantity& quantity = spec.quantities[static_cast<std::size_t>(q)];
    if (quantity.fills_edges() && !fills_only_fold(layout.grid(), quantity)) refuse("filled edges");
    if (sides.rows_low != Widths{} || sides.rows_high != Widths{}) refuse("ghost rows");
  }
}

/// @throws UsageError for more layers than inner points that they mirror.
void check_mirrors(const Layout& layout, const ExchangeSpec& spec) {
  for (int q = 0; q < static_cast<int>(spec.quantities.size()); ++q)
    for (int d = 0; d < layout.dims(); ++d)
      for (const int side : {0, 1}) {
        const Quantity& quantity = spec.quantities[static_cast<std::size_t>(q)];
        const Edge edge = quantity.edges[d].of(side);
        const int layers = (side == 0 ? spec.low_of(q) : spec.high_of(q))[d];
        const bool folded = layout.grid().fold != Fold::none && layout.grid().meets_itself(d, side);
        if ((edge != Edge::even && edge != Edge::odd) || layout.grid().periodic[d] || folded ||
            layers <= layout.smallest_extent(d))
          continue;
        throw UsageError("field '" + quantity.name + "' mirrors " + std::to_string(layers) + " layers in " +
                         std::string(1, "xyz"[d]) + ", and the smallest block there has " +
                         std::to_string(layout.smallest_extent(d)) + " cells; use fewer layers, or edge nearest");
      }
}

/// @throws UsageError for fields, widths or an order of dimensions that no grid allows. Other checks rely on this one.
void check_fields(const ExchangeSpec& spec) {
  if (spec.quantities.empty()) throw UsageError("an exchange needs at least one field");
  if (!spec.widths.empty() && spec.widths.size() != spec.quantities.size())
    throw UsageError("an exchange of " + std::to_string(spec.quantities.size()) + " fields has widths for " +
                     std::to_string(spec.widths.size()) + "; give them for each field, or for none");
  for (const Quantity& q : spec.quantities)
    if (q.element_bytes < 1)
      throw UsageError("field '" + q.name + "' has elements of " + std::to_string(q.element_bytes) +
                       " bytes; use at least 1");
  for (const Quantity& q : spec.quantities)
    if (std::any_of(q.edges.begin(), q.edges.end(),
                    [](const Edges& e) { return e.low == Edge::odd || e.high == Edge::odd; }) &&
        (q.type == ScalarType::integer || (q.element_bytes != 4 && q.element_bytes != 8) ||
         (q.number_bytes != 0 && q.number_bytes != q.element_bytes)))
      throw UsageError("field '" + q.name + "' has an odd edge, and only reals of 4 or 8 bytes can be negated");
  std::array<int, 3> order = spec.order;
  std::sort(order.begin(), order.end());
  if (order != std::array<int, 3>{0, 1, 2}) throw UsageError("the dimension order must name 0, 1 and 2 once each");
}

/// @throws UsageError for corners next to a hole that an exchange cannot fill.
void check_corners_next_to_holes(const Layout& layout, const ExchangeSpec& spec) {
  if (!layout.has_holes() || !spec.corners || layout.dims() < 2) return;
  if (spec.pattern == Pattern::ordered && !layout.grid().meets_itself())
    throw UsageError(
        "an ordered exchange cannot fill corners next to a hole of the grid, since they travel through its "
        "place; use a direct strategy, or corners = false");
  for (const Quantity& q : spec.quantities)
    if (q.fills_edges())
      throw UsageError("field '" + q.name +
                       "' has an edge that exchanges fill, which excludes corners next to a hole of the "
                       "grid; use corners = false, or fixed edges");
}

/// @throws UsageError for layers of a dimension that are negative, or more than a block has cells.
void check_layers(const Layout& layout, const ExchangeSpec& spec, int d) {
  int width = 0;
  for (int q = 0; q < static_cast<int>(spec.quantities.size()); ++q) {
    const ExchangeSpec::Sides sides = spec.sides_of(q);
    const int low = sides.low[d], high = sides.high[d];
    if (std::min({low, high, sides.rows_low[d], sides.rows_high[d]}) < 0)
      throw UsageError("a halo width is negative; use 0 or more layers");
    if (std::max(low, high) > 0 && std::max(sides.rows_low[d], sides.rows_high[d]) > 0)
      throw UsageError("field '" + spec.quantities[static_cast<std::size_t>(q)].name +
                       "' has a halo and ghost rows in " + std::string(1, "xyz"[d]) +
                       "; an exchange fills the layers of a dimension or carries them along");
    width = std::max({width, low, high});
  }
  const bool meets = layout.grid().meets_itself(d, 0) || layout.grid().meets_itself(d, 1);
  const bool exchanged = layout.grid().periodic[d] || layout.ranks()[d] > 1 || meets ||
                         std::any_of(spec.quantities.begin(), spec.quantities.end(),
                                     [&](const Quantity& q) { return q.edges[d] != Edge::fixed; });
  if (exchanged && width > layout.smallest_extent(d) && !spec.beyond)
    throw UsageError("a halo of " + std::to_string(width) + " layers in " + std::string(1, "xyz"[d]) +
                     " is wider than the smallest block it is filled from (" +
                     std::to_string(layout.smallest_extent(d)) +
                     " cells); reduce the depth, use fewer ranks in that dimension, or a larger grid");
}

void check_spec(const Layout& layout, const ExchangeSpec& spec) {
  check_fields(spec);
  check_mirrors(layout, spec);
  check_meetings(layout, spec);
  check_corners_next_to_holes(layout, spec);
  for (int d = 0; d < layout.dims(); ++d) check_layers(layout, spec, d);
  if (field_bytes(layout, spec) > bound.count.most)
    throw UsageError(
        "fields of more than 10^18 bytes are not possible; use fewer cells, narrower halos or fewer fields");
}

}  // namespace

std::vector<std::vector<int>> message_groups(const std::vector<Quantity>& quantities, Merge merge) {
  std::vector<std::vector<int>> groups;
  std::map<int, std::size_t> place;
  for (int q = 0; q < static_cast<int>(quantities.size()); ++q) {
    const int key = merge == Merge::all ? 0 : merge == Merge::none ? q : static_cast<int>(quantities[q].type);
    const auto [it, fresh] = place.try_emplace(key, groups.size());
    if (fresh) groups.emplace_back();
    groups[it->second].push_back(q);
  }
  return groups;
}

bool is_beyond(const Layout& layout, const ExchangeSpec& spec) {
  for (int d = 0; d < layout.dims(); ++d)
    for (int q = 0; q < static_cast<int>(spec.quantities.size()); ++q)
      if ((layout.grid().periodic[d] || layout.ranks()[d] > 1) &&
          std::max(spec.low_of(q)[d], spec.high_of(q)[d]) > layout.smallest_extent(d))
        return true;
  return false;
}

bool fills(const Layout& layout, int rank, int d, int side, bool corners) {
  Offset v{};
  v[d] = 2 * side - 1;
  return corners || layout.meets_itself(rank, d, side) ? layout.has_neighbour(rank, d, side)
                                                       : layout.neighbour(rank, v) >= 0;
}

Box region_box(const Plan& plan, const Round& round, int q, const Offset& v, bool source) {
  const ExchangeSpec& spec = plan.spec;
  const ExchangeSpec::Sides sides = round.planes ? ExchangeSpec::Sides{} : spec.sides_of(q);
  Box box;
  for (int d = 0; d < 3; ++d) {
    const std::int64_t n = plan.cells[d], low = sides.low[d], high = sides.high[d];
    const int s = d < plan.dims ? staggered(spec.quantities[q].centring, d) : 0;
    const std::int64_t plane = round.planes ? s : 0;
    if (v[d] == 0) {
      box.lo[d] = -(round.with_halo[d] && plan.has_neighbour[d][0] ? low : 0) - sides.rows_low[d];
      box.hi[d] = n + s + (round.with_halo[d] && plan.has_neighbour[d][1] ? high : 0) + sides.rows_high[d];
    } else if (v[d] > 0) {  // fills the receiver's low halo
      box.lo[d] = source ? n - low : -low;
      box.hi[d] = (source ? n : 0) + plane;
    } else {  // fills the receiver's high halo
      box.lo[d] = (source ? s : n + s) - plane;
      box.hi[d] = box.lo[d] + plane + high;
    }
  }
  return box;
}

Box Plan::owned(int q) const {
  Box box;
  const Index& n = block_of(q).cells;
  if (n == Index{}) return box;
  for (int d = 0; d < 3; ++d) {
    box.lo[d] = 0;
    box.hi[d] = n[d] + (d < dims ? staggered(spec.quantities[q].centring, d) : 0);
  }
  return box;
}

Edge Plan::edge(int q, int d, int side) const {
  return block_of(q).at_edge[d][side] ? spec.quantities[q].edges[d].of(side) : Edge::fixed;
}

Box Plan::allocated(int q) const { return grown(owned(q), spec.low_of(q), spec.high_of(q)); }

std::int64_t Plan::bytes_out() const {
  std::int64_t sum = 0;
  for (const Message& m : messages) sum += m.out ? m.bytes : 0;
  return sum;
}

std::int64_t Plan::bytes_between(const std::vector<int>& group) const {
  std::int64_t sum = 0;
  for (const Message& m : messages)
    if (m.out && group[m.peer] != group[rank]) sum += m.bytes;
  return sum;
}

int Plan::messages_out() const {
  return static_cast<int>(std::count_if(messages.begin(), messages.end(), [](const Message& m) { return m.out; }));
}

Plan make_plan(const Layout& layout, int rank, const ExchangeSpec& request) {
  const ExchangeSpec spec = as_requested(request);
  if (spec.motion == Motion::redistribute) {
    check_spec(layout.by_block(), spec);
    return make_redistribution_plan(layout, rank, spec);
  }
  if (layout.has_several_blocks()) return make_plan_of_blocks(layout, rank, spec);
  check_spec(layout, spec);
  check_beyond(layout, spec);
  Plan plan;
  plan.rank = rank;
  plan.dims = layout.dims();
  plan.cells = layout.local_cells(rank);
  plan.spec = spec;
  if (spec.reverse()) plan.spec.order = {2, 1, 0};  // one order of additions for all strategies
  if (spec.motion != Motion::fill && apart(spec.merge)) plan.spec.merge = Merge::none;
  if (spec.motion == Motion::share) plan.spec.pattern = Pattern::direct;  // directions need no order
  for (const ExchangeSpec::Sides& sides : spec.widths)
    for (int d = 0; d < 3; ++d) {
      if (&sides == &spec.widths.front()) plan.spec.low[d] = plan.spec.high[d] = 0;
      plan.spec.low[d] = std::max(plan.spec.low[d], sides.low[d]);
      plan.spec.high[d] = std::max(plan.spec.high[d], sides.high[d]);
    }
  for (int d = 0; d < 3; ++d) {
    if (d >= plan.dims) {
      plan.spec.low[d] = plan.spec.high[d] = 0;
      for (ExchangeSpec::Sides& sides : plan.spec.widths)
        sides.low[d] = sides.high[d] = sides.rows_low[d] = sides.rows_high[d] = 0;
      continue;
    }
    for (int side : {0, 1}) {
      plan.at_edge[d][side] = layout.is_at_edge(rank, d, side);
      plan.has_neighbour[d][side] = fills(layout, rank, d, side, spec.corners);
      plan.joined[d][side] = layout.grid().meets_itself(d, side);
    }
    plan.split[d] = layout.ranks()[d] > 1;
    plan.own_neighbour[d] = layout.grid().periodic[d] && layout.ranks()[d] == 1;
  }
  if (const bool beyond = is_beyond(layout, plan.spec); beyond || plan.meets_itself()) {
    add_wide_halos(plan, layout);
    if (!beyond) add_edges(plan);
    return plan;
  }
  const auto rounds = make_rounds(plan);
  plan.rounds = static_cast<int>(rounds.size());
  for (int r = 0; r < plan.rounds; ++r) {
    add_messages(plan, layout, rounds[r], r, false);
    add_messages(plan, layout, rounds[r], r, true);
    if (!spec.reverse()) add_copies(plan, layout, rounds[r], r);
  }
  if (spec.motion != Motion::share) add_edges(plan);
  if (spec.reverse()) make_reverse(plan, layout, rounds);
  return plan;
}

}  // namespace haloscope
