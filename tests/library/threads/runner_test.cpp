// The runner with ranks as threads of one process, real thread teams inside, random delays everywhere: results must
// equal the results of one rank, and ThreadSanitizer must stay silent.
#include "haloscope/runner/runner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "each_point.hpp"
#include "haloscope/comm/mpi_progress.hpp"
#include "haloscope/core/check.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/core/spin.hpp"
#include "haloscope/extend/candidate.hpp"
#include "haloscope/extend/schedule.hpp"
#include "haloscope/field/field.hpp"
#include "mailbox_link.hpp"

namespace haloscope {
namespace {

/// A stencil on 64-bit integers, every neighbour with its own factor: any wrong or stale cell changes the result.
class IntegerSweep {
 public:
  IntegerSweep(const Views& views, const Step& step, int dims)
      : views_(views), box_(step.stages[0].sweeps[0].box_stencil), dims_(dims) {}
  static void call(void* self, const Sweep&, const Box& box, int slot, int into, int) {
    static_cast<IntegerSweep*>(self)->sweep(box, slot, into);
  }

 private:
  void sweep(const Box& box, int slot, int into) const {
    const SlotView& from = views_[0][slot];
    const SlotView& to = views_[0][into];
    const std::int64_t layers = dims_ > 2 ? 1 : 0;
    test::each_point(box, [&](const Index& p) {
      std::uint64_t sum = 0, factor = 3;
      test::each_point({{-1, -1, -layers}, {2, 2, layers + 1}}, [&](const Index& o) {
        factor = factor * 6364136223846793005ull + 1442695040888963407ull;
        if (!box_ && (o[0] != 0) + (o[1] != 0) + (o[2] != 0) > 1) return;
        sum += factor * *reinterpret_cast<const std::uint64_t*>(from.at({p[0] + o[0], p[1] + o[1], p[2] + o[2]}));
      });
      *reinterpret_cast<std::uint64_t*>(to.at(p)) = sum;
    });
  }
  const Views& views_;
  bool box_;
  int dims_;
};

struct Setting {
  std::string schedule;
  Pattern pattern = Pattern::ordered;
  int depth = 1, threads = 1;
  Substeps substeps = Substeps::full;
  Sharing sharing = Sharing::guided;
  void (*spoil)(Program&) = nullptr;  ///< changes every rank's program before it runs
};

/// Owned cells of all ranks after `cycles` programs, by global cell number.
std::vector<std::uint64_t> run_all(const Layout& layout, const Step& step, const Setting& setting, int cycles) {
  const Index& n = layout.grid().cells;
  std::vector<std::uint64_t> result(static_cast<std::size_t>(n[0] * n[1] * n[2]));
  Mailboxes boxes;
  const auto rank_main = [&](int rank) {
    ExchangeSpec spec;
    for (int d = 0; d < 3; ++d) spec.low[d] = spec.high[d] = setting.depth;
    spec.pattern = setting.pattern;
    spec.corners = step.stages[0].sweeps[0].box_stencil || setting.depth > 1;
    const Plan plan = make_plan(layout, rank, spec);
    Storage fields(plan, 2);
    const Box global = layout.owned(rank);
    const auto each = [&](auto&& f) {
      test::each_point(plan.own_cells(), [&](const Index& p) {
        const std::int64_t row = global.lo[1] + p[1] + n[1] * (global.lo[2] + p[2]);
        f(p, static_cast<std::size_t>(global.lo[0] + p[0] + n[0] * row));
      });
    };
    each([&](const Index& p, std::size_t id) {
      *reinterpret_cast<std::uint64_t*>(fields.views()[0][0].at(p)) = id * 7919 + 1;
    });
    ScheduleOptions options;
    options.depth = options.steps = setting.depth;
    options.substeps = setting.substeps;
    options.sharing = setting.sharing;
    options.tiles = 3;
    Program program = find_schedule(setting.schedule).make(step.stages[0], plan, options);
    if (setting.spoil) setting.spoil(program);
    MailboxLink link(boxes, plan, fields.views(), 17u + rank);
    CommOps comm(program, fields.views(), link, MPI_COMM_NULL);
    IntegerSweep sweep(fields.views(), step, layout.dims());
    RunnerOptions runner_options{.threads = setting.threads, .yield = true};
    Runner runner(program, comm, {&IntegerSweep::call, &sweep}, runner_options);
    int slot = 0;
    for (int c = 0; c < cycles; ++c) slot = runner.run(slot, c * setting.depth);
    each([&](const Index& p, std::size_t id) {
      result[id] = *reinterpret_cast<std::uint64_t*>(fields.views()[0][slot].at(p));
    });
  };
  std::vector<std::thread> ranks;
  for (int r = 0; r < layout.size(); ++r) ranks.emplace_back(rank_main, r);
  for (auto& t : ranks) t.join();
  return result;
}

class Threads : public testing::TestWithParam<std::string> {};

TEST_P(Threads, V11_ResultsAreThoseOfOneRankUnderInjectedDelays) {
  const std::string schedule = GetParam();
  const bool comm_thread = schedule == "comm-thread";
  for (const bool box : {false, true})
    for (const int dims : {2, 3})
      for (const int depth : {1, 2})
        for (const Pattern pattern : {Pattern::ordered, Pattern::direct})
          for (const Substeps substeps : {Substeps::full, Substeps::shrink}) {
            if (schedule == "interleaved" && pattern == Pattern::direct) continue;
            const GridSpec grid{dims, {13, 11, dims == 3 ? 9 : 1}, {true, true, dims == 3}};
            const ProcessGrid ranks = dims == 3 ? ProcessGrid{1, 2, 2} : ProcessGrid{2, 2, 1};
            const Setting setting{schedule, pattern,
                                  depth,    comm_thread ? 3 : 2,
                                  substeps, depth == 1 ? Sharing::guided : Sharing::dynamic};
            const Step step = stencil_step(dims, 1, box);
            const int cycles = 4;
            const auto expected =
                run_all(Layout(grid, {1, 1, 1}), step, {"bulk", Pattern::ordered, 1, 1}, cycles * depth);
            ASSERT_EQ(run_all(Layout(grid, ranks), step, setting, cycles), expected)
                << schedule << " box " << box << " dims " << dims << " depth " << depth;
          }
}

// Faces large enough for the team: x faces are packed, y and z faces wrap around, z ones after a barrier.
TEST_P(Threads, W11_TeamThatFillsAndEmptiesBuffersGivesTheSameResults) {
  const std::string schedule = GetParam();
  const Step box = stencil_step(3, 1, true);
  const GridSpec grid{3, {17, 61, 58}, {true, true, true}};
  for (const Pattern pattern : {Pattern::ordered, Pattern::direct})
    for (const int depth : {1, 2}) {
      if (schedule == "interleaved" && pattern == Pattern::direct) continue;
      const auto expected = run_all(Layout(grid, {1, 1, 1}), box, {"bulk", Pattern::ordered, 1, 1}, 2 * depth);
      for (const ProcessGrid ranks : {ProcessGrid{2, 1, 1}, ProcessGrid{1, 1, 2}, ProcessGrid{1, 1, 1}})
        ASSERT_EQ(run_all(Layout(grid, ranks), box, {schedule, pattern, depth, 3}, 2), expected)
            << schedule << " depth " << depth << " ranks " << ranks[0] << "x" << ranks[1] << "x" << ranks[2];
    }
}

INSTANTIATE_TEST_SUITE_P(Runner, Threads, testing::Values("bulk", "split", "interleaved", "comm-thread"),
                         [](const auto& info) {
                           return info.param == "comm-thread" ? std::string("W13_comm_thread") : info.param;
                         });

/// Lets the boundary be swept without waiting for the halo.
void forget_the_halo(Program& program) {
  for (Op& op : program.ops)
    if (op.kind == OpKind::sweep) op.after.clear();
}

// The checker finds it without running anything. ThreadSanitizer must find it too, when it runs: the long tests set
// HALOSCOPE_RUN_THE_RACE and search for the report.
TEST(RunnerRace, BoundarySweptWithoutItsHaloIsFound) {
  const Layout layout({2, {13, 11, 1}, {true, true, false}}, {2, 1, 1});
  const Step box = stencil_step(2, 1, true);
  std::vector<Plan> plans;
  std::vector<Program> programs;
  for (int rank : {0, 1}) {
    plans.push_back(make_plan(layout, rank, ExchangeSpec{}));
    programs.push_back(find_schedule("comm-thread").make(box.stages[0], plans.back(), {}));
    forget_the_halo(programs.back());
  }
  EXPECT_NE(check_programs(layout, box, plans, programs), "");
  if (std::getenv("HALOSCOPE_RUN_THE_RACE")) {
    Setting setting{"comm-thread", Pattern::ordered, 1, 3};
    setting.spoil = forget_the_halo;
    run_all(layout, box, setting, 20);
  }
}

TEST(RunnerWait, AWaitThatLastsCallsNothingOfMPIWhereThereIsNoCommunicator) {
  const MpiProgress progress(MPI_COMM_NULL);
  Spin spin(true);
  for (int looks = 0; looks < 1000; ++looks) spin.again();
  int begun = 1;
  ASSERT_EQ(MPI_Initialized(&begun), MPI_SUCCESS);
  EXPECT_FALSE(begun) << "this program would end in a call of MPI";
}

/// Records the order of operations of one run.
struct Log {
  std::vector<OpKind> kinds;
  static void before(void* self, const Op& op, std::int64_t) { static_cast<Log*>(self)->kinds.push_back(op.kind); }
};

/// Rank 0 of a layout alone in the process: the messages of the other ranks are in its boxes already.
struct LoneRank {
  Layout layout;
  Step step;
  Plan plan{make_plan(layout, 0, ExchangeSpec{})};
  Program program;
  Mailboxes boxes{};
  Storage fields{plan, 2};
  MailboxLink link{boxes, plan, fields.views(), 1};
  CommOps comm{program, fields.views(), link, MPI_COMM_NULL};
  IntegerSweep sweep{fields.views(), step, layout.dims()};

