// Every schedule's program passes the checker on every kind of layout; the checker finds broken programs.
#include <gtest/gtest.h>

#include <algorithm>

#include "all_programs.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/transport_traits.hpp"
#include "texts.hpp"

namespace haloscope {
namespace {

using test::AllPrograms;

/// The programs of all ranks for a stencil that reaches one cell far.
AllPrograms make_case(const Layout& layout, ExchangeSpec spec, bool box, const std::string& schedule,
                      const ScheduleOptions& options) {
  for (int d = 0; d < layout.dims(); ++d) spec.low[d] = spec.high[d] = options.depth;
  spec.corners = box || options.depth > 1;
  return {layout, stencil_step(layout.dims(), 1, box), spec, schedule, options};
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
               const ScheduleOptions& base = {}) {
  ExchangeSpec spec{.pattern = pattern, .merge_peers = merged, .order = order};
  for (const Layout& layout : layouts())
    for (bool box : {false, true})
      for (int depth : {1, 2, 3})
        for (Substeps substeps : {Substeps::full, Substeps::shrink, Substeps::blocked})
          for (int steps = 1; steps <= depth; ++steps) {
            bool periodic = true, fits = true;
            for (int d = 0; d < layout.dims(); ++d) {
              periodic = periodic && layout.grid().periodic[d];
              fits = fits && depth <= layout.smallest_extent(d);
            }
            const bool may_block = periodic && schedule != "interleaved" && schedule != "comm-thread";
            if (!fits || (substeps == Substeps::blocked && !may_block)) continue;
            if (schedule == "resident" && layout.size() > 1) continue;
            ScheduleOptions options = base;
            options.depth = depth;
            options.steps = steps;
            options.substeps = substeps;
            options.tiles = 3;
            const AllPrograms c = make_case(layout, spec, box, schedule, options);
            ASSERT_EQ(c.finding(), "") << schedule << " dims " << layout.dims() << " ranks " << layout.size() << " box "
                                       << box << " depth " << depth << " substeps " << to_word(substeps) << " steps "
                                       << steps;
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
      ScheduleOptions options{.device = true, .staged = staged, .pack_first = pack_first};
      for (const char* schedule : {"bulk", "streams", "resident"}) {
        check_all(Pattern::ordered, false, {0, 1, 2}, schedule, options);
        check_all(Pattern::direct, true, {0, 1, 2}, schedule, options);
      }
    }
}

TEST(Schedules, NT1_WithOneKernelARoundTheyNeverReadWhatIsNotThere) {
  ScheduleOptions options;
  options.device = options.signals = true;
  for (const char* schedule : {"bulk", "streams", "resident"}) {
    check_all(Pattern::ordered, false, {0, 1, 2}, schedule, options);
    check_all(Pattern::direct, true, {0, 1, 2}, schedule, options);
  }
}

TEST(Schedules, NT1_TheCheckerFindsWhatWaitsForAKernelThatWaitsForIt) {
  const Layout layout(GridSpec{2, {12, 10, 1}, {true, true, false}}, ProcessGrid{2, 1, 1});
  ScheduleOptions options;
  options.device = options.signals = true;
  for (OpKind kind : {OpKind::post, OpKind::wait}) {
    AllPrograms c = make_case(layout, ExchangeSpec{}, false, "streams", options);
    ASSERT_EQ(c.finding(), "");
    std::vector<Op>& ops = c.programs[0].ops;
    const auto is = [](OpKind wanted) { return [wanted](const Op& op) { return op.kind == wanted; }; };
    const auto pack = std::find_if(ops.begin(), ops.end(), is(OpKind::pack));
    std::find_if(ops.begin(), ops.end(), is(kind))->after.push_back(static_cast<int>(pack - ops.begin()));
    EXPECT_PART(c.finding(), "which waits for it");
  }
}

/// Halos may be filled from the kernel's beginning on, not only where `unpack` stands.
TEST(Schedules, NT1_TheCheckerFindsACopyBesideTheKernelThatFillsTheSameHalos) {
  const Layout layout(GridSpec{2, {12, 10, 1}, {true, true, false}}, ProcessGrid{2, 1, 1});
  for (const bool signals : {false, true}) {
    ScheduleOptions options{.device = true, .signals = signals};
    AllPrograms c = make_case(layout, ExchangeSpec{}, false, "bulk", options);
    Program& program = c.programs[0];
    const auto first = [&](OpKind kind) {
      return static_cast<int>(
          std::find_if(program.ops.begin(), program.ops.end(), [&](const Op& op) { return op.kind == kind; }) -
          program.ops.begin());
    };
    program.copy_sets.push_back({Copy{.to = {{-1, 0, 0}, {0, 10, 1}}, .shift = {1, 0, 0}}});  // overwritten later
    const int place = first(OpKind::unpack), copies = static_cast<int>(program.copy_sets.size()) - 1;
    for (Op& op : program.ops)
      for (std::int32_t& before : op.after) before += before >= place;
    program.ops.insert(program.ops.begin() + place, {OpKind::copy, Lane::sweep_stream, 0, copies, {}});
    program.ops[static_cast<std::size_t>(place) + 1].after.push_back(place);
    EXPECT_EQ(c.finding().empty(), !signals) << c.finding();
  }
}

/// Returns true if sweeps of some rank read halos where messages have arrived. Others unpack on the stream of the
/// sweeps, whose order alone makes these wait.
bool reads_messages(const AllPrograms& c) {
  for (std::size_t rank = 0; rank < c.programs.size(); ++rank) {
    const Program& program = c.programs[rank];
    const auto& messages = c.plans[rank].messages;
    std::size_t unpacked = 0;
    for (const Op& op : program.ops)
      if (op.kind == OpKind::unpack) unpacked += program.sets[static_cast<std::size_t>(op.target)].size();
    if (std::count_if(messages.begin(), messages.end(), [](const Message& m) { return !m.out; }) >
        static_cast<std::ptrdiff_t>(unpacked))
      return true;
  }
  return false;
}

TEST(Schedules, W15_KernelsOfFacesNeverReadWhatIsNotThere) {
  for (const char* schedule : {"faces", "faces-overlap"})
    for (bool staged : {true, false})
      for (const auto& [pattern, corners] :
           {std::pair{Pattern::ordered, false}, {Pattern::ordered, true}, {Pattern::direct, true}})
        for (const Layout& layout : layouts()) {
          ExchangeSpec spec{.pattern = pattern, .corners = corners};
          ScheduleOptions options{.device = true, .staged = staged};
          AllPrograms c = make_case(layout, spec, spec.corners, schedule, options);
          ASSERT_EQ(c.finding(), "") << schedule << " dims " << layout.dims() << " ranks " << layout.size()
                                     << " corners " << spec.corners;
          for (Program& program : c.programs)
            for (Op& op : program.ops)
              if (op.kind == OpKind::sweep && program.sweeps[op.target].faces) op.after.clear();
          if (!staged && reads_messages(c)) {
            EXPECT_NE(c.finding(), "") << "messages were not waited for";
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
            ExchangeSpec spec{.pattern = pattern};
            ScheduleOptions options{.walls = thickness};
            const AllPrograms c = make_case(layout, spec, box, schedule, options);
            ASSERT_EQ(c.finding(), "") << schedule << " dims " << layout.dims() << " ranks " << layout.size() << " box "
                                       << box << " walls " << thickness;
          }
}

TEST(Schedules, W18_WithABoxMessagesAndTheDevicesCellsDoNotWaitForEachOther) {
  const Layout layout(GridSpec{3, {24, 24, 24}, {true, true, true}}, ProcessGrid{1, 2, 2});
  ScheduleOptions options{.walls = 3};
  const AllPrograms c = make_case(layout, ExchangeSpec{}, true, "box-overlap", options);
  const Program& p = c.programs[0];
  EXPECT_TRUE(p.device && make_case(layout, ExchangeSpec{}, true, "box", options).programs[0].device);
  for (const Op& op : p.ops) {
    const bool of_messages =
        op.kind == OpKind::pack || op.kind == OpKind::send || op.kind == OpKind::wait || op.kind == OpKind::unpack;
    const bool of_ring = op.kind == OpKind::gather || op.kind == OpKind::transfer || op.kind == OpKind::scatter;
    for (int before : op.after) {
      const OpKind kind = p.ops[before].kind;
      EXPECT_FALSE(of_messages && (kind == OpKind::transfer || kind == OpKind::scatter));
      EXPECT_TRUE(!of_ring || kind == OpKind::gather || kind == OpKind::transfer) << to_string(kind);
    }
  }
}

/// The messages of all operations of a kind, in order.
std::vector<int> messages_of(const Program& program, OpKind kind) {
  std::vector<int> found;
  for (int op : test::ops_of(program, kind)) {
    const auto& set = program.sets[program.ops[op].target];
    found.insert(found.end(), set.begin(), set.end());
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST(Exchanges, EachMessageHasEachOperationOfItsSideOnce) {
  for (const Layout& layout : layouts())
    for (Motion motion : {Motion::fill, Motion::accumulate})
      for (Pattern pattern : {Pattern::ordered, Pattern::direct})
        for (bool staged : {false, true}) {
          const Plan plan = make_plan(layout, 0, {.pattern = pattern, .motion = motion});
          const Program program = exchange_program(plan, ScheduleOptions{.device = true, .staged = staged});
          std::vector<int> out, in;
          for (int m = 0; m < static_cast<int>(plan.messages.size()); ++m)
            (plan.messages[m].out ? out : in).push_back(m);
          for (OpKind kind : {OpKind::pack, OpKind::send, OpKind::complete})
            EXPECT_EQ(messages_of(program, kind), out) << to_string(kind);
          for (OpKind kind : {OpKind::post, OpKind::wait, OpKind::unpack})
            EXPECT_EQ(messages_of(program, kind), in) << to_string(kind);
          EXPECT_EQ(messages_of(program, OpKind::d2h), staged ? out : std::vector<int>{});
          EXPECT_EQ(messages_of(program, OpKind::h2d), staged ? in : std::vector<int>{});
        }
}

TEST(Exchanges, CopiesOfADirectExchangeAreMadeWhileMessagesTravel) {
  const Layout layout(GridSpec{2, {12, 10, 1}, {true, true, false}}, ProcessGrid{1, 2, 1});
  const Plan plan = make_plan(layout, 0, {.pattern = Pattern::direct});
  const Program program = exchange_program(plan, ScheduleOptions{});
  const auto copies = test::ops_of(program, OpKind::copy);
  ASSERT_FALSE(copies.empty());
  EXPECT_GT(copies.front(), test::ops_of(program, OpKind::send).back());
  EXPECT_LT(copies.back(), test::ops_of(program, OpKind::wait).front());
}

TEST(Schedules, OnADeviceTheInteriorWaitsForNoMessage) {
  const Layout layout(GridSpec{2, {40, 30, 1}, {true, true, false}}, ProcessGrid{2, 2, 1});
  ScheduleOptions options;
  options.device = options.staged = true;
  const AllPrograms c = make_case(layout, ExchangeSpec{}, false, "streams", options);
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
    AllPrograms c = make_case(layout, ExchangeSpec{}, false, "streams", options);
    for (Op& op : c.programs[0].ops)
      if (op.kind == kind) op.after.clear();
    EXPECT_NE(c.finding(), "") << to_string(kind);
  }
}

TEST(Schedules, V9_InnerAndOuterWriteExactlyTheFullRegion) {
  const Layout layout(GridSpec{2, {40, 30, 1}, {true, true, false}}, ProcessGrid{2, 2, 1});
  for (int depth : {1, 2, 5}) {
    ScheduleOptions options;
    options.depth = options.steps = depth;
    const AllPrograms c = make_case(layout, ExchangeSpec{}, false, "split", options);
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
  for (auto substeps : {Substeps::full, Substeps::shrink})
    for (int D : {1, 2, 4, 8}) {
      ScheduleOptions options;
      options.depth = options.steps = D;
      options.substeps = substeps;
      const AllPrograms c = make_case(layout, ExchangeSpec{}, false, "bulk", options);
      std::int64_t points = 0, expected = 0;
      for (const Sweep& s : c.programs[0].sweeps) points += s.region.volume();
      for (int j = 0; j < D; ++j) {
        const std::int64_t grow = substeps == Substeps::full ? D - 1 : D - 1 - j;
        expected += (25 + 2 * grow) * (25 + 2 * grow);
      }
      EXPECT_EQ(points, expected);
    }
}

class BrokenPrograms : public testing::TestWithParam<std::string> {
 protected:
  Layout layout{GridSpec{3, {6, 6, 6}, {true, true, true}}, ProcessGrid{1, 2, 2}};
  AllPrograms good() {
    ScheduleOptions options;
    options.depth = options.steps = 2;
    return make_case(layout, ExchangeSpec{}, true, GetParam(), options);
  }
};

TEST_P(BrokenPrograms, DroppedOperationIsFound) {
  const std::size_t count = good().programs[0].ops.size();
  int dropped = 0;
  for (std::size_t i = 0; i < count; ++i) {
    AllPrograms c = good();
    Op& op = c.programs[0].ops[i];
    if (op.kind == OpKind::progress) continue;
    op.kind = OpKind::progress;  // does nothing, keeps the order
    EXPECT_NE(c.finding(), "") << "operation " << i << " removed";
    ++dropped;
  }
  EXPECT_GT(dropped, 8);
}

TEST_P(BrokenPrograms, SweepWithoutItsDependenciesIsFound) {
  const std::size_t count = good().programs[0].ops.size();
  for (std::size_t i = 0; i < count; ++i) {
    AllPrograms c = good();
    Op& op = c.programs[0].ops[i];
    if (op.kind != OpKind::sweep || c.programs[0].sweeps[op.target].part == Part::inner) continue;
    op.after.clear();
    EXPECT_NE(c.finding(), "") << "operation " << i << " without order";
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, BrokenPrograms, testing::Values("bulk", "split", "interleaved", "comm-thread"),
                         [](const auto& info) { return test::test_name(info.param); });

TEST(Choices, IllegalCombinationsSayWhyAndWhatToDo) {
  Choice c{.app = "laplace2d", .grid = {2, {64, 64, 1}, {true, true, false}}, .ranks = 4};
  EXPECT_EQ(illegal(c), "");
  const auto expect_reason = [&](auto change, const std::string& part) {
    Choice other = c;
    change(other);
    EXPECT_PART(illegal(other), part);
  };
  expect_reason([](Choice& o) { o.strategy = "direct/p2p", o.schedule = "interleaved"; }, "ordered");
  expect_reason([](Choice& o) { o.schedule = "comm-thread"; }, "--threads");
  expect_reason([](Choice& o) { o.depth = 40; }, "wider than the smallest block");
  expect_reason([](Choice& o) { o.ranks = 5000; }, "use fewer ranks");
  expect_reason([](Choice& o) { o.grid.cells[0] = 0; }, "at least 1");
  expect_reason([](Choice& o) { o.substeps = Substeps::blocked, o.grid.periodic[0] = false; }, "periodic");
  expect_reason([](Choice& o) { o.schedule = "comm-thread", o.threads = 2, o.substeps = Substeps::blocked; },
                "bulk and split, not 'comm-thread'");
  expect_reason([](Choice& o) { o.strategy = "reference", o.schedule = "split"; }, "does not support overlap");
  expect_reason([](Choice& o) { o.strategy = "direct:self-first/p2p"; }, "ordered:self-first");
  expect_reason([](Choice& o) { o.strategy = "ordered/shared", o.nodes = 2; }, "shared+p2p");
  expect_reason([](Choice& o) { o.nodes = 5; }, "cannot be split into 5 nodes");
  expect_reason([](Choice& o) { o.tiles = 0; }, "tiles 0 is not possible");
  expect_reason([](Choice& o) { o.device = "hots"; }, "did you mean host");
  expect_reason([](Choice& o) { o.strategy = "ordered/staged"; }, "add --device");
  expect_reason([](Choice& o) { o.device = "host"; }, "ordered/staged");
  expect_reason([](Choice& o) { o.strategy = "ordered/taskqueue"; }, "add --device");
  expect_reason([](Choice& o) { o.device = "host", o.strategy = "direct/taskqueue", o.schedule = "faces"; },
                "has no such place");
  expect_reason([](Choice& o) { o.capture = true; }, "add --device");
  expect_reason([](Choice& o) { o.form = "stra"; }, "star");
  expect_reason([](Choice& o) { o.grid.dims = 3; }, "LENGTHxHEIGHT");
}

TEST(Choices, NamesAreReadOnceAndTheNearestOnesNamed) {
  Choice c;
  EXPECT_PART(test::error_of([&] { c.strategy = "orderd/p2p"; }), "ordered/p2p");
  EXPECT_PART(test::error_of([&] { c.schedule = "splt"; }), "did you mean split");
  for (const auto& [options, part] : {std::pair{"chunks=0", "needs a number from 1 to 16"},
                                      {"chunks=17", "needs a number from 1 to 16"},
                                      {"chunks=2x", "needs a number from 1 to 16"},
                                      {"chunks=", "needs a number from 1 to 16"},
                                      {"chunks", "did you mean chunks=1..16"},
                                      {"chunks=2,chunks=3", "'chunks' twice"},
                                      {"pinned,device", "exclude each other"},
                                      {"queue,channel", "exclude each other"}}) {
    EXPECT_PART(test::error_of([&] { c.strategy = std::string("ordered/taskqueue:") + options; }), part);
  }
  EXPECT_EQ(to_string(Strategy("direct/taskqueue:queue,chunks=4")), "direct/taskqueue:queue,chunks=4");
  EXPECT_EQ(number_of({"queue", "chunks=12"}, "chunks", 1), 12);
  EXPECT_EQ(number_of({"queue"}, "chunks", 1), 1);
  EXPECT_EQ(to_string(c.strategy), "ordered/p2p");
  EXPECT_EQ(c.schedule->name, "bulk");
}

TEST(Choices, StrategiesOfSingleStagesBelongToStagesOfTheApp) {
  Choice c{.app = "laplace2d",
           .grid = {2, {64, 64, 1}, {true, true, false}},
           .ranks = 4,
           .stage_strategies = {{"step", "direct/p2p"}}};
  EXPECT_EQ(illegal(c), "");
  EXPECT_EQ(exchange_spec(c).pattern, Pattern::direct);
  c.stage_strategies = {{"stepp", "direct/p2p"}};
  EXPECT_PART(illegal(c), "step");
  c.stage_strategies = {{"step", "ordered/staged"}};
  EXPECT_PART(illegal(c), "in different ways");
}

TEST(Choices, AppsFuseAsManyStepsAsTheirKernelsDoOnTheCpuAndOnDevices) {
  const auto fused = [](const char* app, int depth, const char* device) {
    Choice c{.app = app,
             .grid = {find_app(app).dims, {64, 64, find_app(app).dims == 3 ? 64 : 1}, {true, true, true}},
             .strategy = *device == 0 ? "ordered/p2p" : "ordered/staged",
             .depth = depth,
             .substeps = Substeps::blocked,
             .device = device};
    return illegal(c);
  };
  EXPECT_EQ(fused("laplace2d", 16, ""), "");
  EXPECT_EQ(fused("laplace2d", 8, "host"), "");
  EXPECT_EQ(fused("laplace3d", 4, "host"), "");
  EXPECT_PART(fused("laplace2d", 9, "host"), "at most 8 time steps");
  EXPECT_PART(fused("laplace3d", 5, "host"), "at most 4 time steps");
  EXPECT_PART(fused("laplace3d", 2, ""), "no such kernel; use full or shrink");
  EXPECT_PART(fused("advection3d", 2, "host"), "no such kernel for devices");
}

TEST(Choices, StrategyStringsRoundTrip) {
  for (const auto& name : strategy_names()) EXPECT_EQ(to_string(Strategy(name)), name);
}

}  // namespace
}  // namespace haloscope
