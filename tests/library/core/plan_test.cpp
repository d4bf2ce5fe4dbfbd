#include "haloscope/extend/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "haloscope/error.hpp"
#include "haloscope/extend/schedule.hpp"
#include "haloscope/strategy.hpp"
#include "simulated_plans.hpp"
#include "texts.hpp"

using namespace haloscope;

namespace {

ExchangeSpec floats(int width, Pattern pattern) {
  ExchangeSpec spec{.quantities = {Quantity{"u", 4}}};
  spec.low = spec.high = {width, width, width};
  spec.pattern = pattern;
  return spec;
}

Layout periodic2d(std::int64_t x, std::int64_t y, int px, int py) {
  return Layout({2, {x, y, 1}, {true, true, false}}, {px, py, 1});
}

/// The sent message of a round that moves up (towards higher coordinates) or down.
const Message& sent(const Plan& plan, int round, bool up) {
  for (const Message& m : plan.messages)
    if (m.out && m.round == round && (m.tag % 27 > 13) == up) return m;
  throw std::runtime_error("no such message");
}

TEST(MessageSizes, W9_LaterDimensionsCarryTheHalosOfEarlierOnes) {
  for (const ProcessGrid grid : {ProcessGrid{2, 2, 2}, ProcessGrid{2, 2, 3}, ProcessGrid{3, 3, 3}}) {
    const Layout layout({3, {12, 13, 14}, {true, true, true}}, grid);
    for (int rank = 0; rank < layout.size(); ++rank) {
      const Plan plan = make_plan(layout, rank, ExchangeSpec{});
      const auto [nx, ny, nz] = plan.cells;
      const std::int64_t points[] = {ny * nz, (nx + 2) * nz, (nx + 2) * (ny + 2)};
      EXPECT_EQ(plan.messages_out(), 6);
      EXPECT_EQ(plan.rounds, 3);
      for (int round = 0; round < 3; ++round)
        for (bool up : {false, true}) EXPECT_EQ(sent(plan, round, up).bytes, 8 * points[round]);
    }
  }
}

TEST(MessageSizes, BytesBetweenGroupsOfRanksAreThoseThatLeaveAGroup) {
  const Layout layout({2, {8, 6, 1}, {true, true, false}}, {2, 2, 1});
  for (int rank = 0; rank < 4; ++rank) {
    const Plan plan = make_plan(layout, rank, floats(1, Pattern::ordered));
    EXPECT_EQ(plan.bytes_between({0, 0, 0, 0}), 0);
    EXPECT_EQ(plan.bytes_between({0, 1, 0, 1}), 2 * 4 * 3) << "two columns of 3 floats";
    EXPECT_EQ(plan.bytes_between({0, 0, 1, 1}), 2 * 4 * 6) << "two rows of 4 floats and their corners";
    EXPECT_EQ(plan.bytes_between({0, 1, 2, 3}), plan.bytes_out());
  }
}

/// The sum of products of the points of all ranks and fields.
double product(test::SimulatedPlans& a, test::SimulatedPlans& b, int ranks) {
  double sum = 0;
  for (int rank = 0; rank < ranks; ++rank)
    for (int q = 0; q < 3; ++q)
      test::each_point(a.plan(rank).allocated(q), [&](const Index& p) { sum += a.at(rank, q, p) * b.at(rank, q, p); });
  return sum;
}

/// An exchange E is linear, and so is an accumulation A: A is the transpose of E if (E x) y = x (A y) for all x and y.
TEST(Accumulation, IsTheTransposeOfTheExchange) {
  std::mt19937 random(6);
  for (int n = 0; n < 150 && !HasFailure(); ++n) {
    GridSpec grid{.dims = test::pick(random, 1, 3)};
    ProcessGrid ranks{1, 1, 1};
    for (int d = 0; d < grid.dims; ++d) {
      ranks[static_cast<std::size_t>(d)] = test::pick(random, 1, 3);
      grid.cells[d] = ranks[static_cast<std::size_t>(d)] * test::pick(random, 1, 3);
      grid.periodic[d] = test::pick(random, 0, 1) != 0;
    }
    const Layout layout(grid, ranks);
    ExchangeSpec spec = test::three_fields(random, grid);
    for (Quantity& q : spec.quantities) q.centring = Centring::cell, q.edges = {};
    spec.corners = test::pick(random, 0, 1) != 0;
    spec.pattern = static_cast<Pattern>(test::pick(random, 0, 1));
    spec.merge = static_cast<Merge>(test::pick(random, 0, 4));
    ExchangeSpec reverse = spec;
    reverse.motion = Motion::accumulate;
    test::SimulatedPlans x(layout, spec), ex(layout, spec), y(layout, reverse), ay(layout, reverse);
    for (int rank = 0; rank < layout.size(); ++rank)
      for (int q = 0; q < 3; ++q)
        test::each_point(x.plan(rank).allocated(q), [&](const Index& p) {
          x.at(rank, q, p) = ex.at(rank, q, p) = test::pick(random, -9, 9);
          y.at(rank, q, p) = ay.at(rank, q, p) = test::pick(random, -9, 9);
        });
    ex.run();
    ay.run();
    EXPECT_EQ(product(ex, y, layout.size()), product(x, ay, layout.size())) << "case " << n;
  }
}

/// The value of the point k beyond an edge, where inner points have the values 0, 1, ... away from the edge, in cells
/// or, with a point on the edge itself, in nodes.
double beyond_edge(Edge edge, int k, bool nodes, double untouched) {
  if (edge == Edge::fixed) return untouched;
  if (edge == Edge::nearest) return 0;
  const double mirrored = nodes ? k : k - 1;
  return edge == Edge::odd ? -mirrored : mirrored;
}

TEST(Edges, GhostPointsBeyondEachSideHaveTheValuesOfTheirRule) {
  constexpr double untouched = -99;
  const std::vector<Edge> rules{Edge::fixed, Edge::even, Edge::odd, Edge::nearest};
  for (int ranks : {1, 2, 3})
    for (const bool nodes : {false, true})
      for (const Edge low : rules)
        for (const Edge high : rules) {
          const Layout layout({1, {9, 1, 1}, {}}, {ranks, 1, 1});
          ExchangeSpec spec{.quantities = {{"u", 8}}, .low = {2, 0, 0}, .high = {2, 0, 0}};
          spec.quantities[0].edges[0] = {low, high};
          spec.quantities[0].centring = nodes ? Centring::node : Centring::cell;
          const std::int64_t last = nodes ? 9 : 8;
          for (const bool from_low : {true, false}) {  // the side from which points are numbered
            test::SimulatedPlans plans(layout, spec);
            for (int rank = 0; rank < ranks; ++rank) {
              const std::int64_t begin = layout.owned(rank).lo[0];
              test::each_point(plans.plan(rank).allocated(0), [&](const Index& p) {
                const std::int64_t g = begin + p[0];
                const auto value = static_cast<double>(from_low ? g : last - g);
                plans.at(rank, 0, p) = g < 0 || g > last ? untouched : value;
              });
            }
            plans.run();
            const int rank = from_low ? 0 : ranks - 1;
            const std::int64_t begin = layout.owned(rank).lo[0];
            for (int k : {1, 2})
              EXPECT_EQ(plans.at(rank, 0, {(from_low ? -k : last + k) - begin, 0, 0}),
                        beyond_edge(from_low ? low : high, k, nodes, untouched))
                  << ranks << " ranks, nodes " << nodes << ", from low " << from_low << ", point " << k;
          }
        }
}

TEST(MessageSizes, W9_ATaskThatIsItsOwnNeighbourSendsItselfNothing) {
  const Layout layout({3, {12, 13, 14}, {true, true, true}}, {1, 1, 2});
  const Plan plan = make_plan(layout, 0, ExchangeSpec{});
  EXPECT_EQ(plan.messages_out(), 2);
  EXPECT_EQ(plan.copies.size(), 4u);
  EXPECT_TRUE(plan.own_neighbour[0] && plan.own_neighbour[1] && !plan.own_neighbour[2]);
  EXPECT_EQ(make_plan(Layout({3, {12, 13, 14}, {true, true, true}}, {1, 1, 1}), 0, ExchangeSpec{}).messages_out(), 0);
}

TEST(MessageSizes, V6_V7_OrderedSendsFourMessagesDirectEightAndBothTheSameBytes) {
  for (int depth : {1, 2, 3, 5, 8}) {
    const Layout layout = periodic2d(64, 48, 2, 2);
    const std::int64_t h = 24, l = 32, bytes = 8 * depth * (h + l) + 16 * depth * depth;
    const Plan ordered = make_plan(layout, 3, floats(depth, Pattern::ordered));
    const Plan direct = make_plan(layout, 3, floats(depth, Pattern::direct));
    EXPECT_EQ(ordered.messages_out(), 4);
    EXPECT_EQ(direct.messages_out(), 8);
    EXPECT_EQ(ordered.bytes_out(), bytes);
    EXPECT_EQ(direct.bytes_out(), bytes);
  }
}

TEST(MessageSizes, V25_BytesFollowTheFormulaForRandomSizes) {
  std::mt19937 random(7);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int trial = 0; trial < 300; ++trial) {
    const int px = draw(2, 4), py = draw(2, 4), depth = draw(1, 9);
    const Layout layout = periodic2d(px * depth + draw(0, 90), py * depth + draw(0, 90), px, py);
    const int rank = draw(0, layout.size() - 1);
    for (Pattern pattern : {Pattern::ordered, Pattern::direct}) {
      const Plan plan = make_plan(layout, rank, floats(depth, pattern));
      const std::int64_t h = plan.cells[1], l = plan.cells[0];
      ASSERT_EQ(plan.bytes_out(), 8 * depth * (h + l) + 16 * depth * depth)
          << "h " << h << " l " << l << " D " << depth;
    }
  }
}

