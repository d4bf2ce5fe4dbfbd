// Every device strategy x schedule x depth x region gives the bytes of `reference`, on devices made of the CPU whose
// streams sleep for random times before each piece of work, with halos poisoned before each exchange.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>

#include "app_problem.hpp"
#include "haloscope/error.hpp"
#include "haloscope/run/run.hpp"

namespace haloscope {
namespace {

using namespace test;

/// What the host back end imitates while this lives.
struct Imitated {
  explicit Imitated(const char* text) { setenv("HALOSCOPE_HOST_DEVICE", text, 1); }
  ~Imitated() { unsetenv("HALOSCOPE_HOST_DEVICE"); }
};

std::uint64_t result(const Choice& choice, const DeviceOptions& device = {}) {
  SimulationOptions options;
  options.device = device;
  Simulation simulation(MPI_COMM_WORLD, choice, AppParameters{}, options);
  simulation.initialise();
  simulation.run(7, true);
  EXPECT_TRUE(simulation.canaries_alive());
  return simulation.checksum();
}

void check_problem(const Problem& problem) {
  const Imitated slow("devices=2,delay_us=20");
  std::uint64_t expected[2];
  for (int periodic : {0, 1}) {
    Choice reference = choice_for(problem, periodic == 1);
    reference.strategy = "reference";
    expected[periodic] = result(reference);
  }
  int ran = 0, turn = static_cast<int>(problem.cells[0]);
  const int stride = thorough() ? 1 : world_size() == 1 ? 5 : world_size() <= 3 ? 13 : 29;
  for (const auto& strategy : device_strategy_names())
    for (const char* schedule : {"bulk", "streams", "resident", "faces", "faces-overlap"})
      for (bool periodic : {true, false})
        for (int depth : {1, 2, 3})
          for (const auto& region : region_names()) {
            Choice c = choice_for(problem, periodic);
            c.strategy = strategy;
            c.schedule = schedule;
            c.depth = depth;
            c.region = region;
            c.device = "host";
            if ((depth == 1 && region != "full") || !illegal(c).empty() || turn++ % stride != 0) continue;
            DeviceOptions device;
            device.kernel = turn % 3 == 0 ? "naive" : turn % 3 == 1 ? "stream" : "shared";
            device.pack_first = turn % 2 == 0;
            ASSERT_EQ(result(c, device), expected[periodic])
                << strategy << " " << schedule << " depth " << depth << " " << region << " periodic " << periodic
                << " kernel " << device.kernel << " pack first " << device.pack_first;
            ++ran;
          }
  EXPECT_GE(ran, 1);  // small blocks, as those of many ranks, leave few depths
}

TEST(Devices, W14_DenseAdvectionIsByteIdentical) { check_problem({"advection3d", "dense", "f64", {11, 10, 13}}); }
TEST(Devices, W14_SeparableAdvectionIsByteIdentical) {
  check_problem({"advection3d", "separable", "f64", {12, 9, 14}});
}
TEST(Devices, Laplace2dFloatIsByteIdentical) { check_problem({"laplace2d", "star", "f32", {23, 19, 1}}); }
TEST(Devices, Laplace2dDoubleIsByteIdentical) { check_problem({"laplace2d", "star", "f64", {29, 17, 1}}); }
TEST(Devices, Laplace3dDoubleIsByteIdentical) { check_problem({"laplace3d", "star", "f64", {10, 12, 11}}); }

/// All of these that are legal, on periodic and other grids, give the bytes of `reference`. @param walls  1 to so many
/// layers, with one thread and two in turn; 0: no box. @return how many ran.
int check_all(const std::vector<Problem>& problems, const std::vector<std::string>& schedules,
              const std::vector<std::string>& strategies, int walls = 0) {
  const Imitated slow("delay_us=20");
  int ran = 0;
  for (const Problem& problem : problems)
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
            c.box = std::max(layers, 1);
            c.threads = 1 + layers % 2;
            if (!illegal(c).empty()) continue;
            EXPECT_EQ(result(c), expected) << problem.app << " " << schedule << " " << strategy << " " << layers;
            ++ran;
          }
    }
  return ran;
}

