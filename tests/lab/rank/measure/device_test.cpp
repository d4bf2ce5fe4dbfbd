// Every device strategy x schedule x depth x kind of substeps gives the bytes of `reference`, on devices imitated by
// the CPU whose streams sleep for random times before each piece of work, with halos poisoned before each exchange.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <thread>

#include "app_problem.hpp"
#include "faulty_device.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/schedule.hpp"
#include "haloscope/rank/measure/run.hpp"

namespace haloscope {
namespace {

using namespace test;

std::uint64_t result(const Choice& choice) { return checksum_of(choice, 7); }

void check_on_devices(const AppProblem& problem) {
  const Imitated slow("devices=2,delay_us=20");
  std::uint64_t expected[2];
  for (int periodic : {0, 1}) {
    Choice reference = choice_for(problem, periodic == 1);
    reference.strategy = "reference";
    expected[periodic] = result(reference);
  }
  int ran = 0, turn = static_cast<int>(problem.cells[0]);
  const int stride = thorough() ? 1 : world_size() == 1 ? 17 : world_size() <= 3 ? 37 : 53;
  for (const auto& strategy : device_strategy_names())
    for (const char* schedule : {"bulk", "streams", "resident", "faces", "faces-overlap"})
      for (bool periodic : {true, false})
        for (int depth : {1, 2, 3})
          for (Substeps substeps : {Substeps::full, Substeps::shrink, Substeps::blocked}) {
            Choice c = choice_for(problem, periodic);
            c.strategy = strategy;
            c.schedule = schedule;
            c.depth = depth;
            c.substeps = substeps;
            c.device = "host";
            if ((depth == 1 && substeps != Substeps::full) || !illegal(c).empty() || turn++ % stride != 0) continue;
            c.device_kernel = turn % 3 == 0 ? "naive" : turn % 3 == 1 ? "stream" : "shared";
            c.pack = turn % 2 == 0 ? Packing::first : Packing::beside;
            ASSERT_EQ(result(c), expected[periodic])
                << strategy << " " << schedule << " depth " << depth << " " << to_word(substeps) << " periodic "
                << periodic << " kernel " << c.device_kernel << " pack " << to_word(c.pack);
            ++ran;
          }
  EXPECT_GE(ran, 1);  // small blocks, as with many ranks, leave few depths
}

TEST(Devices, W14_DenseAdvectionIsByteIdentical) {
  check_on_devices({"advection3d", "dense", Real::f64, {11, 10, 13}});
}
TEST(Devices, W14_SeparableAdvectionIsByteIdentical) {
  check_on_devices({"advection3d", "separable", Real::f64, {12, 9, 14}});
}
TEST(Devices, Laplace2dFloatIsByteIdentical) { check_on_devices({"laplace2d", "star", Real::f32, {23, 19, 1}}); }
TEST(Devices, Laplace2dDoubleIsByteIdentical) { check_on_devices({"laplace2d", "star", Real::f64, {29, 17, 1}}); }
TEST(Devices, Laplace3dDoubleIsByteIdentical) { check_on_devices({"laplace3d", "star", Real::f64, {10, 12, 11}}); }

/// Checks that all of these that are legal, or every second one, on periodic and other grids, compute the bytes of
/// `reference`.
/// @param walls  the thickest walls; all from 1 layer on are tried, with one thread and two in turn; 0: no box.
/// @return the number of legal ones.
int check_all(const std::vector<AppProblem>& problems, const std::vector<std::string>& schedules,
              const std::vector<std::string>& strategies, int walls = 0) {
  const Imitated slow("delay_us=20");
  int legal = 0;
  const int stride = thorough() ? 1 : 2;
  for (const AppProblem& problem : problems)
    for (bool periodic : {true, false}) {
      Choice c = choice_for(problem, periodic);
      c.strategy = "reference";
      const std::uint64_t expected = result(c);
      c.device = "host";
      for (const std::string& schedule : schedules)
        for (const std::string& strategy : strategies)
          for (int layers = std::min(walls, 1); layers <= walls; ++layers) {
            c.schedule = schedule;
            c.strategy = strategy;
            c.walls = std::max(layers, 1);
            c.threads = 1 + layers % 2;
            if (!illegal(c).empty() || legal++ % stride != 0) continue;
            EXPECT_EQ(result(c), expected) << problem.app << " " << schedule << " " << strategy << " " << layers;
          }
    }
  return legal;
}

TEST(Devices, W15_KernelsOfFacesGiveTheSameBytes) {
  const std::vector<AppProblem> problems{{"advection3d", "dense", Real::f64, {9, 8, 7}},
                                         {"advection3d", "separable", Real::f64, {8, 9, 11}},
                                         {"laplace2d", "star", Real::f32, {13, 9, 1}},
                                         {"laplace3d", "star", Real::f64, {7, 8, 9}}};
  const int legal = check_all(problems, {"faces", "faces-overlap"},
                              {"ordered/staged", "direct/staged", "ordered:corners/staged:pageable",
                               "direct:corners/staged:pageable", "direct:merged/aware", "ordered:self-first/aware"});
  EXPECT_GE(legal, 48);
}

TEST(Devices, FieldsThatChangeBetweenRunsAreWhatFacesSend) {
  Choice c = choice_for({"laplace2d", "star", Real::f64, {12, 11, 1}}, true);
  c.device = "host";
  c.strategy = "direct/staged";
  c.schedule = "faces";
  haloscope::Run run(MPI_COMM_WORLD, c);
  run.initialise();
  run.advance(3);
  const std::uint64_t once = run.checksum();
  run.advance(4);
  run.initialise();
  run.advance(3);
  EXPECT_EQ(run.checksum(), once);
}

TEST(Devices, W17_W18_ABlockInABoxIsByteIdentical) {
  const std::vector<AppProblem> problems{{"advection3d", "dense", Real::f64, {19, 18, 23}},
                                         {"laplace2d", "star", Real::f32, {31, 37, 1}},
                                         {"laplace3d", "star", Real::f64, {17, 21, 18}}};
  const int legal = check_all(problems, {"box", "box-overlap"},
                              {"ordered/p2p", "direct:merged/persistent", "ordered:self-first/p2p"}, 3);
  EXPECT_GE(legal, 12);
}

TEST(Devices, AGraphIsCapturedWhateverThePattern) {
  if (world_size() > 1) GTEST_SKIP() << "graphs are of a lone rank";
  Choice c = choice_for({"laplace2d", "star", Real::f64, {12, 11, 1}}, true);
  c.strategy = "reference";
  const std::uint64_t expected = result(c);
  c.device = "host";
  c.capture = true;
  for (const char* strategy : {"ordered/staged", "direct/staged", "direct/taskqueue"})
    for (const char* schedule : {"bulk", "streams"}) {
      c.strategy = strategy;
      c.schedule = schedule;
      EXPECT_EQ(result(c), expected) << strategy << " " << schedule;
    }
}

/// At its beginning, in its work, or at its end, at the first capture or the second one.
TEST(Devices, AfterACaptureThatFailsAnywhereARunGoesOn) {
  if (world_size() > 1) GTEST_SKIP() << "graphs are of a lone rank";
  Choice c = choice_for({"laplace2d", "star", Real::f64, {12, 11, 1}}, true);
  c.device = "host";
  c.strategy = "ordered/staged";
  c.schedule = "streams";
  const std::uint64_t expected = result(c);
  c.capture = true;
  int call = 0;
  for (bool fails = true; fails; ++call) {
    const Imitated refusing("refused_call=" + std::to_string(call));
    haloscope::Run run(MPI_COMM_WORLD, c);
    run.initialise();
    try {
      run.advance(7);
      fails = false;
    } catch (const Error&) {
    }
    run.initialise();
    run.advance(7);
    EXPECT_EQ(run.checksum(), expected) << call;
  }
  EXPECT_GT(call, 10);
}

/// As after a launch that is refused while it is recorded.
TEST(Devices, AfterADroppedCaptureStreamsDoTheirWorkAgain) {
  const auto device = device::find_backend("host").open(0);
  DeviceStreams streams(*device);
  ExchangeSpec spec;
  spec.low = spec.high = {1, 0, 0};
  const Plan plan = make_plan(Layout({1, {8, 1, 1}, {true, false, false}}, {1, 1, 1}), 0, spec);
  ScheduleOptions options{.device = true};
  const Program program = exchange_program(plan, options);
  const std::vector<double> before{0, 1, 2, 3, 4, 5, 6, 7, 8, 0};
  const device::Buffer memory = device::copied_to(*device, before.data(), before.size() * sizeof(double));
  const Views views{{SlotView{memory.data() + sizeof(double), {8, 80, 80}}}};
  DeviceOps ops(program, plan, views, views, nullptr, streams, DeviceSweeps(), false);
  const auto enqueue = [&] {
    for (std::size_t i = 0; i < program.ops.size(); ++i)
      if (program.ops[i].kind == OpKind::copy) ops.enqueue(static_cast<int>(i), 0, 0);
  };
  ops.begin_capture();
  enqueue();
  ops.drop_capture();
  std::vector<double> found(before.size());
  const auto look = [&] {
    streams.streams[0]->copy(found.data(), memory.data(), memory.size());
    streams.finish();
    return found;
  };
  EXPECT_EQ(look(), before);
  EXPECT_FALSE(ops.replay(0));
  ops.begin(1, 0);
  enqueue();
  ops.end();
  EXPECT_EQ(look(), (std::vector<double>{8, 1, 2, 3, 4, 5, 6, 7, 8, 1}));
}

TEST(Devices, ABoxThickerThanHalfTheBlockIsRefused) {
  Choice c = choice_for({"laplace2d", "star", Real::f64, {40, 8, 1}}, true);
  c.ranks = 1;
  c.device = "host";
  c.schedule = "box";
  c.walls = 4;
  EXPECT_PART(illegal(c), "leave no block for the device in y");
}

TEST(Devices, AGridThatDoesNotFitIsRefusedWithBothNumbers) {
  const Imitated small("bytes=20000");
  Choice c = choice_for({"laplace2d", "star", Real::f64, {100, 90, 1}}, true);
  c.device = "host";
  c.strategy = "ordered/staged";
  const std::string text = error_of<Error>([&] { haloscope::Run run(MPI_COMM_WORLD, c); });
  EXPECT_PART(text, "20000");
  EXPECT_PART(text, "fewer cells");
}

TEST(Devices, TimersTellThePhasesOfADeviceApart) {
  Choice c = choice_for({"laplace2d", "star", Real::f64, {64, 48, 1}}, true);
  c.device = "host";
  c.strategy = "direct/staged";
  c.schedule = "streams";
  haloscope::Run run(MPI_COMM_WORLD, c);
  run.initialise();
  run.advance(5);
  const auto seconds = run.seconds();
  for (Timer timer : {Timer::pack, Timer::d2h, Timer::h2d, Timer::unpack, Timer::inner})
    EXPECT_GT(seconds[static_cast<int>(timer)], 0) << to_string(timer);
}

/// Returns the number of steps in which the interior's kernel overlaps sending or waiting.
int overlapped_steps(const Program& program, const std::vector<TraceEvent>& trace) {
  std::set<std::int64_t> steps;
  for (const TraceEvent& a : trace) {
    const Op& interior = program.ops[a.op];
    if (interior.kind != OpKind::sweep || program.sweeps[interior.target].part != Part::inner) continue;
    for (const TraceEvent& b : trace) {
      const OpKind kind = program.ops[b.op].kind;
      const bool message = kind == OpKind::send || kind == OpKind::wait;
      if (message && b.program == a.program && b.begin_s < a.end_s && a.begin_s < b.end_s) steps.insert(a.program);
    }
  }
  return static_cast<int>(steps.size());
}

/// Version G, next to version F, whose interior comes after the messages.
TEST(Devices, W16_W19_InVersionGTheInteriorRunsWhileMessagesTravel) {
  if (world_size() == 1) GTEST_SKIP() << "a lone rank sends nothing";
  constexpr int steps = 20;
  Choice c = choice_for({"advection3d", "dense", Real::f64, {48, 48, 48}}, true);
  c.device = "host";
  c.strategy = "direct/staged";
  for (const char* schedule : {"faces-overlap", "faces"}) {
    c.schedule = schedule;
    haloscope::Run run(MPI_COMM_WORLD, c, {.trace_events = 10000});
    run.initialise();
    run.advance(steps);
    int overlapped = overlapped_steps(run.program(), run.runners().front()->trace());
    MPI_Allreduce(MPI_IN_PLACE, &overlapped, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (c.schedule->name == "faces")
      EXPECT_EQ(overlapped, 0) << "version F overlaps nothing";
    else
      EXPECT_GE(overlapped, steps / 2) << "of " << steps * world_size() << " steps of all ranks";
  }
}

/// After the last step, while the clock is read, no work of a device is left: none begins later.
TEST(Devices, W21_ARunReturnsAfterTheDevicesLastWork) {
  const auto begun = std::make_shared<std::atomic<int>>(0);
  const Imitated device("");
  change_imitation([&](device::host::Imitation& now) {
    now.before_work = [begun](unsigned) {
      return [begun] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ++*begun;
      };
    };
  });
  Choice c = choice_for({"laplace2d", "star", Real::f64, {24, 24, 1}}, true);
  c.device = "host";
  c.strategy = "ordered/staged";
  haloscope::Run run(MPI_COMM_WORLD, c);
  run.initialise();
  run.advance(20);
  const int at_return = *begun;
  EXPECT_GE(at_return, 20);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(*begun, at_return);
}

TEST(Devices, W16_W19_TheInteriorRunsWhileMessagesTravel) {
  const Imitated slow("delay_us=300");  // a stream that sleeps still lets the other lanes continue
  Choice c = choice_for({"laplace2d", "star", Real::f64, {96, 96, 1}}, true);
  c.device = "host";
  c.strategy = "direct/staged";
  c.schedule = "streams";
  c.pack = Packing::beside;
  RunnerOptions options{.trace_events = 10000};
  haloscope::Run run(MPI_COMM_WORLD, c, options);
  run.initialise();
  run.advance(20);
  const Program& program = run.program();
  const auto& trace = run.runners().front()->trace();
  int overlapped = 0, streams = 0;
  for (const TraceEvent& a : trace) {
    const Op& interior = program.ops[a.op];
    streams += on_device(interior.lane);
    if (interior.kind != OpKind::sweep || program.sweeps[interior.target].part != Part::inner) continue;
    for (const TraceEvent& b : trace) {
      const OpKind kind = program.ops[b.op].kind;
      const bool exchange = kind == OpKind::pack || kind == OpKind::d2h || kind == OpKind::wait || kind == OpKind::h2d;
      overlapped += exchange && b.program == a.program && b.begin_s < a.end_s && a.begin_s < b.end_s;
    }
  }
  EXPECT_GT(streams, 20 * 4);
  EXPECT_GT(overlapped, 0);
}

}  // namespace
}  // namespace haloscope
