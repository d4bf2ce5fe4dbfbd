// Plans whose messages may go to any ranks, in one round: redistributions, in which the points of a grid move from the
// ranks that own them in one split to all ranks that hold them in another one; and halos that are wider than blocks,
// whose points come from ranks beyond the neighbours, around a periodic dimension as often as necessary. A point that
// several ranks hold is sent by its owner, see plan_share.cpp.
#include <algorithm>
#include <set>

#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

/// Points that a rank receives, in global coordinates, which may lie beyond a periodic edge.
struct Share {
  Box target;
  Index shift{0, 0, 0};  ///< from the target to the owner's points
};

Index negative(const Index& shift) { return {-shift[0], -shift[1], -shift[2]}; }

std::int64_t floor_of(std::int64_t number, std::int64_t divisor) {
  return number / divisor - (number % divisor < 0 ? 1 : 0);
}

/// Returns the shifts by whole extents of periodic dimensions after which a box meets another one.
std::vector<Index> images(const GridSpec& grid, const Box& box, const Box& other) {
  std::vector<Index> all{{0, 0, 0}};
  for (int d = 0; d < grid.dims; ++d) {
    if (!grid.periodic[d]) continue;
    const std::int64_t cells = grid.cells[d], first = -floor_of(box.hi[d] - 1 - other.lo[d], cells),
                       last = floor_of(other.hi[d] - 1 - box.lo[d], cells);
    std::vector<Index> more;
    for (const Index& one : all)
      for (std::int64_t turns = first; turns <= last; ++turns) {
        more.push_back(one);
        more.back()[d] = turns * cells;
      }
    all = more;
  }
  return all;
}

/// Returns the points that a rank holds, in global coordinates.
Box held(const Layout& layout, int rank, Centring centring) {
  Box box = layout.owned(rank);
  for (int d = 0; d < layout.dims() && layout.owns_cells(rank); ++d) box.hi[d] += staggered(centring, d);
  return box;
}

/// Adds the ranks whose blocks, with the planes that they share, meet a box in global coordinates.
void add_ranks_at(const Layout& layout, const Box& box, std::set<int>& ranks) {
  std::array<int, 3> first{}, end{};
  for (int d = 0; d < 3; ++d) {
    const auto& cuts = layout.cuts(d);
    first[d] = static_cast<int>(std::lower_bound(cuts.begin() + 1, cuts.end() - 1, box.lo[d]) - cuts.begin()) - 1;
    end[d] = static_cast<int>(std::lower_bound(cuts.begin(), cuts.end() - 1, box.hi[d]) - cuts.begin());
  }
  for (int z = first[2]; z < end[2]; ++z)
    for (int y = first[1]; y < end[1]; ++y)
      for (int x = first[0]; x < end[0]; ++x)
        if (const int rank = layout.rank_at({x, y, z}); rank >= 0) ranks.insert(rank);
}

/// Returns the ranks of a layout whose blocks meet a box or an image of it; ranks after `rank` first, so that not all
/// ranks begin with the same peer.
std::vector<int> ranks_around(const Layout& layout, const Box& box, int rank) {
  Box grid{{0, 0, 0}, layout.grid().cells};
  for (int d = 0; d < layout.dims(); ++d) ++grid.hi[d];
  std::set<int> found;
  for (const Index& image : images(layout.grid(), box, grid)) add_ranks_at(layout, shifted(box, image), found);
  std::vector<int> ranks(found.begin(), found.end());
  std::rotate(ranks.begin(), std::upper_bound(ranks.begin(), ranks.end(), rank), ranks.end());
  return ranks;
}

/// Adds messages and copies to a plan.
class Moves {
 public:
  Moves(Plan& plan, const Layout& source, const Layout& target) : plan_(plan), source_(source), target_(target) {
    const auto& all = plan.spec.quantities;
    redistributes_ = plan.spec.motion == Motion::redistribute;
    fields_.assign(all.begin(), all.begin() + first_target(plan.spec));
  }

