// The transpose of an exchange. Where an exchange sets halo := owner's value, it sets owner := owner + halo, and then
// halo := 0; rounds and copies go backwards.
//
// The order of additions is the same for all strategies, so that results of floating-point numbers are, too: from the
// last dimension to the first, and in each of them first the contributions that an exchange sends down, then those
// that it sends up. An ordered plan does so by its rounds. A direct plan receives edges and corners separately, and
// adds them to the faces on which an ordered plan would have found them.
//
// Then, in a separate round, come the points that several ranks hold: points of nodes and faces where blocks meet.
// Each holder gets the values of all others in that round, by every strategy, and adds them as a tree: holders apart
// in z first, then y, then x. A sum of two does not depend on their order, so all holders end with the same bits,
// also next to holes, where no chain of neighbours would reach all of them.
#include <algorithm>
#include <utility>

#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

/// Returns the last dimension in which v moves, in the order of additions: z, y, x.
int last_dimension(const Offset& v) { return v[2] != 0 ? 2 : v[1] != 0 ? 1 : 0; }

/// Contributions to field `q`, and the owned points (or, in ordered rounds, halos that are sent on) that they are
/// for.
struct Arrival {
  int quantity = -1;  ///< a landing, or the field itself if this rank is its own neighbour; -1: none
  Box from, to;
};

class Additions {
 public:
  Additions(Plan& plan, const Layout& layout) : plan_(plan), layout_(layout) {}

  void add_round(const Round& round, int number) {
    std::vector<Offset> ways = round.directions;
    std::stable_sort(ways.begin(), ways.end(), [](const Offset& a, const Offset& b) {
      const int d = last_dimension(a), e = last_dimension(b);
      return d != e ? d > e : a[d] < b[d];
    });
    for (int q = 0; q < fields(); ++q)
      for (const Offset& v : ways) add(round, number, q, v);
  }
  /// Adds the points that several ranks hold, after all messages: the values that are added to have been sent by
  /// then.
  void add_planes(const Round& round) {
    for (int q = 0; q < fields(); ++q) {
      for (const Offset& side : round.directions) add_holders(round, q, side);
      for (int d = 0; d < plan_.dims; ++d)
        if (holds_both_ends(q, d)) copy_first_plane(q, d);
    }
  }
  void clear_round(const Round& round) {
    for (int q = 0; q < fields(); ++q)
      for (const Offset& v : round.directions)
        if (layout_.neighbour(plan_.rank, opposite(v)) >= 0) clear(q, region_box(plan_, round, q, v, false));
  }
  void clear(int q, const Box& box) {
    if (!box.empty()) plan_.copies.push_back({.quantity = q, .round = plan_.rounds, .to = box, .store = Store::clear});
  }
  /// Adds the reverse of a mirrored ghost layer.
  void add_edge(Copy copy) {
    copy.to = copy.from();
    for (std::int64_t& layers : copy.shift) layers = -layers;
    copy.round = -1;
    copy.store = Store::add;
    copy.summand = summand_of(plan_.spec.quantities[copy.quantity]);
    plan_.copies.push_back(copy);
  }

 private:
  int fields() const { return static_cast<int>(plan_.spec.quantities.size()); }

  Arrival arrival(const Round& round, int q, const Offset& v) const {
    const auto way = std::find(round.directions.begin(), round.directions.end(), v);
    const int giver = layout_.neighbour(plan_.rank, v);
    const Box to = region_box(plan_, round, q, v, true);
    if (way == round.directions.end() || giver < 0 || to.empty()) return {};
    if (giver == plan_.rank) return {q, region_box(plan_, round, q, v, false), to};
    return {landing_of(plan_, round.number + static_cast<int>(way - round.directions.begin()), q), at_origin(to), to};
  }
  void add(const Round& round, int number, int q, Offset v) {
    const Arrival incoming = arrival(round, q, v);
    if (incoming.quantity < 0) return;
    Arrival face{.quantity = q, .from = {}, .to = {}};  // the field, each point in place
    for (v[last_dimension(v)] = 0; v != Offset{}; v[last_dimension(v)] = 0)
      if (const Arrival next = arrival(round, q, v); next.quantity >= 0) {
        face = next;
        break;
      }
    Copy copy{.quantity = face.quantity, .round = number, .to = incoming.to};
    for (int d = 0; d < 3; ++d) {
      const std::int64_t there = incoming.to.lo[d] + face.from.lo[d] - face.to.lo[d];
      copy.to.lo[d] = there;
      copy.to.hi[d] = there + incoming.to.extent(d);
      copy.shift[d] = incoming.from.lo[d] - there;
    }
    copy.store = Store::add;
    copy.summand = summand_of(plan_.spec.quantities[q]);
    copy.source = incoming.quantity;
    plan_.copies.push_back(copy);
  }

  const Quantity& quantity(int q) const { return plan_.spec.quantities[q]; }
  bool holds_both_ends(int q, int d) const { return plan_.own_neighbour[d] && staggered(quantity(q).centring, d) != 0; }

  /// Returns the own points of q that lie on side `side` of the block in the dimensions where it is not 0, and on
  /// neither side in others.
  Box points_on(int q, const Offset& side) const {
    Box box = plan_.owned(q);
    for (int d = 0; d < plan_.dims; ++d) {
      const bool planes = staggered(quantity(q).centring, d) != 0;
      if (!planes && side[d] != 0) return {};
      if (!planes) continue;
      box.lo[d] = side[d] < 0 ? 0 : side[d] > 0 ? plan_.cells[d] : 1;
      box.hi[d] = side[d] < 0 ? 1 : side[d] > 0 ? plan_.cells[d] + 1 : plan_.cells[d];
    }
    return box;
  }

