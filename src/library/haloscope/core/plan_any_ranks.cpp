// Plans whose messages may go to any ranks, in one round: redistributions, in which the points of a grid move from the
// ranks that own them in one split to all ranks that hold them in another one; and halos that are wider than blocks,
// whose points come from ranks beyond the neighbours, around a periodic dimension as often as necessary, or across a
// fold or seam of the grid. A point that several ranks hold is sent by its owner, see plan_share.cpp.
#include <algorithm>
#include <compare>
#include <map>
#include <set>

#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

/// Points that a block receives, in global coordinates, which may lie beyond an edge, and the owner's points.
struct Share {
  Box target, source;
  int field = -1;  ///< the owner's; -1: the same
  Turn turn = not_turned;
};

/// Points that a block receives.
struct Target {
  Box box;
  bool own;  ///< points that it holds, which only a fold repeats
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

/// Returns the points that a block holds, in global coordinates.
Box held(const Layout& layout, int block, Centring centring) {
  Box box = layout.owned(block);
  for (int d = 0; d < layout.dims() && layout.owns_cells(block); ++d) box.hi[d] += staggered(centring, d);
  return box;
}

/// Adds the blocks that meet a box in global coordinates, with the planes that they share.
void add_blocks_at(const Layout& layout, const Box& box, std::set<int>& blocks) {
  std::array<int, 3> first{}, end{};
  for (int d = 0; d < 3; ++d) {
    const auto& cuts = layout.cuts(d);
    first[d] = static_cast<int>(std::lower_bound(cuts.begin() + 1, cuts.end() - 1, box.lo[d]) - cuts.begin()) - 1;
    end[d] = static_cast<int>(std::lower_bound(cuts.begin(), cuts.end() - 1, box.hi[d]) - cuts.begin());
  }
  for (int z = first[2]; z < end[2]; ++z)
    for (int y = first[1]; y < end[1]; ++y)
      for (int x = first[0]; x < end[0]; ++x)
        if (const int block = layout.rank_at({x, y, z}); block >= 0) blocks.insert(block);
}

/// Returns the blocks of a layout that meet a box or an image of it.
std::set<int> blocks_around(const Layout& layout, const Box& box) {
  Box grid{{0, 0, 0}, layout.grid().cells};
  for (int d = 0; d < layout.dims(); ++d) ++grid.hi[d];
  std::set<int> found;
  for (const Index& image : images(layout.grid(), box, grid)) add_blocks_at(layout, shifted(box, image), found);
  return found;
}

/// One split of a grid, and the blocks of this rank in it.
struct Split {
  const Layout& ranks;
  const Layout& blocks = ranks.by_block();  ///< each as the only one of a rank
  std::vector<int> own;

  Split(const Layout& layout, int rank) : ranks(layout) {
    for (int n = 0; n < layout.blocks_of(rank); ++n) own.push_back(layout.first_block(rank) + n);
  }
  int count() const { return std::max(1, static_cast<int>(own.size())); }
  PlanBlock plan_block(int n) const {
    return {own.empty() ? Index{} : blocks.local_cells(own[static_cast<std::size_t>(n)]), {}};
  }
};

/// A block that sends to another one.
struct Pair {
  int from, to;
  auto operator<=>(const Pair&) const = default;
};

/// Adds messages and copies to a plan.
class Moves {
 public:
  Moves(Plan& plan, const Split& source, const Split& target) : plan_(plan), source_(source), target_(target) {
    const auto& all = plan.spec.quantities;
    redistributes_ = plan.spec.motion == Motion::redistribute;
    fields_.assign(all.begin(), all.begin() + quantities_of_block(plan.spec));
    if (redistributes_) return;
    turns_ = turns_of(grid());
    crossings_ = crossings_of(grid().panels);
  }