TEST(MessageSizes, V3_MessagesAreEquallyLongOnBothSidesOfUnevenBlocks) {
  const Layout layout = periodic2d(10, 11, 3, 3);
  for (int rank = 0; rank < layout.size(); ++rank)
    for (const Message& m : make_plan(layout, rank, floats(2, Pattern::ordered)).messages) {
      if (!m.out) continue;
      const Plan other = make_plan(layout, m.peer, floats(2, Pattern::ordered));
      const auto twin = std::find_if(other.messages.begin(), other.messages.end(),
                                     [&](const Message& t) { return !t.out && t.peer == rank && t.tag == m.tag; });
      ASSERT_NE(twin, other.messages.end());
      EXPECT_EQ(twin->bytes, m.bytes);
    }
}

TEST(MessageSizes, V4_FewRanksGetSeveralMessagesEachToldApartByTag) {
  const Plan plan = make_plan(periodic2d(20, 20, 2, 2), 0, floats(1, Pattern::direct));
  std::map<int, std::vector<int>> tags;
  for (const Message& m : plan.messages)
    if (m.out) tags[m.peer].push_back(m.tag);
  EXPECT_EQ(tags[1].size(), 2u);
  EXPECT_EQ(tags[2].size(), 2u);
  EXPECT_EQ(tags[3].size(), 4u);
  for (auto& [peer, list] : tags) {
    std::sort(list.begin(), list.end());
    EXPECT_EQ(std::unique(list.begin(), list.end()), list.end());
  }
}