  void add_messages(bool out) {
    const Layout &mine = out ? source_ : target_, &theirs = out ? target_ : source_;
    if (!mine.owns_cells(plan_.rank)) return;
    Box box = out ? grown(mine.owned(plan_.rank), plan_.spec.high, plan_.spec.low)
                  : grown(mine.owned(plan_.rank), plan_.spec.low, plan_.spec.high);
    for (int d = 0; d < mine.dims(); ++d) ++box.hi[d];  // points of any centring
    const auto groups = message_groups(fields_, plan_.spec.merge);
    for (const int peer : ranks_around(theirs, box, plan_.rank))
      for (std::size_t group = 0; group < groups.size() && peer != plan_.rank; ++group) {
        Message message{
            .out = out, .peer = peer, .tag = static_cast<int>(group), .round = 0, .regions = {}, .bytes = 0};
        for (const int q : groups[group]) add_regions(message, q);
        if (message.bytes > 0) plan_.messages.push_back(message);
      }
  }
  void add_copies() {
    for (int q = 0; q < static_cast<int>(fields_.size()); ++q)
      for (const Share& share : shares(plan_.rank, plan_.rank, q)) {
        const Box to = in_target(share), from = in_source(share);
        Copy copy{.quantity = target_of(q), .round = 0, .to = to, .source = redistributes_ ? q : -1};
        for (int d = 0; d < 3; ++d) copy.shift[d] = from.lo[d] - to.lo[d];
        plan_.copies.push_back(copy);
      }
  }

 private:
  int target_of(int q) const { return redistributes_ ? static_cast<int>(fields_.size()) + q : q; }

  /// Returns the points that a rank receives of a field, in global coordinates: all that it holds, or its halo.
  std::vector<Box> received(int rank, int q) const {
    const Box points = held(target_, rank, fields_[static_cast<std::size_t>(q)].centring);
    if (redistributes_) return {points};
    if (points.empty()) return {};
    ExchangeSpec::Sides sides = plan_.spec.sides_of(q);
    for (int d = 0; d < 3; ++d) {
      if (d >= target_.dims() || !fills(target_, rank, d, 0, plan_.spec.corners)) sides.low[d] = 0;
      if (d >= target_.dims() || !fills(target_, rank, d, 1, plan_.spec.corners)) sides.high[d] = 0;
    }
    if (plan_.spec.corners) return subtract(grown(points, sides.low, sides.high), points);
    std::vector<Box> faces;
    for (int d = 0; d < target_.dims(); ++d)
      for (const bool above : {false, true}) {
        Box& face = faces.emplace_back(points);
        face.lo[d] = above ? points.hi[d] : points.lo[d] - sides.low[d];
        face.hi[d] = above ? points.hi[d] + sides.high[d] : points.lo[d];
      }
    return faces;
  }
  /// Returns the points of a field that rank `from` sends to rank `to`, in an order that both know.
  std::vector<Share> shares(int from, int to, int q) const {
    std::vector<Share> all;
    const std::vector<Box> own = owned_once(source_, from, fields_[static_cast<std::size_t>(q)]);
    for (const Box& target : received(to, q))
      for (const Box& local : own) {
        const Box owned = shifted(local, source_.owned(from).lo);
        for (const Index& image : images(source_.grid(), owned, target))
          if (const Box both = intersect(shifted(owned, image), target); !both.empty())
            all.push_back({both, negative(image)});
      }
    return all;
  }
  Box in_target(const Share& share) const { return shifted(share.target, negative(target_.owned(plan_.rank).lo)); }
  Box in_source(const Share& share) const {
    return shifted(shifted(share.target, share.shift), negative(source_.owned(plan_.rank).lo));
  }
  void add_regions(Message& message, int q) const {
    const int from = message.out ? plan_.rank : message.peer, to = message.out ? message.peer : plan_.rank;
    for (const Share& share : shares(from, to, q)) {
      const Region region = message.out ? Region{q, in_source(share)} : Region{target_of(q), in_target(share)};
      message.regions.push_back(region);
      message.bytes += region.box.volume() * fields_[static_cast<std::size_t>(q)].element_bytes;
    }
  }

  Plan& plan_;
  const Layout &source_, &target_;
  std::vector<Quantity> fields_;
  bool redistributes_ = false;
};

}  // namespace

void make_for_any_ranks(Plan& plan, const Layout& layout) {
  plan.spec.pattern = Pattern::direct;
  plan.rounds = 1;
  if (apart(plan.spec.merge)) plan.spec.merge = Merge::none;
  Moves moves(plan, layout, plan.spec.onto ? *plan.spec.onto : layout);
  moves.add_messages(false);
  moves.add_messages(true);
  moves.add_copies();
}

}  // namespace haloscope
