// Plans: the messages and copies of one rank in one halo exchange. A plan is a plain value made by a pure function,
// without MPI.
//
// Local coordinates: cell (0, 0, 0) is the rank's first owned cell; halos have negative indices or indices >= the
// local extent. Node- and face-centred quantities have one point more in their staggered dimensions; both ranks hold
// the shared plane, which is therefore never sent, and ghost layers lie beyond it.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/extend/words.hpp"
#include "haloscope/layout.hpp"

namespace haloscope {

enum class Centring : std::uint8_t { cell, node, face_x, face_y, face_z };
HALOSCOPE_WORDS(Centring, "centring", "cell", "node", "face_x", "face_y", "face_z");
enum class ScalarType : std::uint8_t { real, integer };
HALOSCOPE_WORDS(ScalarType, "scalar type of a quantity", "real", "integer");
/// The numbers that a reverse exchange can add; none: bytes.
enum class Summand : std::uint8_t { none, i8, i16, i32, i64, f32, f64 };
/// Returns the bytes of such a number.
inline int bytes_of(Summand s) {
  constexpr int bytes[] = {1, 1, 2, 4, 8, 4, 8};
  return bytes[static_cast<int>(s)];
}
/// The content of ghost points beyond an edge of a grid that does not wrap around: values that stay, values of the
/// inner points mirrored at the edge, unchanged or negated (a reflecting wall, whose normal velocity is odd), or the
/// nearest inner value (an open boundary).
enum class Edge : std::uint8_t { fixed, even, odd, nearest };
HALOSCOPE_WORDS(Edge, "edge", "fixed", "even", "odd", "nearest");
/// The edges of a dimension.
struct Edges {
  Edge low = Edge::fixed, high = Edge::fixed;
  constexpr Edges() = default;
  constexpr Edges(Edge both) : low(both), high(both) {}  // NOLINT(google-explicit-constructor)
  constexpr Edges(Edge of_low, Edge of_high) : low(of_low), high(of_high) {}
  constexpr Edge of(int side) const { return side == 0 ? low : high; }
  bool operator==(const Edges&) const = default;
};
enum class Pattern : std::uint8_t { ordered, direct };
HALOSCOPE_WORDS(Pattern, "pattern", "ordered", "direct");
/// The sharing of messages and rounds between quantities: all quantities share a message, quantities of one scalar
/// type share one, or each quantity has separate messages (none), with separate rounds too, in sequential exchanges
/// (serial), or in rounds of which the next starts before the last has ended (pipelined).
enum class Merge : std::uint8_t { all, type, none, serial, pipelined };
HALOSCOPE_WORDS(Merge, "fields", "all", "type", "none", "serial", "pipelined");
/// The points that a plan moves: halos, filled from their owners; halos, added to the points that they are copies of;
/// points of nodes and faces that several ranks hold, from their owners to the others; all points, to another split of
/// the grid.
enum class Motion : std::uint8_t { fill, accumulate, share, redistribute };
HALOSCOPE_WORDS(Motion, "motion", "exchange", "accumulation", "share", "redistribution");
/// Returns true if quantities have separate rounds.
inline bool apart(Merge merge) { return merge == Merge::serial || merge == Merge::pipelined; }

/// Returns 1 where a quantity of this centring has one point more than cells in dimension d, else 0.
inline int staggered(Centring c, int d) {
  if (c == Centring::node) return 1;
  return (c == Centring::face_x && d == 0) || (c == Centring::face_y && d == 1) || (c == Centring::face_z && d == 2);
}

/// A turn of a field against another one: direction d of the first is direction |turn[d]| of the second, +1, +2, +3
/// for x, y, z, and opposite to it where turn[d] is negative. Source: Transform of CGNS (SIDS 8.2).
using Turn = std::array<int, 3>;

/// One field taking part in an exchange.
struct Quantity {
  std::string name = "u";
  int element_bytes = 8;
  ScalarType type = ScalarType::real;
  Centring centring = Centring::cell;
  int slots = 1;                 ///< buffers: 2 where a sweep reads the old values and writes the new ones
  std::array<Edges, 3> edges{};  ///< per dimension
  int number_bytes = 0;  ///< of each number of a point, 4 for a complex float; 0: a point is one number; -1: none
  /// Per dimension: the value of a cell lies on its high face there, as velocities of ocean models do in arrays of one
  /// shape. Only folds and seams depend on it. Not where the centring is staggered.
  std::array<bool, 3> on_high_face{};
  /// Number of the vector field that this is a component of; 0: none. Only folds and seams depend on it.
  int vector = 0;
  int along = 0;   ///< direction of the component: 0 x, 1 y, 2 z
  int lands = -1;  ///< in a reverse plan: the field whose contributions arrive here; -1: this is a field
  /// In the plan of a grid that meets itself: the field whose points, turned about the origin, are the points here; -1:
  /// this is a field.
  int turns = -1;
  Turn turn{1, 2, 3};  ///< of the field's points
  bool is_field() const { return lands < 0 && turns < 0; }
  /// Returns true if exchanges fill ghost points beyond some edge.
  bool fills_edges() const { return edges != std::array<Edges, 3>{}; }
  bool operator==(const Quantity&) const = default;
};

/// All inputs of the plan of one exchange.
struct ExchangeSpec {
  std::vector<Quantity> quantities{Quantity{}};
  Widths low{1, 1, 1};   ///< ghost layers filled on the low side, per dimension
  Widths high{1, 1, 1};  ///< ghost layers filled on the high side, per dimension
  /// Ghost layers of each quantity, where they differ (`low` and `high` of a plan are then the maximum); empty: `low`
  /// and `high` for all.
  struct Sides {
    Widths low{}, high{};
    /// Ghost layers that messages of other dimensions carry along, in dimensions without a halo.
    Widths rows_low{}, rows_high{};
    bool operator==(const Sides&) const = default;
  };
  std::vector<Sides> widths{};
  int blocks = 1;         ///< in a plan: blocks of the rank, for each of which quantities and widths are repeated
  int target_blocks = 1;  ///< in a plan of a redistribution: blocks of the rank in the split that points move to
  Pattern pattern = Pattern::ordered;
  bool corners = true;       ///< fill edges and corners too (box stencils, depth > 1)
  bool merge_peers = false;  ///< one message per distinct peer and round instead of one per direction
  Merge merge = Merge::all;  ///< quantities that share a message; a reverse plan has `none` for serial and pipelined
  std::array<int, 3> order{0, 1, 2};  ///< dimension order of an ordered plan's rounds
  /// To accumulate is the transpose of an exchange: make_plan() appends a quantity for each field and direction, in
  /// which contributions arrive before they are added. Points are shared without regard to halos.
  Motion motion = Motion::fill;
  /// The split that a redistribution moves points to. The second half of the quantities, equal to the first half, is
  /// there; in a plan, each half is repeated for each block of the rank in its split.
  std::optional<Layout> onto{};
  /// Halos may be wider than the blocks they are filled from: their points then come from ranks beyond the neighbours,
  /// in one round, around a periodic dimension as often as necessary.
  bool beyond = false;
  bool reverse() const { return motion == Motion::accumulate; }

