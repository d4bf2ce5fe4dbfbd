// Reordering: neighbours on one node and socket, by permutations that are never worse than the original order.
#include "haloscope/extend/reorder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "haloscope/error.hpp"

namespace haloscope {
namespace {

std::vector<Box> blocks_of(const Layout& layout) {
  std::vector<Box> blocks;
  for (int rank = 0; rank < layout.size(); ++rank) blocks.push_back(layout.owned(rank));
  return blocks;
}

/// Each block belongs to a rank of the new order; ranks are where the layout puts them.
void expect_same_blocks(const Layout& original, const Layout& found) {
  ASSERT_EQ(found.ranks(), original.ranks());
  std::set<int> owners;
  for (const Box& block : blocks_of(original)) {
    const int rank = found.owner(block.lo);
    EXPECT_EQ(found.owned(rank), block);
    EXPECT_EQ(found.rank_at(found.coords(rank)), rank);
    owners.insert(rank);
  }
  EXPECT_EQ(owners.size(), static_cast<std::size_t>(original.size()));
  for (int d : {0, 1, 2}) EXPECT_EQ(found.smallest_extent(d), original.smallest_extent(d));
}

/// Ranks of each node follow each other, as schedulers place them.
std::vector<int> filled(int ranks, int per_node) {
  std::vector<int> node;
  for (int rank = 0; rank < ranks; ++rank) node.push_back(rank / per_node);
  return node;
}

TEST(Reordered, NewNumbersMoveRanksToTheBlocksNamed) {
  const Layout layout({2, {7, 5, 1}, {true, false, false}}, {3, 2, 1});
  const std::vector<int> from{4, 2, 0, 5, 1, 3};
  const Layout other = layout.renumbered(from);
  expect_same_blocks(layout, other);
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(other.owned(rank), layout.owned(from[rank]));
    for (int way = 0; way < 9; ++way) {
      const std::array<int, 3> offset{way % 3 - 1, way / 3 - 1, 0};
      const int there = layout.neighbour(from[rank], offset), here = other.neighbour(rank, offset);
      EXPECT_EQ(here < 0 ? -1 : from[here], there);
    }
  }
  EXPECT_EQ(blocks_of(other.renumbered({2, 4, 1, 5, 0, 3})), blocks_of(layout)) << "and back";
  for (const std::vector<int>& wrong :
       {std::vector<int>{0, 1, 2}, {0, 1, 2, 3, 4, 4}, {0, 1, 2, 3, 4, 6}, {-1, 1, 2, 3, 4, 5}})
    EXPECT_THROW(layout.renumbered(wrong), UsageError);
}

TEST(Reordered, NodesThatDivideTheProcessGridGetBoxes) {
  // Rows of the process grid, x fastest, fill nodes sequentially: slabs of 12x3 positions and more. Boxes of 3x3x4 have
  // the least surface.
  const Layout layout({3, {9 * 64, 9 * 64, 12 * 64}, {true, true, true}}, {9, 9, 12});
  const Sites sites{filled(layout.size(), 36), {}};
  const Layout found = reordered(layout, sites);
  expect_same_blocks(layout, found);
  const std::int64_t face = 64 * 64;
  EXPECT_EQ(crossings(found, sites).nodes, 27 * (3 * 3 + 3 * 4 + 3 * 4) * face);
  EXPECT_GT(10 * crossings(layout, sites).nodes, 14 * crossings(found, sites).nodes);
  for (int rank = 0; rank < layout.size(); ++rank)
    for (int d = 0; d < 3; ++d) {
      const int first = rank / 36 * 36, extent = d == 2 ? 4 : 3;
      EXPECT_EQ(found.coords(rank)[d] / extent, found.coords(first)[d] / extent);
    }
}

TEST(Reordered, SocketsOfANodeGetBoxesOfItsBox) {
  const Layout layout({3, {96, 96, 96}, {true, true, true}}, {4, 4, 4});
  Sites sites{filled(64, 8), {}};  // boxes of 2x2x2, their sockets of 2x2x1
  for (int rank = 0; rank < 64; ++rank) sites.socket.push_back(rank % 2);
  const Layout found = reordered(layout, sites);
  expect_same_blocks(layout, found);
  const std::int64_t face = 24 * 24;
  EXPECT_EQ(crossings(found, sites).nodes, 3 * 2 * 16 * face);
  EXPECT_EQ(crossings(found, sites).sockets, 8 * 4 * face);
}

TEST(Reordered, AnOrderThatCannotBeBetterIsKept) {
  const Layout line({1, {64, 1, 1}, {true, false, false}}, {16, 1, 1});
  EXPECT_EQ(blocks_of(reordered(line, {filled(16, 4), {}})), blocks_of(line));
  const Layout plane({2, {64, 64, 1}, {true, true, false}}, {4, 4, 1});
  EXPECT_EQ(blocks_of(reordered(plane, {})), blocks_of(plane)) << "nothing is known of nodes";
  EXPECT_EQ(blocks_of(reordered(plane, {filled(16, 16), {}})), blocks_of(plane)) << "one node";
  EXPECT_EQ(blocks_of(reordered(plane, {filled(16, 1), {}})), blocks_of(plane)) << "a rank each";
}

TEST(Reordered, NodesAreNamedByAnyNumbersAndSocketsOncePerNode) {
  const Layout layout({2, {32, 32, 1}, {true, true, false}}, {4, 4, 1});
  Sites few{filled(16, 4), {}}, many = few;
  for (int& node : many.node) node = 1000 - 7 * node;
  for (int rank = 0; rank < 16; ++rank) {
    few.socket.push_back(rank / 2);  // over all nodes
    many.socket.push_back(rank / 2 % 2);
  }
  EXPECT_EQ(crossings(layout, few), crossings(layout, many));
  EXPECT_EQ(blocks_of(reordered(layout, few)), blocks_of(reordered(layout, many)));
}

TEST(Reordered, SitesOfAnotherNumberOfRanksAreRefused) {
  const Layout layout({2, {32, 32, 1}, {true, true, false}}, {4, 4, 1});
  EXPECT_THROW(reordered(layout, {filled(15, 4), {}}), UsageError);
  EXPECT_THROW(crossings(layout, {{}, filled(17, 4)}), UsageError);
}

/// A layout of 1 to 3 dimensions, blocks of any proportions, and sites of any kind.
struct Any {
  Layout layout;
  Sites sites;
};

Any any_case(std::mt19937& random) {
  const auto draw = [&](int most) { return std::uniform_int_distribution(1, most)(random); };
  GridSpec grid{draw(3), {1, 1, 1}, {}};
  ProcessGrid ranks{1, 1, 1};
  for (int d = 0; d < grid.dims; ++d) {
    ranks[d] = draw(grid.dims == 3 ? 6 : 12);
    grid.cells[d] = ranks[d] * draw(9) + draw(3) - 1;
    grid.periodic[d] = draw(2) == 1;
  }
  Any any{Layout(grid, ranks, draw(2) == 1 ? RankOrder{0, 1, 2} : RankOrder{2, 1, 0}), {}};
  const int nodes = draw(9), per_node = draw(12), way = draw(3);
  for (int rank = 0; rank < any.layout.size(); ++rank) {
    any.sites.node.push_back(way == 1 ? rank / per_node : way == 2 ? rank % nodes : draw(nodes));
    any.sites.socket.push_back(draw(3));
  }
  return any;
}

TEST(Reordered, AnyLayoutOnAnySitesIsAPermutationAndNeverWorse) {
  std::mt19937 random(11);
  int better = 0;
  for (int round = 0; round < 400; ++round) {
    const Any any = any_case(random);
    const Layout found = reordered(any.layout, any.sites);
    expect_same_blocks(any.layout, found);
    const Crossings before = crossings(any.layout, any.sites), after = crossings(found, any.sites);
    ASSERT_LE(after, before) << round;
    better += after < before;
    ASSERT_EQ(blocks_of(reordered(any.layout, any.sites)), blocks_of(found));
  }
  EXPECT_GT(better, 200);
}

TEST(Reordered, HolesStayWhereTheyAre) {
  const GridSpec grid{2, {6, 6, 1}, {true, false, false}};
  std::vector<Box> ring;
  for (int place : {0, 1, 2, 3, 5, 6, 7, 8}) {
    const int x = 2 * (place % 3), y = 2 * (place / 3);
    ring.push_back({{x, y, 0}, {x + 2, y + 2, 1}});
  }
  const Layout layout(grid, ring, true);
  const Sites sites{{0, 1, 0, 1, 0, 1, 0, 1}, {}};
  const Layout found = reordered(layout, sites);
  expect_same_blocks(layout, found);
  EXPECT_EQ(found.rank_at({1, 1, 0}), -1);
  EXPECT_LT(crossings(found, sites), crossings(layout, sites));
}

/// The least crossings of all ways to assign positions to nodes of `size` ranks.
class Exhaustive {
 public:
  Exhaustive(const Layout& layout, int size) : layout_(layout), size_(size), node_(layout.size(), -1) { next(0); }
  std::int64_t least() const { return least_; }

