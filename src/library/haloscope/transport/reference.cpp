// The oracle. It shares no code with the plan's regions: every ghost point is traced to the global point it mirrors
// and to that point's owner, and values are sent in one collective call. Slow, simple, and correct by construction. It
// shares the rules which sides of a block are filled, fills(), and which halos come from any ranks, is_beyond().
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/comm/handles.hpp"
#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/transport/twosided/datatype.hpp"

namespace haloscope {
namespace {

/// One ghost point to fill, or one owned point requested.
struct Point {
  std::int64_t quantity = 0;
  Index at{0, 0, 0};  ///< the owner's local coordinates if requested, own ones if filled
};

/// Points to or from all ranks, rank by rank.
struct Points {
  std::vector<Point> list;
  std::vector<int> counts, starts;   ///< per rank, of the list
  std::vector<int> bytes, offsets;   ///< per rank, of the packed values
  std::int64_t count = 0, size = 0;  ///< over all ranks: points, and bytes
  std::vector<std::byte> values;

  /// Adds the points of the next rank. @throws UsageError where the total exceeds the maximum of one call of MPI.
  void add(std::int64_t points, std::int64_t value_bytes) {
    if (size + value_bytes > largest_count)
      throw UsageError(
          "the halos that this rank fills or answers for have more than " + std::to_string(largest_count) +
          " bytes, too many for strategy 'reference'; use a smaller grid, more ranks, or another strategy");
    counts.push_back(static_cast<int>(points));
    starts.push_back(static_cast<int>(count));
    bytes.push_back(static_cast<int>(value_bytes));
    offsets.push_back(static_cast<int>(size));
    count += points;
    size += value_bytes;
  }
  void allocate() {
    list.resize(static_cast<std::size_t>(count));
    values.resize(static_cast<std::size_t>(size));
  }
};

/// The block that owns a ghost point and its coordinates there; owner -1 beyond a physical edge.
struct Source {
  int owner = -1;
  Index at{0, 0, 0};
  bool is_copy = false;  ///< across a fold or seam
  int field = 0;         ///< of the block
  int panel = 0;
};

std::int64_t wrapped(std::int64_t cell, std::int64_t cells) { return ((cell % cells) + cells) % cells; }

/// Moves a point of a folded grid, in global coordinates, to the one that it is a copy of, if it lies on the fold or
/// beyond. Returns true if it was a copy. Positions count half cells.
bool cross_fold(const GridSpec& grid, const Quantity& quantity, Index& p) {
  const auto position = [&](int d) { return 2 * p[d] + half_cells(quantity, d); };
  const std::int64_t around = 2 * grid.cells[0], fold = 2 * grid.cells[1] - (grid.fold == Fold::cell ? 1 : 0);
  const std::int64_t x = (grid.fold == Fold::cell ? 2 : around) - position(0), y = 2 * fold - position(1);
  const std::int64_t image = wrapped(p[0] + (x - position(0)) / 2, grid.cells[0]);
  if (position(1) < fold || (position(1) == fold && wrapped(p[0], grid.cells[0]) <= image)) return false;
  p[1] += (y - position(1)) / 2;
  p[0] = image;
  return true;
}

/// A position in half cells, and the turn from the directions of the panel that the way to it began in.
struct Place {
  int panel = 0;
  Index position{0, 0, 0};
  Turn turn = not_turned;
  bool operator==(const Place&) const = default;
};

/// Returns a place across the seam at a side of dimension d, both of the panel that the way began in.
std::optional<Place> across_seam(const GridSpec& grid, const Place& place, int d, int side) {
  const bool opposite = place.turn[d] < 0;
  const auto seam = find_seam(grid.panels, {place.panel, dimension_there(place.turn, d), opposite ? 1 - side : side});
  if (!seam) return std::nullopt;
  Place there{seam->panel, turned(place.position, seam->turn), chained(place.turn, seam->turn)};
  for (int e = 0; e < 3; ++e) there.position[e] += seam->shift[e];
  return there;
}

/// Returns the place of a point beyond a panel; none without a seam, or where two ways lead to two places.
/// @param sides  of the panel that the point lies beyond in x and y; -1: it does not.
std::optional<Place> across_seams(const GridSpec& grid, const Place& place, const std::array<int, 2>& sides) {
  if (sides[0] < 0) return across_seam(grid, place, 1, sides[1]);
  if (sides[1] < 0) return across_seam(grid, place, 0, sides[0]);
  const auto x = across_seam(grid, place, 0, sides[0]), y = across_seam(grid, place, 1, sides[1]);
  if (!x || !y) return std::nullopt;
  const auto x_first = across_seam(grid, *x, 1, sides[1]), y_first = across_seam(grid, *y, 0, sides[0]);
  return x_first == y_first ? x_first : std::nullopt;
}

/// Moves a point beyond a panel, in global coordinates, to the one that it is a copy of, which may be of another field.
/// Returns false if there is none.
bool cross_seams(const GridSpec& grid, const std::vector<Quantity>& fields, Source& source, Index& p) {
  const int field = source.field;
  const Quantity& quantity = fields[static_cast<std::size_t>(field)];
  const Box points = points_of(grid.panel(source.panel), quantity, grid.dims);
  std::array<int, 2> sides{-1, -1};
  for (const int d : {0, 1}) sides[d] = p[d] < points.lo[d] ? 0 : p[d] >= points.hi[d] ? 1 : -1;
  source.is_copy = sides != std::array<int, 2>{-1, -1};
  if (!source.is_copy) return true;
  Place place{source.panel, {}};
  for (int d = 0; d < 3; ++d) place.position[d] = 2 * p[d] + half_cells(quantity, d);
  const auto there = across_seams(grid, place, sides);
  if (!there) return false;
  source.panel = there->panel;
  source.field = field_across(fields, field, there->turn);
  const Quantity& other = fields[static_cast<std::size_t>(source.field)];
  for (int d = 0; d < 3; ++d) p[d] = (there->position[d] - half_cells(other, d)) / 2;
  const Box held = points_of(grid.panel(there->panel), other, grid.dims);
  return p[0] >= held.lo[0] && p[0] < held.hi[0] && p[1] >= held.lo[1] && p[1] < held.hi[1];
}

/// Sets the owner of a point in global coordinates: the block of a cell that has it, on its low side, or where `behind`
/// is 1 on its high side.
/// @return false if no block owns this cell.
bool set_owner(const Layout& by_block, const Index& p, const Index& behind, Source& source) {
  const GridSpec& grid = by_block.grid();
  Index cell;
  for (int d = 0; d < 3; ++d) {
    cell[d] = p[d] - behind[d];
    if (grid.periodic[d]) cell[d] = wrapped(cell[d], grid.cells[d]);
    if (cell[d] < 0 || cell[d] >= grid.cells[d]) return false;
  }
  const int owner = grid.panel_at(cell) == source.panel ? by_block.owner(cell) : -1;
  if (owner < 0) return false;
  const Index origin = by_block.owned(owner).lo;
  for (int d = 0; d < 3; ++d) source.at[d] = cell[d] + behind[d] - origin[d];
  source.owner = owner;
  return true;
}

/// @param by_block  the layout, with a rank for each block. @param fields  of a block. @param field  of the point.
/// @param any_ranks  messages may come from any ranks, not from neighbours alone.
Source source_of(const Layout& by_block, int block, const std::vector<Quantity>& fields, int field, const Index& point,
                 bool any_ranks) {
  const GridSpec& grid = by_block.grid();
  const Box own = by_block.owned(block);
  Index p = point;
  for (int d = 0; d < 3; ++d) p[d] += own.lo[d];
  Source source;
  source.field = field;
  source.panel = grid.panel_at(own.lo);
  if (grid.fold != Fold::none)
    source.is_copy = cross_fold(grid, fields[static_cast<std::size_t>(field)], p);
  else if (!grid.panels.boxes.empty() && !cross_seams(grid, fields, source, p))
    return source;
  const Centring centring = fields[static_cast<std::size_t>(source.field)].centring;
  // Of a plane that two blocks share, the closer one owns the point; where messages may come from any ranks, the one
  // above it, or if that is a hole, the one below it.
  const int others = any_ranks ? 8 : 1;
  for (int other = 0; other < others; ++other) {
    Index behind{0, 0, 0};
    bool possible = true;
    for (int d = 0; d < 3; ++d) {
      const bool flips = (other >> d & 1) != 0, between = d < grid.dims && staggered(centring, d) != 0;
      possible = possible && (between || !flips);
      if (between) behind[d] = (!any_ranks && point[d] >= own.extent(d)) != flips;
    }
    if (possible && set_owner(by_block, p, behind, source)) return source;
  }
  return source;
}

/// Returns the sides of a block that a point lies beyond, by dimension; -1: it does not.
std::array<int, 3> sides_beyond(const Box& owned, const Index& p) {
  std::array<int, 3> sides{};
  for (int d = 0; d < 3; ++d) sides[d] = p[d] < owned.lo[d] ? 0 : p[d] >= owned.hi[d] ? 1 : -1;
  return sides;
}

using OpenSides = std::array<std::array<bool, 2>, 3>;

/// Returns the sides of a block beyond which points are filled. Points beyond a side without neighbours are not.
OpenSides open_sides(const Layout& by_block, int block, bool corners) {
  OpenSides open{};
  for (int d = 0; d < by_block.dims(); ++d)
    for (const int side : {0, 1}) open[d][side] = fills(by_block, block, d, side, corners);
  return open;
}

/// Returns true if points beyond these sides of a block are filled.
bool may_fill(const Plan& plan, const OpenSides& open, const std::array<int, 3>& sides) {
  int beyond = 0;
  for (int d = 0; d < 3; ++d) {
    if (sides[d] >= 0 && !open[d][sides[d]]) return false;
    beyond += sides[d] >= 0;
  }
  return beyond == 0 ? plan.meets_itself() : beyond == 1 || plan.spec.corners;
}

/// Calls visit(quantity, ghost, source) for every ghost point of the exchange that mirrors a point of the grid.
template <class Visit>
void for_each_ghost(const Layout& layout, const Plan& plan, Visit visit) {
  const int quantities = fields_in(plan.spec), fields = quantities / plan.spec.blocks;
  const Layout& blocks = layout.by_block();
  const bool any_ranks = plan.meets_itself() || is_beyond(blocks, plan.spec);
  for (int q = 0; q < quantities; ++q) {
    const Box owned = plan.owned(q), all = plan.allocated(q);
    if (owned.empty()) continue;
    const int block = layout.first_block(plan.rank) + q / fields;
    const OpenSides open = open_sides(blocks, block, plan.spec.corners);
    Index p;
    for (p[2] = all.lo[2]; p[2] < all.hi[2]; ++p[2])
      for (p[1] = all.lo[1]; p[1] < all.hi[1]; ++p[1])
        for (p[0] = all.lo[0]; p[0] < all.hi[0]; ++p[0]) {
          const std::array<int, 3> sides = sides_beyond(owned, p);
          if (!may_fill(plan, open, sides)) continue;
          const Source source = source_of(blocks, block, plan.spec.quantities, q % fields, p, any_ranks);
          const bool own = sides == std::array<int, 3>{-1, -1, -1};
          if (source.owner >= 0 && (!own || source.is_copy)) visit(q, p, source);
        }
  }
}

class ReferenceLink final : public Link {
 public:
  explicit ReferenceLink(const LinkContext& context)
      : comm_(duplicate(context.comm)), plan_(*context.plan), views_(*context.views) {
    Points sources;  // of this rank's ghosts, in coordinates of their owners
    agree(comm_.get(), [&] { list_ghosts(*context.layout, sources); });
    request(sources);
  }