  /// Adds messages to ranks after this one first, so that not all ranks begin with the same peer.
  void add_messages(bool out) {
    std::map<int, std::vector<Pair>> pairs = pairs_by_peer(out);
    pairs.erase(plan_.rank);
    for (auto each = pairs.upper_bound(plan_.rank); each != pairs.end(); ++each) add_messages_of(out, *each);
    for (auto each = pairs.begin(); each != pairs.upper_bound(plan_.rank); ++each) add_messages_of(out, *each);
  }
  void add_copies() {
    const std::vector<Pair> pairs = pairs_by_peer(true)[plan_.rank];
    for (int q = 0; q < static_cast<int>(fields_.size()); ++q)
      for (const Pair& pair : pairs)
        for (const Share& share : shares(pair, q)) {
          const Region to = in_target(share, pair.to, q), from = in_source(share, pair.from, q);
          const bool other = redistributes_ || share.field >= 0;
          Copy copy{.quantity = to.quantity, .round = 0, .to = to.box, .source = other ? from.quantity : -1};
          for (int d = 0; d < 3; ++d) copy.shift[d] = from.box.lo[d] - to.box.lo[d];
          plan_.copies.push_back(copy);
        }
  }

 private:
  /// Returns the blocks that send to blocks of another rank, or receive from them, in an order that both ranks know.
  std::map<int, std::vector<Pair>> pairs_by_peer(bool out) const {
    const Split &mine = out ? source_ : target_, &theirs = out ? target_ : source_;
    const Widths &low = plan_.spec.low, &high = plan_.spec.high;
    std::map<int, std::vector<Pair>> pairs;
    for (const int own : mine.own) {
      Box box = grown(mine.blocks.owned(own), out ? high : low, out ? low : high);
      for (int d = 0; d < mine.ranks.dims(); ++d) ++box.hi[d];  // points of any centring
      std::set<int> others = blocks_around(theirs.blocks, box);
      for (const Box& image : images_of(mine.blocks, own, box)) others.merge(blocks_around(theirs.blocks, image));
      for (const int other : others)
        pairs[theirs.ranks.rank_of_block(other)].push_back(out ? Pair{own, other} : Pair{other, own});
    }
    for (auto& [peer, all] : pairs) std::sort(all.begin(), all.end());
    return pairs;
  }
  const GridSpec& grid() const { return source_.blocks.grid(); }
  bool is_folded() const { return !redistributes_ && grid().fold != Fold::none; }
  /// Returns the ways from the panel of a block across seams.
  const std::vector<Crossing>& crossings_from(int panel) const {
    static const std::vector<Crossing> none;
    return crossings_.empty() ? none : crossings_[static_cast<std::size_t>(panel)];
  }
  /// Returns the images of a box of cells around a block across folds and seams, with all that blocks there may receive
  /// or send.
  std::vector<Box> images_of(const Layout& layout, int block, const Box& box) const {
    Widths widths;
    for (int d = 0; d < 3; ++d) widths[d] = std::max(plan_.spec.low[d], plan_.spec.high[d]) + 1;
    if (is_folded()) return {grown(image_across_fold(grid(), Quantity{}, box), widths, widths)};
    std::vector<Box> images;
    widths[0] = widths[1] = std::max(widths[0], widths[1]);
    const int panel = grid().panel_at(layout.owned(block).lo);
    for (const Crossing& crossing : crossings_from(panel))
      if (const Box beyond = beyond_panel(grid().panel(panel), crossing, grown(box, widths, widths)); !beyond.empty())
        images.push_back(grown(crossed(crossing, Quantity{}, Quantity{}, beyond), {1, 1, 1}, {1, 1, 1}));
    return images;
  }
  void add_messages_of(bool out, const std::pair<const int, std::vector<Pair>>& of_peer) {
    const auto groups = message_groups(fields_, plan_.spec.merge);
    for (std::size_t group = 0; group < groups.size(); ++group) {
      Message message{
          .out = out, .peer = of_peer.first, .tag = static_cast<int>(group), .round = 0, .regions = {}, .bytes = 0};
      for (const int q : groups[group])
        for (const Pair& pair : of_peer.second) add_regions(message, pair, q);
      if (message.bytes > 0) plan_.messages.push_back(message);
    }
  }