TEST(MessageSizes, OneMessagePerDistinctPeerWhenMerged) {
  ExchangeSpec spec = floats(1, Pattern::direct);
  spec.merge_peers = true;
  const Plan plan = make_plan(periodic2d(20, 20, 2, 2), 0, spec);
  EXPECT_EQ(plan.messages_out(), 3);
  EXPECT_EQ(plan.bytes_out(), make_plan(periodic2d(20, 20, 2, 2), 0, floats(1, Pattern::direct)).bytes_out());
}

// ---- fields apart ---------------------------------------------------------------------------------------------------

ExchangeSpec two_fields(Merge merge, Pattern pattern) {
  ExchangeSpec spec = floats(1, pattern);
  spec.quantities.assign(2, spec.quantities.front());
  spec.merge = merge;
  return spec;
}

/// Round and field of each message that is sent, in their order.
std::vector<std::pair<int, int>> sent_by_round(const Plan& plan) {
  std::vector<std::pair<int, int>> list;
  for (const Message& m : plan.messages)
    if (m.out) list.emplace_back(m.round, m.regions.front().quantity);
  return list;
}

TEST(FieldsApart, SerialOnesAreExchangedOneAfterAnother) {
  const Plan ordered = make_plan(periodic2d(20, 20, 2, 2), 0, two_fields(Merge::serial, Pattern::ordered));
  EXPECT_EQ(ordered.rounds, 4);
  EXPECT_EQ(sent_by_round(ordered),
            (std::vector<std::pair<int, int>>{{0, 0}, {0, 0}, {1, 0}, {1, 0}, {2, 1}, {2, 1}, {3, 1}, {3, 1}}));
  EXPECT_EQ(make_plan(periodic2d(20, 20, 2, 2), 0, two_fields(Merge::serial, Pattern::direct)).rounds, 2);
}