TEST(Devices, W15_KernelsOfFacesGiveTheSameBytes) {
  const std::vector<Problem> problems{{"advection3d", "dense", "f64", {9, 8, 7}},
                                      {"advection3d", "separable", "f64", {8, 9, 11}},
                                      {"laplace2d", "star", "f32", {13, 9, 1}},
                                      {"laplace3d", "star", "f64", {7, 8, 9}}};
  const int ran = check_all(problems, {"faces", "faces-overlap"},
                            {"ordered/staged", "direct/staged", "direct:corners/staged:pageable", "direct:merged/aware",
                             "ordered:self-first/aware"});
  EXPECT_GE(ran, 40);
}

TEST(Devices, FieldsThatChangeBetweenRunsAreWhatFacesSend) {
  Choice c = choice_for({"laplace2d", "star", "f64", {12, 11, 1}}, true);
  c.device = "host";
  c.strategy = "direct/staged";
  c.schedule = "faces";
  Simulation simulation(MPI_COMM_WORLD, c, AppParameters{}, SimulationOptions{});
  simulation.initialise();
  simulation.run(3);
  const std::uint64_t once = simulation.checksum();
  simulation.run(4);
  simulation.initialise();
  simulation.run(3);
  EXPECT_EQ(simulation.checksum(), once);
}

TEST(Devices, W17_W18_ABlockInABoxIsByteIdentical) {
  const std::vector<Problem> problems{{"advection3d", "dense", "f64", {19, 18, 23}},
                                      {"laplace2d", "star", "f32", {31, 37, 1}},
                                      {"laplace3d", "star", "f64", {17, 21, 18}}};
  const int ran = check_all(problems, {"box", "box-overlap"},
                            {"ordered/p2p", "direct:merged/persistent", "ordered:self-first/p2p"}, 3);
  EXPECT_GE(ran, 12);
}

TEST(Devices, ABoxThickerThanHalfTheBlockIsRefused) {
  Choice c = choice_for({"laplace2d", "star", "f64", {40, 8, 1}}, true);
  c.ranks = 1;
  c.device = "host";
  c.schedule = "box";
  c.box = 4;
  EXPECT_NE(illegal(c).find("leaves no block for the device in y"), std::string::npos) << illegal(c);
}

TEST(Devices, AGridThatDoesNotFitIsRefusedWithBothNumbers) {
  const Imitated small("bytes=20000");
  Choice c = choice_for({"laplace2d", "star", "f64", {100, 90, 1}}, true);
  c.device = "host";
  c.strategy = "ordered/staged";
  try {
    Simulation simulation(MPI_COMM_WORLD, c, AppParameters{}, SimulationOptions{});
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("20000"), std::string::npos) << text;
    EXPECT_NE(text.find("fewer cells"), std::string::npos) << text;
  }
}

TEST(Devices, TimersTellThePhasesOfADeviceApart) {
  Choice c = choice_for({"laplace2d", "star", "f64", {64, 48, 1}}, true);
  c.device = "host";
  c.strategy = "direct/staged";
  c.schedule = "streams";
  Simulation simulation(MPI_COMM_WORLD, c, AppParameters{}, SimulationOptions{});
  simulation.initialise();
  simulation.run(5);
  const auto seconds = simulation.seconds();
  for (Timer timer : {Timer::pack, Timer::d2h, Timer::h2d, Timer::unpack, Timer::inner})
    EXPECT_GT(seconds[static_cast<int>(timer)], 0) << to_string(timer);
}

TEST(Devices, W16_W19_TheInteriorRunsWhileMessagesTravel) {
  const Imitated slow("delay_us=300");  // a stream that sleeps still lets the other lanes go on
  Choice c = choice_for({"laplace2d", "star", "f64", {96, 96, 1}}, true);
  c.device = "host";
  c.strategy = "direct/staged";
  c.schedule = "streams";
  SimulationOptions options;
  options.runner.trace_events = 10000;
  options.device.pack_first = false;
  Simulation simulation(MPI_COMM_WORLD, c, AppParameters{}, options);
  simulation.initialise();
  simulation.run(20);
  const Program& program = simulation.program();
  const auto& trace = simulation.runner().trace();
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
