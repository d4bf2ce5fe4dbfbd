// Every schedule's program passes the checker on every kind of layout; the checker finds broken programs.
#include <gtest/gtest.h>

#include "haloscope/choice.hpp"
#include "haloscope/core/check.hpp"
#include "haloscope/schedule.hpp"

namespace haloscope {
namespace {

struct StagedCase {
  std::vector<Plan> plans;
  std::vector<Program> programs;
  Stage stage;
};

StagedCase make_case(const Layout& layout, ExchangeSpec spec, const Stage& stage, const std::string& schedule,
                     ScheduleOptions options) {
  for (int d = 0; d < layout.dims(); ++d) spec.low[d] = spec.high[d] = options.depth * stage.radius;
  spec.corners = stage.box_stencil || options.depth > 1;
  StagedCase c{{}, {}, stage};
  for (int r = 0; r < layout.size(); ++r) {
    c.plans.push_back(make_plan(layout, r, spec));
    c.programs.push_back(find_schedule(schedule).make(stage, c.plans.back(), options));
  }
  return c;
}

std::vector<Layout> layouts() {
  std::vector<Layout> list;
  for (auto periodic : {std::array<bool, 3>{true, true, true}, {false, false, false}, {true, false, true}}) {
    list.emplace_back(GridSpec{1, {11, 1, 1}, {periodic[0], false, false}}, ProcessGrid{2, 1, 1});
    list.emplace_back(GridSpec{2, {9, 7, 1}, {periodic[0], periodic[1], false}}, ProcessGrid{1, 1, 1});
    list.emplace_back(GridSpec{2, {9, 7, 1}, {periodic[0], periodic[1], false}}, ProcessGrid{2, 2, 1});
    list.emplace_back(GridSpec{2, {13, 9, 1}, {periodic[0], periodic[1], false}}, ProcessGrid{3, 1, 1});
    list.emplace_back(GridSpec{3, {5, 6, 7}, periodic}, ProcessGrid{1, 1, 1});
    list.emplace_back(GridSpec{3, {5, 6, 7}, periodic}, ProcessGrid{1, 1, 2});
    list.emplace_back(GridSpec{3, {7, 5, 4}, periodic}, ProcessGrid{2, 1, 1});
    list.emplace_back(GridSpec{3, {6, 7, 6}, periodic}, ProcessGrid{1, 2, 2});
    list.emplace_back(GridSpec{3, {7, 6, 6}, periodic}, ProcessGrid{2, 1, 2});
    list.emplace_back(GridSpec{3, {6, 6, 6}, periodic}, ProcessGrid{2, 2, 2});
  }
  return list;
}

void check_all(Pattern pattern, bool merged, std::array<int, 3> order, const std::string& schedule,
               const ScheduleOptions& given = {}) {
  ExchangeSpec spec;
  spec.pattern = pattern;
  spec.merge_peers = merged;
  spec.order = order;
  for (const Layout& layout : layouts())
    for (bool box : {false, true})
      for (int depth : {1, 2, 3})
        for (DeepRegion region : {DeepRegion::full, DeepRegion::shrink, DeepRegion::blocked})
          for (int steps = 1; steps <= depth; ++steps) {
            bool periodic = true, fits = true;
            for (int d = 0; d < layout.dims(); ++d) {
              periodic = periodic && layout.grid().periodic[d];
              fits = fits && depth <= layout.smallest_extent(d);
            }
            const bool may_block = periodic && schedule != "interleaved" && schedule != "comm-thread";
            if (!fits || (region == DeepRegion::blocked && !may_block)) continue;
            if (schedule == "resident" && layout.size() > 1) continue;
            ScheduleOptions options = given;
            options.depth = depth;
            options.steps = steps;
            options.region = region;
            options.tiles = 3;
            const StagedCase c = make_case(layout, spec, Stage{1, box}, schedule, options);
            ASSERT_EQ(check_programs(layout, c.stage, c.plans, c.programs), "")
                << schedule << " dims " << layout.dims() << " ranks " << layout.size() << " box " << box << " depth "
                << depth << " region " << int(region) << " steps " << steps;
          }
}

TEST(Schedules, W11_V8_BulkNeverReadsWhatIsNotThere) { check_all(Pattern::ordered, false, {0, 1, 2}, "bulk"); }
TEST(Schedules, V7_BulkDirectNeverReadsWhatIsNotThere) { check_all(Pattern::direct, false, {0, 1, 2}, "bulk"); }
TEST(Schedules, BulkMergedPerPeerNeverReadsWhatIsNotThere) { check_all(Pattern::direct, true, {0, 1, 2}, "bulk"); }
TEST(Schedules, BulkOtherDimensionOrdersNeverReadWhatIsNotThere) {
  check_all(Pattern::ordered, true, {2, 0, 1}, "bulk");
  check_all(Pattern::ordered, false, {1, 2, 0}, "bulk");
}
TEST(Schedules, V9_SplitNeverReadsWhatIsNotThere) { check_all(Pattern::ordered, false, {0, 1, 2}, "split"); }
TEST(Schedules, V9_SplitDirectNeverReadsWhatIsNotThere) { check_all(Pattern::direct, true, {0, 1, 2}, "split"); }
TEST(Schedules, W12_InterleavedNeverReadsWhatIsNotThere) {
  check_all(Pattern::ordered, false, {0, 1, 2}, "interleaved");
}
TEST(Schedules, W13_CommThreadNeverReadsWhatIsNotThere) {
  check_all(Pattern::ordered, false, {0, 1, 2}, "comm-thread");
  check_all(Pattern::direct, false, {0, 1, 2}, "comm-thread");
}

TEST(Schedules, OnADeviceTheyNeverReadWhatIsNotThere) {
  for (const bool staged : {true, false})
    for (const bool pack_first : {true, false}) {
      ScheduleOptions options;
      options.device = true;
      options.staged = staged;
      options.pack_first = pack_first;
      for (const char* schedule : {"bulk", "streams", "resident"}) {
        check_all(Pattern::ordered, false, {0, 1, 2}, schedule, options);
        check_all(Pattern::direct, true, {0, 1, 2}, schedule, options);
      }
    }
}

TEST(Schedules, W15_KernelsOfFacesNeverReadWhatIsNotThere) {
  for (const char* schedule : {"faces", "faces-overlap"})
    for (bool staged : {true, false})
      for (Pattern pattern : {Pattern::ordered, Pattern::direct})
        for (const Layout& layout : layouts()) {
          ExchangeSpec spec;
          spec.pattern = pattern;
          spec.corners = pattern == Pattern::direct;
          ScheduleOptions options;
          options.device = true;
          options.staged = staged;
          StagedCase c = make_case(layout, spec, Stage{1, spec.corners}, schedule, options);
          ASSERT_EQ(check_programs(layout, c.stage, c.plans, c.programs), "")
              << schedule << " dims " << layout.dims() << " ranks " << layout.size() << " corners " << spec.corners;
          for (Program& program : c.programs)
            for (Op& op : program.ops)
              if (op.kind == OpKind::sweep && program.sweeps[op.target].faces) op.after.clear();
          if (!staged && c.plans[0].messages_out() > 0) {
            EXPECT_NE(check_programs(layout, c.stage, c.plans, c.programs), "") << "messages were not waited for";
          }
        }
}

TEST(Schedules, W17_W18_ABlockInABoxNeverReadsWhatIsNotThere) {
  for (const char* schedule : {"box", "box-overlap"})
    for (Pattern pattern : {Pattern::ordered, Pattern::direct})
      for (int thickness : {1, 2, 3})
        for (bool box : {false, true})
          for (const Layout& layout : layouts()) {
            bool fits = true;
            for (int d = 0; d < layout.dims(); ++d) fits = fits && 2 * thickness < layout.smallest_extent(d);
            if (!fits) continue;
            ExchangeSpec spec;
            spec.pattern = pattern;
            ScheduleOptions options;
            options.box = thickness;
            const StagedCase c = make_case(layout, spec, Stage{1, box}, schedule, options);
            ASSERT_EQ(check_programs(layout, c.stage, c.plans, c.programs), "")
                << schedule << " dims " << layout.dims() << " ranks " << layout.size() << " box " << box << " walls "
                << thickness;
          }
}

TEST(Schedules, W18_WithABoxMessagesAndTheDevicesCellsDoNotWaitForEachOther) {
  const Layout layout(GridSpec{3, {24, 24, 24}, {true, true, true}}, ProcessGrid{1, 2, 2});
  ScheduleOptions options;
  options.box = 3;
  const StagedCase c = make_case(layout, ExchangeSpec{}, Stage{1, true}, "box-overlap", options);
  const Program& p = c.programs[0];
  for (const Op& op : p.ops) {
    const bool of_messages = op.kind == OpKind::wait || op.kind == OpKind::send || op.kind == OpKind::unpack;
    const bool of_ring = op.kind == OpKind::gather || op.kind == OpKind::transfer || op.kind == OpKind::scatter;
    for (int before : op.after) {
      const OpKind kind = p.ops[before].kind;
      EXPECT_FALSE(of_messages && (kind == OpKind::transfer || kind == OpKind::scatter));
      EXPECT_TRUE(!of_ring || kind == OpKind::gather || kind == OpKind::transfer) << to_string(kind);
    }
  }
}

TEST(Schedules, OnADeviceTheInteriorWaitsForNoMessage) {
  const Layout layout(GridSpec{2, {40, 30, 1}, {true, true, false}}, ProcessGrid{2, 2, 1});
  ScheduleOptions options;
  options.device = options.staged = true;
  const StagedCase c = make_case(layout, ExchangeSpec{}, Stage{1, false}, "streams", options);
  const Program& p = c.programs[0];
  int interiors = 0;
  for (const Op& op : p.ops) {
    if (op.kind != OpKind::sweep || p.sweeps[op.target].part != Part::inner) continue;
    ++interiors;
    EXPECT_EQ(op.lane, Lane::sweep_stream);
    for (int before : op.after) EXPECT_TRUE(on_device(p.ops[before].lane)) << to_string(p.ops[before].kind);
  }
  EXPECT_EQ(interiors, 1);
}

TEST(Schedules, TheCheckerFindsAMissingWaitBetweenHostAndDevice) {
  const Layout layout(GridSpec{2, {12, 10, 1}, {true, true, false}}, ProcessGrid{2, 2, 1});
  ScheduleOptions options;
  options.device = options.staged = true;
  options.depth = options.steps = 2;
  for (OpKind kind : {OpKind::send, OpKind::h2d, OpKind::sweep}) {
    StagedCase c = make_case(layout, ExchangeSpec{}, Stage{1, false}, "streams", options);
    for (Op& op : c.programs[0].ops)
      if (op.kind == kind) op.after.clear();
    EXPECT_NE(check_programs(layout, c.stage, c.plans, c.programs), "") << to_string(kind);
  }
}

TEST(Schedules, V9_InnerAndOuterWriteExactlyTheFullRegion) {
  const Layout layout(GridSpec{2, {40, 30, 1}, {true, true, false}}, ProcessGrid{2, 2, 1});
  for (int depth : {1, 2, 5}) {
    ScheduleOptions options;
    options.depth = options.steps = depth;
    const StagedCase c = make_case(layout, ExchangeSpec{}, Stage{1, false}, "split", options);
    const Program& p = c.programs[0];
    std::int64_t inner = 0, outer = 0;
    for (const Sweep& s : p.sweeps) {
      if (s.step == 0 && s.part == Part::inner) inner += s.region.volume();
      if (s.step == 0 && s.part == Part::outer) outer += s.region.volume();
    }
    const std::int64_t h = 15, l = 20, D = depth;
    EXPECT_EQ(inner, (h - 2) * (l - 2));
    EXPECT_EQ(inner + outer, (h + 2 * D - 2) * (l + 2 * D - 2));
  }
}

TEST(Schedules, V23_V25_SweptPointsEqualTheFormulas) {
  const Layout layout(GridSpec{2, {50, 50, 1}, {true, true, false}}, ProcessGrid{2, 2, 1});
  for (auto region : {DeepRegion::full, DeepRegion::shrink})
    for (int D : {1, 2, 4, 8}) {
      ScheduleOptions options;
      options.depth = options.steps = D;
      options.region = region;
      const StagedCase c = make_case(layout, ExchangeSpec{}, Stage{1, false}, "bulk", options);
      std::int64_t points = 0, expected = 0;
      for (const Sweep& s : c.programs[0].sweeps) points += s.region.volume();
      for (int j = 0; j < D; ++j) {
        const std::int64_t grow = region == DeepRegion::full ? D - 1 : D - 1 - j;
        expected += (25 + 2 * grow) * (25 + 2 * grow);
      }
      EXPECT_EQ(points, expected);
    }
}

class BrokenPrograms : public testing::TestWithParam<std::string> {
 protected:
  Layout layout{GridSpec{3, {6, 6, 6}, {true, true, true}}, ProcessGrid{1, 2, 2}};
  StagedCase good() {
    ScheduleOptions options;
    options.depth = options.steps = 2;
    return make_case(layout, ExchangeSpec{}, Stage{1, true}, GetParam(), options);
  }
  std::string verdict(const StagedCase& c) { return check_programs(layout, c.stage, c.plans, c.programs); }
};

TEST_P(BrokenPrograms, DroppedOperationIsFound) {
  const std::size_t count = good().programs[0].ops.size();
  int dropped = 0;
  for (std::size_t i = 0; i < count; ++i) {
    StagedCase c = good();
    Op& op = c.programs[0].ops[i];
    if (op.kind == OpKind::progress) continue;
    op.kind = OpKind::progress;  // does nothing, keeps the order
    EXPECT_NE(verdict(c), "") << "operation " << i << " removed";
    ++dropped;
  }
  EXPECT_GT(dropped, 8);
}

TEST_P(BrokenPrograms, SweepWithoutItsDependenciesIsFound) {
  const std::size_t count = good().programs[0].ops.size();
  for (std::size_t i = 0; i < count; ++i) {
    StagedCase c = good();
    Op& op = c.programs[0].ops[i];
    if (op.kind != OpKind::sweep || c.programs[0].sweeps[op.target].part == Part::inner) continue;
    op.after.clear();
    EXPECT_NE(verdict(c), "") << "operation " << i << " without order";
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, BrokenPrograms, testing::Values("bulk", "split", "interleaved", "comm-thread"),
                         [](const auto& info) {
                           return info.param == "comm-thread" ? std::string("comm_thread") : info.param;
                         });

TEST(Choices, IllegalCombinationsSayWhyAndWhatToDo) {
  Choice c;
  c.app = "laplace2d";
  c.grid = {2, {64, 64, 1}, {true, true, false}};
  c.ranks = 4;
  EXPECT_EQ(illegal(c), "");
  const auto with = [&](auto change) {
    Choice other = c;
    change(other);
    return illegal(other);
  };
  EXPECT_NE(with([](Choice& o) { o.strategy = "direct/p2p", o.schedule = "interleaved"; }).find("ordered"),
            std::string::npos);
  EXPECT_NE(with([](Choice& o) { o.schedule = "comm-thread"; }).find("--threads"), std::string::npos);
  EXPECT_NE(with([](Choice& o) { o.strategy = "orderd/p2p"; }).find("ordered/p2p"), std::string::npos);
  EXPECT_NE(with([](Choice& o) { o.schedule = "splt"; }).find("split"), std::string::npos);
  EXPECT_NE(with([](Choice& o) { o.depth = 40; }).find("wider than the smallest block"), std::string::npos);
  EXPECT_NE(with([](Choice& o) { o.ranks = 5000; }).find("use fewer ranks"), std::string::npos);
  EXPECT_NE(with([](Choice& o) { o.grid.cells[0] = 0; }).find("at least 1"), std::string::npos);
  EXPECT_NE(with([](Choice& o) { o.region = "blocked", o.grid.periodic[0] = false; }).find("periodic"),
            std::string::npos);
}

TEST(Choices, AppsFuseAsManyStepsAsTheirKernelsDoOnTheCpuAndOnDevices) {
  const auto fused = [](const char* app, int depth, const char* device) {
    Choice c;
    c.app = app;
    c.device = device;
    c.depth = depth;
    c.region = "blocked";
    c.strategy = c.device.empty() ? "ordered/p2p" : "ordered/staged";
    c.grid = {find_app(app).dims, {64, 64, find_app(app).dims == 3 ? 64 : 1}, {true, true, true}};
    return illegal(c);
  };
  EXPECT_EQ(fused("laplace2d", 16, ""), "");
  EXPECT_EQ(fused("laplace2d", 8, "host"), "");
  EXPECT_EQ(fused("laplace3d", 4, "host"), "");
  EXPECT_NE(fused("laplace2d", 9, "host").find("at most 8 time steps"), std::string::npos);
  EXPECT_NE(fused("laplace3d", 5, "host").find("at most 4 time steps"), std::string::npos);
  EXPECT_NE(fused("laplace3d", 2, "").find("no such kernel; use full or shrink"), std::string::npos);
  EXPECT_NE(fused("advection3d", 2, "host").find("no such kernel for devices"), std::string::npos);
}

TEST(Choices, StrategyStringsRoundTrip) {
  for (const auto& name : strategy_names()) EXPECT_EQ(to_string(parse_strategy(name)), name);
}

}  // namespace
}  // namespace haloscope