  /// The place of a holder's value of this rank's points `box`, and the distance from them.
  struct Held {
    int quantity = -1;  ///< -1: no holder
    Index shift{0, 0, 0};
  };
  /// Finds the value of a holder. @param v from this rank to the holder; zero: this rank.
  Held held(const Round& round, int q, const Offset& v) const {
    if (v == Offset{}) return {.quantity = q};
    const Arrival incoming = arrival(round, q, v);
    Held value{.quantity = incoming.quantity};
    for (int d = 0; d < 3; ++d) value.shift[d] = incoming.from.lo[d] - incoming.to.lo[d];
    return value;
  }

  void add_holders(const Round& round, int q, const Offset& side) {
    const Box box = points_on(q, side);
    for (int d = 0; d < plan_.dims; ++d)
      if (side[d] > 0 && holds_both_ends(q, d)) return;  // these points get the sum at the other end
    if (box.empty()) return;
    std::array<Held, 8> values;  // bit d: on the other side of the plane in dimension d
    for (unsigned place = 0; place < values.size(); ++place) {
      Offset v{};
      bool holder = true;
      for (int d = 0; d < 3; ++d)
        if ((place >> d & 1U) != 0) {
          v[d] = side[d];
          holder &= side[d] != 0;
        }
      if (holder) values[place] = held(round, q, v);
    }
    for (int d : {2, 1, 0})
      for (unsigned place = 0; place < 1U << d; ++place) add_value(q, box, values[place], values[place | 1U << d]);
  }
  void add_value(int q, const Box& box, Held& sum, const Held& value) {
    if (value.quantity < 0) return;
    if (sum.quantity < 0) {
      sum = value;
      return;
    }
    Copy copy{.quantity = sum.quantity, .round = plan_.rounds, .to = shifted(box, sum.shift)};
    for (int d = 0; d < 3; ++d) copy.shift[d] = value.shift[d] - sum.shift[d];
    copy.store = Store::add;
    copy.summand = summand_of(quantity(q));
    copy.source = value.quantity;
    plan_.copies.push_back(copy);
  }
  void copy_first_plane(int q, int d) {
    Copy copy{.quantity = q, .round = plan_.rounds, .to = plan_.owned(q)};
    copy.to.lo[d] = copy.to.hi[d] - 1;
    copy.shift[d] = -copy.to.lo[d];
    if (!copy.to.empty()) plan_.copies.push_back(copy);
  }

  Plan& plan_;
  const Layout& layout_;
};

/// Checks the fields. @throws UsageError for a field that is not made of numbers.
void check_numbers(const ExchangeSpec& spec) {
  for (const Quantity& q : spec.quantities)
    if (summand_of(q) == Summand::none)
      throw UsageError(
          "field '" + q.name + "' has points of " + std::to_string(q.element_bytes) +
          " bytes that cannot be added: they are not, or not declared as, integers of 1, 2, 4 or 8 bytes or "
          "reals of 4 or 8; declare the numbers of a point (number_bytes), or accumulate its parts as "
          "fields of another exchange");
}

}  // namespace

Summand summand_of(const Quantity& q) {
  const int bytes = q.number_bytes == 0 ? q.element_bytes : q.number_bytes;
  if (bytes < 1 || q.element_bytes % bytes != 0) return Summand::none;
  const bool integer = q.type == ScalarType::integer;
  switch (bytes) {
    case 1:
      return integer ? Summand::i8 : Summand::none;
    case 2:
      return integer ? Summand::i16 : Summand::none;
    case 4:
      return integer ? Summand::i32 : Summand::f32;
    case 8:
      return integer ? Summand::i64 : Summand::f64;
    default:
      return Summand::none;
  }
}

ExchangeSpec as_requested(ExchangeSpec spec) {
  const bool each_has_widths = spec.widths.size() == spec.quantities.size();  // else the request is wrong, or has none
  std::erase_if(spec.quantities, [](const Quantity& q) { return !q.is_field(); });
  const int halves = spec.motion == Motion::redistribute ? 2 : 1;  // equal ones
  spec.quantities.resize(static_cast<std::size_t>(halves * quantities_of_block(spec)));
  spec.blocks = spec.target_blocks = 1;
  if (each_has_widths) spec.widths.resize(spec.quantities.size());
  return spec;
}

void make_reverse(Plan& plan, const Layout& layout, const std::vector<Round>& rounds) {
  check_numbers(plan.spec);
  const std::vector<Copy> edges = std::exchange(plan.copies, {});
  Additions additions(plan, layout);
  for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) additions.add_edge(*edge);
  for (int r = 0; r < plan.rounds; ++r)
    if (const Round& round = rounds[r]; round.planes)
      additions.add_planes(round);
    else
      additions.add_round(round, r);
  for (const Round& round : rounds)
    if (!round.planes) additions.clear_round(round);
  for (const Copy& edge : edges) additions.clear(edge.quantity, edge.to);
  int ways = 0;
  for (const Round& round : rounds) ways += static_cast<int>(round.directions.size());
  for (int way = 0; way < ways; ++way) append_for_fields(plan, &Quantity::lands);
}

}  // namespace haloscope