  LoneRank(const Layout& grid, bool box, const std::string& schedule)
      : layout(grid),
        step(stencil_step(grid.dims(), 1, box)),
        program(find_schedule(schedule).make(step.stages[0], plan, {})) {
    for (const Message& m : plan.messages)
      if (!m.out) boxes.put({m.peer, 0, m.tag}, std::vector<std::byte>(static_cast<std::size_t>(m.bytes)));
  }
  Runner runner(const RunnerOptions& options) { return {program, comm, {&IntegerSweep::call, &sweep}, options}; }
};

TEST(RunnerTrace, W12_InterleavedComputesBetweenStartAndCompletionOfEveryRound) {
  // Two ranks per dimension: every round has messages. The order in the program's own execution counts.
  LoneRank rank(Layout({3, {16, 16, 16}, {true, true, true}}, {2, 2, 2}), true, "interleaved");
  Log log;
  RunnerOptions options{.injection = {&Log::before, &log}};
  rank.runner(options).run(0, 0);
  int sends = 0, waits = 0, between = 0;
  for (OpKind kind : log.kinds) {
    sends += kind == OpKind::send;
    waits += kind == OpKind::wait;
    between += kind == OpKind::sweep && sends == waits + 1;
  }
  EXPECT_EQ(sends, 3);
  EXPECT_EQ(waits, 3);
  EXPECT_EQ(between, 3) << "one slab of the interior between the sends and the wait of each round";
}

/// Notes the pieces of the interior, and holds each thread in its piece until thread 0 has one too.
struct SharedLoop {
  struct Piece {
    std::int64_t begin, size;
    int thread;
  };
  IntegerSweep sweep;
  int dimension;
  std::mutex mutex = {};
  std::vector<Piece> pieces = {};
  std::atomic<bool> joined{false};