 private:
  /// The first free position opens a node, others join it.
  void next(int node) {
    const auto free = std::find(node_.begin(), node_.end(), -1);
    if (free == node_.end()) {
      least_ = std::min(least_, crossings(layout_, {node_, {}}).nodes);
      return;
    }
    *free = node;
    fill(node, static_cast<int>(free - node_.begin()) + 1, size_ - 1);
    *free = -1;
  }
  void fill(int node, int from, int wanted) {
    if (wanted == 0) return next(node + 1);
    for (int place = from; place < layout_.size(); ++place) {
      if (node_[place] >= 0) continue;
      node_[place] = node;
      fill(node, place + 1, wanted - 1);
      node_[place] = -1;
    }
  }
  const Layout& layout_;
  int size_;
  std::vector<int> node_;
  std::int64_t least_ = std::numeric_limits<std::int64_t>::max();
};

struct Small {
  ProcessGrid ranks;
  int per_node;
};

/// Calls see(found, least, text) for grids of these ranks with any dimensions periodic and blocks of several
/// proportions.
template <class See>
void for_each_way(const std::vector<Small>& all, See see) {
  for (const Small& small : all)
    for (int around : {0, 3, 5, 7})
      for (const Index block : {Index{8, 8, 8}, Index{8, 3, 5}, Index{2, 9, 4}}) {
        GridSpec grid{3, {}, {(around & 1) != 0, (around & 2) != 0, (around & 4) != 0}};
        for (int d = 0; d < 3; ++d) grid.cells[d] = small.ranks[d] * block[d];
        const Layout layout(grid, small.ranks);
        Sites sites{std::vector<int>(static_cast<std::size_t>(layout.size())), {}};
        const int stride = layout.size() == 10 ? 3 : layout.size() == 9 ? 4 : 5;  // scatters ranks over nodes
        for (int rank = 0; rank < layout.size(); ++rank)
          sites.node[rank] = rank * stride % layout.size() / small.per_node;
        std::string text = "by " + std::to_string(small.per_node) + ", periodic " + std::to_string(around);
        for (int d = 0; d < 3; ++d)
          text += "; " + std::to_string(small.ranks[d]) + " blocks of " + std::to_string(block[d]);
        see(crossings(reordered(layout, sites), sites).nodes, Exhaustive(layout, small.per_node).least(), text);
      }
}

TEST(Reordered, NodesThatDivideSmallGridsHaveTheLeastCrossingsThereAre) {
  for_each_way(
      {{{4, 2, 1}, 4},
       {{4, 2, 1}, 2},
       {{6, 2, 1}, 4},
       {{3, 4, 1}, 6},
       {{3, 3, 1}, 3},
       {{2, 3, 2}, 6},
       {{2, 2, 2}, 4},
       {{2, 2, 2}, 2},
       {{10, 1, 1}, 5},
       {{2, 6, 1}, 6}},
      [](std::int64_t found, std::int64_t least, const std::string& text) { EXPECT_EQ(found, least) << text; });
}

TEST(Reordered, WhereNodesWouldHaveToBeLShapedCrossingsAreAFewPercentMore) {
  int more = 0;
  for_each_way({{{4, 3, 1}, 3}, {{2, 3, 2}, 4}, {{2, 2, 3}, 3}},
               [&](std::int64_t found, std::int64_t least, const std::string& text) {
                 EXPECT_LE(20 * found, 21 * least) << text;
                 more += found > least;
               });
  EXPECT_GT(more, 0);
}

TEST(Reordered, AHundredThousandRanksOnUnevenNodesAreNotLeftAsTheyAre) {
  const Layout layout({3, {46 * 20, 47 * 20, 47 * 20}, {true, true, true}}, {46, 47, 47});
  Sites sites;
  for (int rank = 0; rank < layout.size(); ++rank) {
    sites.node.push_back(rank / 127);
    sites.socket.push_back(rank % 127 / 64);
  }
  const Crossings before = crossings(layout, sites), after = crossings(reordered(layout, sites), sites);
  EXPECT_LT(2 * after.nodes, before.nodes);
}

}  // namespace
}  // namespace haloscope
