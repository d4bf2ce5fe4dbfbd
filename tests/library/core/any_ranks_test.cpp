// Plans of redistributions, and of halos wider than blocks, for many ranks, without MPI: messages match at both ends,
// and every point that a rank holds, or has in its halo, arrives once, from its owner.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <tuple>

#include "each_point.hpp"
#include "haloscope/extend/plan.hpp"
#include "random_split.hpp"

namespace haloscope {
namespace {

using namespace test;

/// A split of a grid by random cuts, over ranks in random order, some without cells.
Layout random_split(std::mt19937& random, const GridSpec& grid, int ranks) {
  std::vector<Box> boxes = random_blocks(random, grid, ranks);
  boxes.resize(static_cast<std::size_t>(ranks));
  std::shuffle(boxes.begin(), boxes.end(), random);
  return {grid, boxes};
}

/// The number of a rank's point in the grid, equal for the same point at both ends of a periodic dimension.
std::int64_t number_of(const Layout& layout, int rank, const Index& p) {
  std::int64_t number = 0;
  for (int d = 0; d < 3; ++d) {
    std::int64_t at = layout.owned(rank).lo[d] + p[d];
    if (layout.grid().periodic[d]) at = (at % layout.grid().cells[d] + layout.grid().cells[d]) % layout.grid().cells[d];
    number = number * 100 + at;
  }
  return number;
}

using Numbers = std::vector<std::int64_t>;

/// The numbers of the points of a message's regions, in their order.
Numbers numbers_in(const Layout& layout, int rank, const Message& message) {
  Numbers all;
  for (const Region& region : message.regions)
    each_point(region.box, [&](const Index& p) { all.push_back(number_of(layout, rank, p)); });
  return all;
}

void check_plans(const Layout& from, const Layout& to, const ExchangeSpec& spec) {
  std::map<std::tuple<int, int, int>, Numbers> sent, received;  // by sender, receiver, tag
  for (int rank = 0; rank < from.size(); ++rank) {
    const Plan plan = make_plan(from, rank, spec);
    const int fields = first_target(plan.spec);
    std::vector<std::map<Index, int>> arrivals(static_cast<std::size_t>(fields));
    for (const Message& message : plan.messages) {
      const auto ends =
          message.out ? std::tuple{rank, message.peer, message.tag} : std::tuple{message.peer, rank, message.tag};
      (message.out ? sent : received)[ends] = numbers_in(message.out ? from : to, rank, message);
      for (const Region& region : message.regions) {
        EXPECT_EQ(region.quantity < fields, message.out);
        EXPECT_TRUE(plan.owned(region.quantity).contains(region.box));
        if (!message.out) each_point(region.box, [&](const Index& p) { ++arrivals[region.quantity - fields][p]; });
      }
    }
    for (const Copy& copy : plan.copies)
      each_point(copy.to, [&](const Index& p) {
        ++arrivals[copy.quantity - fields][p];
        const Index source{p[0] + copy.shift[0], p[1] + copy.shift[1], p[2] + copy.shift[2]};
        EXPECT_TRUE(plan.owned(copy.source).contains(source));
        EXPECT_EQ(number_of(from, rank, source), number_of(to, rank, p));
      });
    for (int q = 0; q < fields; ++q) {
      EXPECT_EQ(static_cast<std::int64_t>(arrivals[q].size()), plan.owned(fields + q).volume());
      for (const auto& [point, count] : arrivals[q]) EXPECT_EQ(count, 1);
    }
  }
  EXPECT_EQ(sent, received);
}

TEST(RedistributionPlan, EveryHeldPointArrivesOnceAndMessagesMatchAtBothEnds) {
  std::mt19937 random(41);
  for (int n = 0; n < 150; ++n) {
    GridSpec grid;
    grid.dims = pick(random, 1, 3);
    for (int d = 0; d < grid.dims; ++d) {
      grid.cells[d] = pick(random, 2, 9);
      grid.periodic[d] = pick(random, 0, 1) != 0;
    }
    const int ranks = pick(random, 1, 24);
    const Layout from = random_split(random, grid, ranks);
    ExchangeSpec spec;
    spec.quantities = {{"u", 8}, {"v", 4, ScalarType::integer}, {"w", 8}};
    for (Quantity& q : spec.quantities) q.centring = static_cast<Centring>(pick(random, 0, 1 + grid.dims));
    const std::vector<Quantity> fields = spec.quantities;
    spec.quantities.insert(spec.quantities.end(), fields.begin(), fields.end());
    spec.low = spec.high = {0, 0, 0};
    spec.pattern = Pattern::direct;
    spec.merge = static_cast<Merge>(pick(random, 0, 4));
    spec.motion = Motion::redistribute;
    spec.onto = random_split(random, grid, ranks);
    check_plans(from, *spec.onto, spec);
    if (testing::Test::HasFailure()) return;
  }
}

/// Returns true if a halo's point lies in the grid, on sides where the rank has neighbours, and, without corners, not
/// at an edge or a corner.
bool is_filled(const Layout& layout, const Plan& plan, int q, const Index& p) {
  const Box owned = plan.owned(q);
  int outside = 0;
  for (int d = 0; d < layout.dims(); ++d) {
    const int side = p[d] < owned.lo[d] ? 0 : p[d] >= owned.hi[d] ? 1 : -1;
    if (side < 0) continue;
    ++outside;
    const std::int64_t at = layout.owned(plan.rank).lo[d] + p[d];
    const std::int64_t end = layout.grid().cells[d] + staggered(plan.spec.quantities[q].centring, d);
    if (!plan.has_neighbour[d][side] || (!layout.grid().periodic[d] && (at < 0 || at >= end))) return false;
  }
  return outside > 0 && (outside == 1 || plan.spec.corners);
}

void check_wide(const Layout& layout, const ExchangeSpec& spec) {
  std::map<std::tuple<int, int, int>, Numbers> sent, received;  // by sender, receiver, tag
  for (int rank = 0; rank < layout.size(); ++rank) {
    const Plan plan = make_plan(layout, rank, spec);
    std::map<std::pair<int, Index>, int> arrivals;
    for (const Message& message : plan.messages) {
      const auto ends =
          message.out ? std::tuple{rank, message.peer, message.tag} : std::tuple{message.peer, rank, message.tag};
      (message.out ? sent : received)[ends] = numbers_in(layout, rank, message);
      for (const Region& region : message.regions) {
        if (message.out) {
          EXPECT_TRUE(plan.owned(region.quantity).contains(region.box));
        } else {
          each_point(region.box, [&](const Index& p) { ++arrivals[{region.quantity, p}]; });
        }
      }
    }
    for (const Copy& copy : plan.copies)
      each_point(copy.to, [&](const Index& p) {
        ++arrivals[{copy.quantity, p}];
        const Index source{p[0] + copy.shift[0], p[1] + copy.shift[1], p[2] + copy.shift[2]};
        EXPECT_TRUE(plan.owned(copy.quantity).contains(source));
        EXPECT_EQ(number_of(layout, rank, source), number_of(layout, rank, p));
      });
    for (int q = 0; q < static_cast<int>(plan.spec.quantities.size()); ++q)
      if (!plan.owned(q).empty())
        each_point(plan.allocated(q), [&](const Index& p) {
          const auto found = arrivals.find({q, p});
          EXPECT_EQ(found == arrivals.end() ? 0 : found->second, is_filled(layout, plan, q, p) ? 1 : 0);
        });
  }
  EXPECT_EQ(sent, received);
}

TEST(WideHaloPlan, EveryGhostPointArrivesOnceAndMessagesMatchAtBothEnds) {
  std::mt19937 random(42);
  for (int n = 0; n < 100; ++n) {
    GridSpec grid;
    grid.dims = pick(random, 1, 3);
    ExchangeSpec spec;
    for (int d = 0; d < grid.dims; ++d) {
      grid.cells[d] = pick(random, 1, 7);
      grid.periodic[d] = d == 0 || pick(random, 0, 1) != 0;
      spec.low[d] = pick(random, 0, 4);
      spec.high[d] = pick(random, 0, 4);
    }
    const Layout layout = random_split(random, grid, pick(random, 1, 16));
    spec.quantities = {{"u", 8}, {"v", 4, ScalarType::integer}};
    for (Quantity& q : spec.quantities) q.centring = static_cast<Centring>(pick(random, 0, 1 + grid.dims));
    spec.corners = pick(random, 0, 2) > 0;
    spec.merge = static_cast<Merge>(pick(random, 0, 4));
    spec.beyond = true;
    spec.low[0] = static_cast<int>(layout.smallest_extent(0)) + pick(random, 1, 3);
    check_wide(layout, spec);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace haloscope