  /// Returns the ghost layers of quantity q.
  const Widths& low_of(int q) const { return widths.empty() ? low : widths[static_cast<std::size_t>(q)].low; }
  const Widths& high_of(int q) const { return widths.empty() ? high : widths[static_cast<std::size_t>(q)].high; }
  /// Returns the ghost layers, and those carried along, of quantity q.
  Sides sides_of(int q) const { return widths.empty() ? Sides{low, high} : widths[static_cast<std::size_t>(q)]; }
  bool operator==(const ExchangeSpec&) const = default;
};

/// A box of one quantity in local coordinates.
struct Region {
  int quantity = 0;
  Box box;
  bool operator==(const Region&) const = default;
};

/// A one-way message. Both ends list its regions in the same order, so packed buffers match.
struct Message {
  bool out = false;  ///< true: this rank sends it
  int peer = 0;
  int tag = 0;  ///< unique among the messages between an ordered pair of ranks in one exchange
  int round = 0;
  std::vector<Region> regions;
  std::int64_t bytes = 0;
};

/// The effect of a copy on the points that it writes.
enum class Store : std::uint8_t { replace, add, clear };

/// A halo whose source is this rank itself: `to` is filled from `shifted(to, shift)`. In a reverse plan,
/// contributions added to points, and halos that are cleared.
struct Copy {
  int quantity = 0;
  int round =
      0;  ///< Plan::rounds: beyond the grid's edge, after all messages. Reverse: after the round, -1: before all
  Box to;
  Index shift{0, 0, 0};
  bool negate = false;
  Store store = Store::replace;
  Summand summand = Summand::none;  ///< type of the added numbers
  int source = -1;                  ///< quantity that it is read from; -1: the same
  Box from() const { return shifted(to, shift); }
  bool operator==(const Copy&) const = default;
};

/// A block of cells that a rank owns.
struct PlanBlock {
  Index cells{1, 1, 1};  ///< per dimension
  /// [dimension][low, high]: an exchange fills halos on that side. Own-neighbours count.
  std::array<std::array<bool, 2>, 3> has_neighbour{};
  /// [dimension][low, high]: that side lies at an edge of the domain, in a dimension that is not periodic.
  std::array<std::array<bool, 2>, 3> at_edge{};
};

/// The messages and copies of one rank in one exchange.
struct Plan : PlanBlock {
  int rank = 0;
  int dims = 3;
  int rounds = 1;
  /// The rank's blocks after the first one, which is the plan itself; the quantities of each follow the quantities of
  /// the block before. Of a redistribution: then the blocks in the split that points move to.
  std::vector<PlanBlock> further_blocks;
  int fields_of_block = 0;              ///< quantities of each block, where there are further ones
  std::array<bool, 3> own_neighbour{};  ///< the neighbour in this dimension is the rank itself
  std::array<bool, 3> split{};          ///< over several ranks in this dimension, the same for all of them
  /// [dimension][low, high]: the grid meets itself there, at a fold or a seam, on some rank.
  std::array<std::array<bool, 2>, 3> joined{};
  ExchangeSpec spec;
  std::vector<Message> messages;  ///< by round; within a round receives before sends
  std::vector<Copy> copies;       ///< by round, copies of edges last