  /// Returns the points that a block receives of a field, in global coordinates: all that it holds, or its halo.
  std::vector<Target> received(int block, int q) const {
    const Layout& layout = target_.blocks;
    const Box points = held(layout, block, fields_[static_cast<std::size_t>(q)].centring);
    if (redistributes_) return {{points, false}};
    if (points.empty()) return {};
    ExchangeSpec::Sides sides = plan_.spec.sides_of(q);
    for (int d = 0; d < 3; ++d) {
      if (d >= layout.dims() || !fills(layout, block, d, 0, plan_.spec.corners)) sides.low[d] = 0;
      if (d >= layout.dims() || !fills(layout, block, d, 1, plan_.spec.corners)) sides.high[d] = 0;
    }
    std::vector<Target> all;
    if (is_folded()) all.push_back({points, true});
    if (plan_.spec.corners) {
      for (const Box& box : subtract(grown(points, sides.low, sides.high), points)) all.push_back({box, false});
      return all;
    }
    for (int d = 0; d < layout.dims(); ++d)
      for (const bool above : {false, true}) {
        Box face = points;
        face.lo[d] = above ? points.hi[d] : points.lo[d] - sides.low[d];
        face.hi[d] = above ? points.hi[d] + sides.high[d] : points.lo[d];
        all.push_back({face, false});
      }
    return all;
  }
  /// Returns the points of a field that one block sends to another, in an order that both ranks know.
  std::vector<Share> shares(const Pair& pair, int q) const {
    const FoldZones zones = is_folded() ? zones_of(grid(), fields_[static_cast<std::size_t>(q)]) : FoldZones{};
    std::vector<Share> all;
    for (const Target& target : received(pair.to, q))
      if (is_folded())
        add_shares_of_fold(pair, q, zones, target, all);
      else if (redistributes_ || grid().panels.boxes.empty())
        add_owned(pair, q, target.box, all);
      else
        add_shares_of_panels(pair, q, target.box, all);
    return all;
  }
  /// Returns the points of a field that a block sends, each of which is there once, in global coordinates.
  std::vector<Box> sent(int block, int q) const {
    std::vector<Box> boxes = owned_once(source_.blocks, block, fields_[static_cast<std::size_t>(q)]);
    for (Box& box : boxes) box = shifted(box, source_.blocks.owned(block).lo);
    return boxes;
  }
  /// Adds the points of a block, and their images around the grid, that lie in a box.
  void add_owned(const Pair& pair, int q, const Box& target, std::vector<Share>& all) const {
    for (const Box& own : sent(pair.from, q)) add_shares(grid(), own, target, all);
  }
  /// Adds the images of a box around the grid that lie in another box.
  static void add_shares(const GridSpec& grid, const Box& own, const Box& target, std::vector<Share>& all) {
    if (own.empty() || target.empty()) return;
    for (const Index& image : images(grid, own, target))
      if (const Box both = intersect(shifted(own, image), target); !both.empty())
        all.push_back({both, shifted(both, negative(image))});
  }
  void add_shares_of_fold(const Pair& pair, int q, const FoldZones& zones, const Target& target,
                          std::vector<Share>& all) const {
    const Quantity& field = fields_[static_cast<std::size_t>(q)];
    for (const Box& own : sent(pair.from, q)) {
      for (const Box& zone : zones.originals)
        if (!target.own) add_shares(grid(), intersect(own, zone), target.box, all);
      for (const Box& zone : zones.repeated) {
        if (intersect(own, zone).empty()) continue;
        const std::size_t first = all.size();
        add_shares(grid(), image_across_fold(grid(), field, intersect(own, zone)), target.box, all);
        for (std::size_t i = first; i < all.size(); ++i)
          all[i] = {all[i].target, image_across_fold(grid(), field, all[i].source), q, turns_.front()};
      }
    }
  }
  /// Adds points of the same panel, and those beyond its edges, which lie inside other panels.
  void add_shares_of_panels(const Pair& pair, int q, const Box& target, std::vector<Share>& all) const {
    const int panel = grid().panel_at(target_.blocks.owned(pair.to).lo);
    const int from = grid().panel_at(source_.blocks.owned(pair.from).lo);
    const Quantity& field = fields_[static_cast<std::size_t>(q)];
    const Box points = points_of(grid().panel(panel), field, plan_.dims);
    if (from == panel) add_owned(pair, q, beyond_panel(points, {}, target), all);
    for (const Crossing& crossing : crossings_from(panel)) {
      if (crossing.panel != from) continue;
      const Box beyond = beyond_panel(points, crossing, target);
      if (beyond.empty()) continue;
      const int other = field_across(fields_, q, crossing.turn);
      const Quantity& there = fields_[static_cast<std::size_t>(other)];
      const std::size_t first = all.size();
      add_owned(pair, other, crossed(crossing, field, there, beyond), all);
      for (std::size_t i = first; i < all.size(); ++i)
        all[i] = {crossed_back(crossing, field, there, all[i].target), all[i].source, other, crossing.turn};
    }
  }
  Region in_source(const Share& share, int block, int q) const {
    const int field = share.field < 0 ? q : share.field;
    const int quantity = (block - source_.own.front()) * static_cast<int>(fields_.size()) + field;
    return {quantity, shifted(share.source, negative(source_.blocks.owned(block).lo))};
  }
  Region in_target(const Share& share, int block, int q) const {
    const Box box = shifted(share.target, negative(target_.blocks.owned(block).lo));
    if (share.turn != not_turned) {
      const auto number = std::find(turns_.begin(), turns_.end(), share.turn) - turns_.begin();
      return {static_cast<int>(fields_.size()) * (1 + static_cast<int>(number)) + q, turned(box, share.turn)};
    }
    const int before = redistributes_ ? source_.count() : 0;
    return {(before + block - target_.own.front()) * static_cast<int>(fields_.size()) + q, box};
  }
  void add_regions(Message& message, const Pair& pair, int q) const {
    for (const Share& share : shares(pair, q)) {
      message.regions.push_back(message.out ? in_source(share, pair.from, q) : in_target(share, pair.to, q));
      message.bytes += message.regions.back().box.volume() * fields_[static_cast<std::size_t>(q)].element_bytes;
    }
  }