TEST(FieldsApart, PipelinedOnesTakeTurnsInEachDimension) {
  const Plan ordered = make_plan(periodic2d(20, 20, 2, 2), 0, two_fields(Merge::pipelined, Pattern::ordered));
  EXPECT_EQ(sent_by_round(ordered),
            (std::vector<std::pair<int, int>>{{0, 0}, {0, 0}, {1, 1}, {1, 1}, {2, 0}, {2, 0}, {3, 1}, {3, 1}}));
}

TEST(FieldsApart, OnlyAPipelineSendsBeforeTheLastRoundHasArrived) {
  for (const Merge merge : {Merge::serial, Merge::pipelined})
    for (const Pattern pattern : {Pattern::ordered, Pattern::direct}) {
      const Program program = exchange_program(make_plan(periodic2d(20, 20, 2, 2), 0, two_fields(merge, pattern)));
      int under_way = 0, most = 0;
      for (const Op& op : program.ops) {
        under_way += (op.kind == OpKind::send) - (op.kind == OpKind::wait);
        most = std::max(most, under_way);
      }
      EXPECT_EQ(under_way, 0);
      EXPECT_EQ(most, merge == Merge::pipelined ? 2 : 1);
    }
}

TEST(FieldsApart, APipelineIsRefusedWhereRoundsAreCollective) {
  EXPECT_THROW(Strategy("ordered:fields=pipelined/rma-fence"), UsageError);
  EXPECT_NO_THROW(Strategy("ordered:fields=serial/rma-fence"));
  EXPECT_EQ(to_string(Strategy("direct:fields=pipelined/p2p")), "direct:fields=pipelined/p2p");
}

TEST(Centring, SharedPlanesAreNeverSent) {
  ExchangeSpec spec{.quantities = {Quantity{"v", 8, ScalarType::real, Centring::node}}};
  const Plan plan = make_plan(Layout({1, {8, 1, 1}, {true, false, false}}, {2, 1, 1}), 0, spec);
  EXPECT_EQ(plan.owned(0), (Box{{0, 0, 0}, {5, 1, 1}}));
  EXPECT_EQ(sent(plan, 0, true).regions[0].box, (Box{{3, 0, 0}, {4, 1, 1}}));
  EXPECT_EQ(sent(plan, 0, false).regions[0].box, (Box{{1, 0, 0}, {2, 1, 1}}));
}

TEST(Widths, EachSideAndDimensionHasItsOwn) {
  ExchangeSpec spec = floats(0, Pattern::ordered);
  spec.low = {3, 0, 0};
  spec.high = {1, 2, 0};
  const Plan plan = make_plan(periodic2d(20, 20, 2, 2), 0, spec);
  EXPECT_EQ(plan.messages_out(), 3);
  EXPECT_EQ(sent(plan, 0, true).bytes, 4 * 3 * 10);
  EXPECT_EQ(sent(plan, 0, false).bytes, 4 * 1 * 10);
  EXPECT_EQ(sent(plan, 1, false).bytes, 4 * 2 * (10 + 4));
}

TEST(Offsets, BytesAboveTheRangeOf32BitsAreExact) {
  const Layout layout({3, {100000, 100000, 8}, {true, true, true}}, {1, 1, 2});
  const Plan plan = make_plan(layout, 0, ExchangeSpec{});
  EXPECT_EQ(sent(plan, 2, true).bytes, 8LL * 100002 * 100002);
}

TEST(BadInput, V5_AHaloWiderThanTheBlockItIsFilledFromIsRefused) {
  const Layout layout = periodic2d(20, 11, 2, 2);  // the smallest block is 10 x 5
  EXPECT_NO_THROW(make_plan(layout, 0, floats(5, Pattern::ordered)));
  for (Pattern pattern : {Pattern::ordered, Pattern::direct}) {
    const std::string error = test::error_of([&] { make_plan(layout, 0, floats(6, pattern)); });
    EXPECT_PART(error, "6 layers in y");
    EXPECT_PART(error, "reduce the depth");
  }
}

TEST(BadInput, ImpossibleExchangesAreRefused) {
  const Layout layout = periodic2d(20, 20, 2, 2);
  ExchangeSpec none, negative, bytes, order;
  none.quantities.clear();
  negative.low = {-1, 1, 1};
  bytes.quantities = {Quantity{"u", 0}};
  order.order = {0, 0, 1};
  for (const ExchangeSpec& spec : {none, negative, bytes, order}) EXPECT_THROW(make_plan(layout, 0, spec), UsageError);
}

}  // namespace