  /// Returns the field that quantity q belongs to: itself, or the field that it lands in or turns.
  int field_of(int q) const {
    const Quantity& quantity = spec.quantities[static_cast<std::size_t>(q)];
    return quantity.is_field() ? q : std::max(quantity.lands, quantity.turns);
  }
  /// Returns true if the grid meets itself somewhere.
  bool meets_itself() const { return joined != std::array<std::array<bool, 2>, 3>{}; }
  /// Returns a region in the coordinates of its field, where it is one of a turned field.
  Region in_field(const Region& region) const;
  /// Returns the block of quantity q.
  const PlanBlock& block_of(int q) const {
    q = field_of(q);
    return further_blocks.empty() || q < fields_of_block
               ? *this
               : further_blocks[static_cast<std::size_t>(q / fields_of_block) - 1];
  }
  /// Returns the content of the ghost points of a side of quantity q: fixed towards neighbours and holes.
  Edge edge(int q, int d, int side) const;
  /// Returns the cells of the first block, in local coordinates.
  Box own_cells() const { return {{0, 0, 0}, cells}; }
  /// Returns the points of quantity q owned by this rank, in local coordinates (shared planes included).
  Box owned(int q) const;
  /// Returns the owned points plus every ghost layer of the exchange (also beyond physical edges).
  Box allocated(int q) const;
  std::int64_t bytes_out() const;
  /// Returns the bytes that this rank sends to ranks of other groups, such as other nodes. @param group of each rank.
  std::int64_t bytes_between(const std::vector<int>& group) const;
  int messages_out() const;
};

/// Returns the number of quantities that are fields of the request, which come first.
inline int fields_in(const ExchangeSpec& spec) {
  return static_cast<int>(
      std::count_if(spec.quantities.begin(), spec.quantities.end(), [](const Quantity& q) { return q.is_field(); }));
}
/// Returns the number of quantities of a block.
inline int quantities_of_block(const ExchangeSpec& spec) {
  const int targets = spec.motion == Motion::redistribute ? spec.target_blocks : 0;
  return static_cast<int>(spec.quantities.size()) / (spec.blocks + targets);
}
/// Returns the first of the quantities in the split that a redistribution moves points to; of other plans, the number
/// of quantities.
inline int first_target(const ExchangeSpec& spec) { return spec.blocks * quantities_of_block(spec); }

/// Returns the type of the numbers that the points of a quantity are made of.
Summand summand_of(const Quantity& quantity);

/// Makes the plan of one rank.
/// @throws UsageError when a halo is wider than the smallest block it is filled from, unless `beyond` allows it, a
///         width is negative, the list of quantities is empty, or an element size is not positive; of a reverse plan,
///         for points that are not numbers.
/// Pure and local; cost O(messages), independent of cells and of the number of ranks.
/// Source: ordered with corner forwarding: White & Dongarra 2011 IV-B, Davis 2017 eq. 5.33-5.41; direct: Valen
/// 2023 3.4.
Plan make_plan(const Layout& layout, int rank, const ExchangeSpec& spec);

}  // namespace haloscope