  static void call(void* self, const Sweep& what, const Box& piece, int slot, int into, int thread) {
    auto& loop = *static_cast<SharedLoop*>(self);
    if (what.part == Part::inner) loop.note(piece, thread);
    IntegerSweep::call(&loop.sweep, what, piece, slot, into, thread);
  }
  void note(const Box& piece, int thread) {
    {
      const std::lock_guard lock(mutex);
      pieces.push_back({piece.lo[dimension], piece.extent(dimension), thread});
    }
    if (thread == 0) joined = true;
    constexpr double limit_s = 20;
    for (const double begin = now_s(); !joined && now_s() - begin < limit_s;) std::this_thread::yield();
  }
};

TEST(RunnerTrace, W13_TheCommunicatingThreadJoinsAGuidedLoop) {
  LoneRank rank(Layout({3, {12, 12, 98}, {true, true, true}}, {2, 1, 1}), true, "comm-thread");
  constexpr int threads = 3, along_z = 2;
  const auto inner = std::find_if(rank.program.sweeps.begin(), rank.program.sweeps.end(),
                                  [](const Sweep& sweep) { return sweep.part == Part::inner; });
  const std::int64_t layers = inner->region.extent(along_z), smallest = layers / (16 * threads);
  SharedLoop loop{.sweep = rank.sweep, .dimension = along_z};
  RunnerOptions options{.threads = threads, .yield = true};
  Runner(rank.program, rank.comm, {&SharedLoop::call, &loop}, options).run(0, 0);
  EXPECT_TRUE(loop.joined) << "thread 0 computed nothing";
  std::sort(loop.pieces.begin(), loop.pieces.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::int64_t next = inner->region.lo[along_z];
  const std::int64_t end = next + layers;
  for (const auto& piece : loop.pieces) {
    EXPECT_EQ(piece.begin, next);
    EXPECT_EQ(piece.size, std::min(end - next, std::max(smallest, (end - next) / (2 * threads))))
        << "a piece is a share of the layers that are left";
    next += piece.size;
  }
  EXPECT_EQ(next, end);
}

TEST(RunnerTrace, W11_BuffersAreFilledAndEmptiedByTheTeamWhereThatPays) {
  const auto teams = [](const char* schedule, const Index& cells, int threads) {
    LoneRank rank(Layout({3, cells, {true, true, true}}, {2, 1, 1}), true, schedule);
    RunnerOptions options{.threads = threads};
    rank.runner(options).run(0, 0);
    return std::pair{rank.link.most_packers(), rank.link.most_unpackers()};
  };
  EXPECT_EQ(teams("bulk", {16, 60, 60}, 3), (std::pair{3, 3}));
  EXPECT_EQ(teams("split", {16, 60, 60}, 2), (std::pair{2, 2}));
  EXPECT_EQ(teams("bulk", {16, 60, 60}, 1), (std::pair{1, 1}));
  EXPECT_EQ(teams("bulk", {16, 10, 10}, 3), (std::pair{1, 1})) << "too little work to call the team";
  EXPECT_EQ(teams("comm-thread", {16, 60, 60}, 3), (std::pair{1, 1})) << "the other threads compute";
}

TEST(RunnerTrace, V11_PackComesBeforeInnerAndOuterAfterUnpack) {
  LoneRank rank(Layout({2, {12, 12, 1}, {true, true, false}}, {2, 2, 1}), false, "split");
  int first_inner = -1, first_outer = -1, last_unpack = -1, first_pack = -1;
  RunnerOptions options{.trace_events = 100};
  Runner runner = rank.runner(options);
  runner.run(0, 0);
  for (int i = 0; i < static_cast<int>(runner.trace().size()); ++i) {
    const Op& op = rank.program.ops[runner.trace()[i].op];
    if (op.kind == OpKind::pack && first_pack < 0) first_pack = i;
    if (op.kind == OpKind::unpack) last_unpack = i;
    if (op.kind != OpKind::sweep) continue;
    const Part part = rank.program.sweeps[op.target].part;
    if (part == Part::inner && first_inner < 0) first_inner = i;
    if (part == Part::outer && first_outer < 0) first_outer = i;
  }
  EXPECT_GE(first_pack, 0);
  EXPECT_LT(first_pack, first_inner);
  EXPECT_LT(last_unpack, first_outer);
}

// Whatever the load of the machine: a timer equals the trace's seconds of its operations, and all timers, with `rest`,
// span each run from before its first operation until after its last.
TEST(RunnerTimers, V14_PartsAddUpToTheWhole) {
  LoneRank rank(Layout({2, {64, 64, 1}, {true, true, false}}, {1, 1, 1}), false, "bulk");
  RunnerOptions options{.trace_events = 1000};
  Runner runner = rank.runner(options);
  const double begin = now_s();
  double least = 0;
  std::map<OpKind, double> traced;
  for (int t = 0; t < 50; ++t) {
    runner.reset_trace();
    runner.run(t % 2, t);
    const auto& trace = runner.trace();
    ASSERT_EQ(trace.size(), rank.program.ops.size());
    least += trace.back().end_s - trace.front().begin_s;
    for (const TraceEvent& e : trace) traced[rank.program.ops[e.op].kind] += e.end_s - e.begin_s;
  }
  const double whole = now_s() - begin;
  double sum = 0;
  for (double s : runner.seconds()) {
    EXPECT_GE(s, 0);
    sum += s;
  }
  constexpr double rounding_s = 1e-9;
  EXPECT_GE(sum, least - rounding_s);
  EXPECT_LE(sum, whole + rounding_s);
  EXPECT_EQ(traced.size(), 2u) << "a lone rank copies and sweeps";
  EXPECT_DOUBLE_EQ(runner.seconds()[static_cast<int>(Timer::compute)], traced[OpKind::sweep]);
  EXPECT_DOUBLE_EQ(runner.seconds()[static_cast<int>(Timer::copy)], traced[OpKind::copy]);
  EXPECT_GT(traced[OpKind::sweep], 0);
}

}  // namespace
}  // namespace haloscope