  void post(Ids, int) override { filled_ = false; }
  void pack(Ids, int, Share) override {}
  void send(Ids, int) override {}
  bool test(Ids, int) override { return filled_; }

  /// Makes the whole exchange, own-neighbour halos included. Collective: every rank calls it once per exchange.
  void wait(Ids, int slot) override {
    transfer(requested_, slot, [](std::byte* value, std::byte* point, std::size_t n) { std::memcpy(value, point, n); });
    REQUIRE_MPI(MPI_Alltoallv(requested_.values.data(), requested_.bytes.data(), requested_.offsets.data(), MPI_BYTE,
                              wanted_.values.data(), wanted_.bytes.data(), wanted_.offsets.data(), MPI_BYTE,
                              comm_.get()));
    transfer(wanted_, slot, [](std::byte* value, std::byte* point, std::size_t n) { std::memcpy(point, value, n); });
    filled_ = true;
  }
  void unpack(Ids, int, Share) override {}
  bool test_complete(Ids, int) override { return true; }
  void complete(Ids, int) override {}
  Blocks blocks() const override { return Blocks::always; }
  bool arrives_in_wait() const override { return true; }
  int waiting_for(Ids in, int) const override { return filled_ || in.empty() ? -1 : plan_.messages[in[0]].peer; }

