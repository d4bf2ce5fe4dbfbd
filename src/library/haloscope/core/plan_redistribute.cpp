// Redistributions: the points of a grid move from the ranks that own them in one split to all ranks that hold them in
// another one. A point that several ranks hold is sent by its owner, see plan_share.cpp; ghost layers do not move.
#include <algorithm>
#include <set>

#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

/// Points of a grid in global coordinates. The target is the same point: another one than the source only where it
/// lies on the other end of a periodic dimension.
struct Share {
  Box target;
  Index shift{0, 0, 0};  ///< from the target to the source
};

Index opposite(const Index& shift) { return {-shift[0], -shift[1], -shift[2]}; }

/// Returns the distances between the points of a grid that are the same point: 0, and around staggered periodic
/// dimensions the grid's extent.
std::vector<Index> images(const GridSpec& grid, Centring centring) {
  std::vector<Index> all{{0, 0, 0}};
  for (int d = 0; d < grid.dims; ++d) {
    if (!grid.periodic[d] || staggered(centring, d) == 0) continue;
    for (std::size_t n = 0, known = all.size(); n < known; ++n)
      for (const std::int64_t step : {-grid.cells[d], grid.cells[d]}) {
        all.push_back(all[n]);
        all.back()[d] = step;
      }
  }
  return all;
}

/// Returns the points that a rank holds, in global coordinates.
Box held(const Layout& layout, int rank, Centring centring) {
  Box box = layout.owned(rank);
  for (int d = 0; d < layout.dims() && layout.owns_cells(rank); ++d) box.hi[d] += staggered(centring, d);
  return box;
}

/// Returns the points that rank `from` of `source` sends to rank `to` of `target`, in an order that both know.
std::vector<Share> shares(const Layout& source, int from, const Layout& target, int to, const Quantity& quantity) {
  std::vector<Share> all;
  const Box holder = held(target, to, quantity.centring);
  for (const Box& local : owned_once(source, from, quantity))
    for (const Index& image : images(source.grid(), quantity.centring)) {
      const Box owned = shifted(local, source.owned(from).lo);
      if (const Box both = intersect(shifted(owned, image), holder); !both.empty())
        all.push_back({both, opposite(image)});
    }
  return all;
}

/// Adds the ranks whose blocks hold points of a box, in global coordinates.
void add_holders(const Layout& layout, const Box& box, Centring centring, std::set<int>& ranks) {
  std::array<int, 3> first{}, end{};
  for (int d = 0; d < 3; ++d) {
    const auto& cuts = layout.cuts(d);
    const int more = d < layout.dims() ? staggered(centring, d) : 0;
    first[d] =
        static_cast<int>(std::lower_bound(cuts.begin() + 1, cuts.end() - 1, box.lo[d] + 1 - more) - cuts.begin()) - 1;
    end[d] = static_cast<int>(std::lower_bound(cuts.begin(), cuts.end() - 1, box.hi[d]) - cuts.begin());
  }
  for (int z = first[2]; z < end[2]; ++z)
    for (int y = first[1]; y < end[1]; ++y)
      for (int x = first[0]; x < end[0]; ++x)
        if (const int rank = layout.rank_at({x, y, z}); rank >= 0) ranks.insert(rank);
}

/// Returns the ranks of a layout that hold points of this box, or images of them; ranks after `rank` first, so that not
/// all ranks begin with the same peer.
std::vector<int> holders(const Layout& layout, const Box& box, const std::vector<Quantity>& quantities, int rank) {
  std::set<int> found;
  for (const Quantity& q : quantities)
    for (const Index& image : images(layout.grid(), q.centring))
      add_holders(layout, shifted(box, image), q.centring, found);
  std::vector<int> ranks(found.begin(), found.end());
  std::rotate(ranks.begin(), std::upper_bound(ranks.begin(), ranks.end(), rank), ranks.end());
  return ranks;
}

class Moves {
 public:
  Moves(Plan& plan, const Layout& source) : plan_(plan), source_(source), target_(*plan.spec.onto) {}

  void add_messages(bool out) {
    const Layout &mine = out ? source_ : target_, &theirs = out ? target_ : source_;
    if (!mine.owns_cells(plan_.rank)) return;
    Box box = mine.owned(plan_.rank);
    for (int d = 0; d < mine.dims(); ++d) ++box.hi[d];  // of any centring
    const auto groups = message_groups(fields(), plan_.spec.merge);
    for (const int peer : holders(theirs, box, fields(), plan_.rank))
      for (std::size_t group = 0; group < groups.size() && peer != plan_.rank; ++group) {
        Message message{
            .out = out, .peer = peer, .tag = static_cast<int>(group), .round = 0, .regions = {}, .bytes = 0};
        for (const int q : groups[group]) add_regions(message, q);
        if (message.bytes > 0) plan_.messages.push_back(message);
      }
  }
  void add_copies() {
    for (int q = 0; q < count(); ++q)
      for (const Share& share : shares(source_, plan_.rank, target_, plan_.rank, fields()[q])) {
        const Box to = in_target(share), from = in_source(share);
        Copy copy{.quantity = count() + q, .round = 0, .to = to, .source = q};
        for (int d = 0; d < 3; ++d) copy.shift[d] = from.lo[d] - to.lo[d];
        plan_.copies.push_back(copy);
      }
  }

 private:
  const std::vector<Quantity>& fields() const { return fields_; }
  int count() const { return static_cast<int>(fields_.size()); }
  Box in_target(const Share& share) const { return shifted(share.target, opposite(target_.owned(plan_.rank).lo)); }
  Box in_source(const Share& share) const {
    return shifted(shifted(share.target, share.shift), opposite(source_.owned(plan_.rank).lo));
  }
  void add_regions(Message& message, int q) const {
    const int from = message.out ? plan_.rank : message.peer, to = message.out ? message.peer : plan_.rank;
    for (const Share& share : shares(source_, from, target_, to, fields_[q])) {
      const Region region = message.out ? Region{q, in_source(share)} : Region{count() + q, in_target(share)};
      message.regions.push_back(region);
      message.bytes += region.box.volume() * fields_[q].element_bytes;
    }
  }

  Plan& plan_;
  const Layout &source_, &target_;
  std::vector<Quantity> fields_{
      plan_.spec.quantities.begin(),
      plan_.spec.quantities.begin() + static_cast<std::ptrdiff_t>(plan_.spec.quantities.size() / 2)};
};

}  // namespace

Plan make_redistribution(const Layout& layout, int rank, const ExchangeSpec& spec) {
  Plan plan;
  plan.rank = rank;
  plan.dims = layout.dims();
  plan.cells = layout.local_cells(rank);
  plan.target_cells = spec.onto->local_cells(rank);
  plan.spec = spec;
  plan.spec.pattern = Pattern::direct;
  plan.spec.low = plan.spec.high = {0, 0, 0};
  plan.spec.widths.clear();
  if (apart(spec.merge)) plan.spec.merge = Merge::none;
  Moves moves(plan, layout);
  moves.add_messages(false);
  moves.add_messages(true);
  moves.add_copies();
  return plan;
}

}  // namespace haloscope