  Plan& plan_;
  const Split &source_, &target_;
  std::vector<Quantity> fields_;  // of a block
  bool redistributes_ = false;
  std::vector<Turn> turns_;                       // of turned fields, in the order of the plan's quantities
  std::vector<std::vector<Crossing>> crossings_;  // from each panel
};

void add_moves(Plan& plan, const Split& source, const Split& target) {
  plan.spec.pattern = Pattern::direct;
  plan.rounds = 1;
  if (apart(plan.spec.merge)) plan.spec.merge = Merge::none;
  Moves moves(plan, source, target);
  moves.add_messages(false);
  moves.add_messages(true);
  moves.add_copies();
  if (plan.meets_itself()) append_turned_fields(plan, source.blocks.grid());
}

}  // namespace

void add_wide_halos(Plan& plan, const Layout& layout) {
  const Split split(layout, plan.rank);
  add_moves(plan, split, split);
}

Plan make_redistribution_plan(const Layout& layout, int rank, const ExchangeSpec& spec) {
  const Split source(layout, rank), target(*spec.onto, rank);
  Plan plan;
  static_cast<PlanBlock&>(plan) = source.plan_block(0);
  plan.rank = rank;
  plan.dims = layout.dims();
  for (int d = 0; d < plan.dims; ++d) plan.split[d] = layout.ranks()[d] > 1;
  for (int n = 1; n < source.count(); ++n) plan.further_blocks.push_back(source.plan_block(n));
  for (int n = 0; n < target.count(); ++n) plan.further_blocks.push_back(target.plan_block(n));
  plan.fields_of_block = quantities_of_block(spec);
  plan.spec = spec;
  plan.spec.blocks = source.count();
  plan.spec.target_blocks = target.count();
  plan.spec.quantities.clear();
  const auto middle = spec.quantities.begin() + plan.fields_of_block;
  for (int n = 0; n < source.count(); ++n)
    plan.spec.quantities.insert(plan.spec.quantities.end(), spec.quantities.begin(), middle);
  for (int n = 0; n < target.count(); ++n)
    plan.spec.quantities.insert(plan.spec.quantities.end(), middle, spec.quantities.end());
  add_moves(plan, source, target);
  return plan;
}

}  // namespace haloscope