 private:
  /// Returns the number of fields of a block.
  std::int64_t fields() const { return fields_in(plan_.spec) / plan_.spec.blocks; }
  /// Returns the bytes of a point, which may be of a block of another rank.
  std::size_t element_bytes(const Point& p) const { return plan_.spec.quantities[p.quantity % fields()].element_bytes; }

  template <class Move>
  void transfer(Points& points, int slot, Move move) {
    std::byte* value = points.values.data();
    for (const Point& p : points.list) {
      move(value, views_[p.quantity][slot].at(p.at), element_bytes(p));
      value += element_bytes(p);
    }
  }

  /// Lists the ghosts that this rank fills, and their source points.
  void list_ghosts(const Layout& layout, Points& sources) {
    std::vector<std::vector<Point>> mine(static_cast<std::size_t>(layout.size())), theirs(mine);
    for_each_ghost(layout, plan_, [&](std::int64_t q, const Index& ghost, const Source& source) {
      const int owner = layout.rank_of_block(source.owner), block = source.owner - layout.first_block(owner);
      mine[owner].push_back({q, ghost});
      theirs[owner].push_back({block * fields() + source.field, source.at});
    });
    wanted_ = flat(mine);
    sources = flat(theirs);
  }

  Points flat(const std::vector<std::vector<Point>>& by_rank) const {
    Points points;
    for (const auto& list : by_rank) {
      std::int64_t bytes = 0;
      for (const Point& p : list) bytes += static_cast<std::int64_t>(element_bytes(p));
      points.add(static_cast<std::int64_t>(list.size()), bytes);
    }
    points.allocate();
    auto next = points.list.begin();
    for (const auto& list : by_rank) next = std::copy(list.begin(), list.end(), next);
    return points;
  }

  /// Sends the requests of this rank to the owners, and receives the requests to it. Points have a byte or more each,
  /// so that counts of points fit where counts of bytes do. Collective.
  void request(const Points& sources) {
    const std::size_t size = sources.counts.size();
    std::vector<std::array<int, 2>> mine(size), theirs(size);  // points and bytes, by rank
    for (std::size_t r = 0; r < size; ++r) mine[r] = {sources.counts[r], sources.bytes[r]};
    CHECK_MPI(MPI_Alltoall(mine.data(), 2, MPI_INT, theirs.data(), 2, MPI_INT, comm_.get()));
    agree(comm_.get(), [&] {
      for (const auto [points, bytes] : theirs) requested_.add(points, bytes);
      requested_.allocate();
    });
    const MessageType point = record_type(sizeof(Point));
    CHECK_MPI(MPI_Alltoallv(sources.list.data(), sources.counts.data(), sources.starts.data(), point.type(),
                            requested_.list.data(), requested_.counts.data(), requested_.starts.data(), point.type(),
                            comm_.get()));
  }

  OwnedComm comm_;  // wait() is collective, and several exchanges may be in flight
  Plan plan_;
  Views views_;
  Points wanted_, requested_;
  bool filled_ = false;
};

}  // namespace

std::unique_ptr<Link> open_reference(const LinkContext& context, const std::vector<std::string>&) {
  if (context.plan->spec.pattern != Pattern::direct)
    throw UsageError("transport reference fills all halos in one round; make its plan with the direct pattern");
  return std::make_unique<ReferenceLink>(context);
}

}  // namespace haloscope
