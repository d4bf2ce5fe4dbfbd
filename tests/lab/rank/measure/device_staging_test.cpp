// Fields of a device that the host never holds as a whole: the size of the staging buffers that they pass through
// changes no byte, and host memory does not grow with the grid.
#include <gtest/gtest.h>
#include <mpi.h>

#include <functional>
#include <vector>

#include "allocation_counter.hpp"
#include "faulty_device.hpp"
#include "haloscope/rank/measure/run.hpp"
#include "staging_rig.hpp"

namespace haloscope {
namespace {

using namespace test;

TEST(DeviceHatch, ItsSizeChangesNoByteIn2d) {
  const Imitated slow("delay_us=5");
  for (const bool periodic : {true, false}) {
    expect_same_through(device_choice({"laplace2d", "star", Real::f64, {15, 11, 1}}, periodic),
                        {8, 60, 1000, usual_hatch_bytes});
    expect_same_through(device_choice({"laplace2d", "star", Real::f32, {13, 9, 1}}, periodic),
                        {4, 130, usual_hatch_bytes});
  }
}

TEST(DeviceHatch, ItsSizeChangesNoByteIn3d) {
  for (const bool periodic : {true, false}) {
    expect_same_through(device_choice({"laplace3d", "star", Real::f64, {10, 12, 11}}, periodic),
                        {100, 5000, usual_hatch_bytes});
    expect_same_through(device_choice({"laplace3d", "star", Real::f32, {11, 9, 13}}, periodic, "streams"), {100, 5000});
  }
  Choice advected = device_choice({"advection3d", "dense", Real::f64, {11, 10, 13}}, true, "streams");
  advected.grid.periodic = {true, true, true};
  advected.set["initial"] = "gaussian";
  expect_same_through(advected, {200, 3000, usual_hatch_bytes});
}

TEST(DeviceHatch, ItsSizeChangesNoByteBesideWallsOfTheHost) {
  for (const AppProblem& problem : {AppProblem{"advection3d", "separable", Real::f64, {19, 18, 23}},
                                    AppProblem{"laplace2d", "star", Real::f32, {31, 37, 1}}}) {
    Choice c = device_choice(problem, true, "box-overlap");
    c.strategy = "ordered/p2p";
    expect_same_through(c, {300, 4000, usual_hatch_bytes});
  }
}

TEST(DeviceHatch, APointThatDoesNotFitIsRefusedWithTheRemedy) {
  haloscope::Run run(MPI_COMM_WORLD, device_choice({"laplace2d", "star", Real::f64, {29, 17, 1}}, true), {}, 5);
  const std::string error = error_of([&] { run.initialise(); });
  EXPECT_PART(error, "parts of 5 bytes");
  EXPECT_PART(error, "use at least the bytes of");
}

TEST(DeviceHatch, AByteWrittenBesideAFieldOfADeviceIsNoticed) {
  haloscope::Run run(MPI_COMM_WORLD, device_choice({"laplace2d", "star", Real::f64, {32, 17, 1}}, true), {}, 500);
  run.initialise();
  EXPECT_TRUE(run.canaries_alive());
  const SlotView& field = run.stage(0).views()[0][1];
  const Index cells = run.layout().local_cells(run.plan().rank);
  for (const Index& beside : {Index{cells[0] + 1, 3, 0}, Index{-2, -1, 0}, Index{cells[0] + 1, cells[1], 0}}) {
    run.initialise();
    const std::byte wrong{0};
    const auto stream = run.device()->stream();
    stream->copy(field.at(beside), &wrong, 1);
    stream->finish();
    EXPECT_FALSE(run.canaries_alive()) << beside[0] << " " << beside[1];
  }
}

/// The max bytes of host memory that a run holds, from its beginning to its end, without MPI's.
std::int64_t host_bytes(const Choice& choice, std::int64_t& field_bytes) {
  const std::int64_t taken = taken_bytes(), held = held_bytes();
  most_held_bytes(true);
  haloscope::Run run(MPI_COMM_WORLD, choice, {}, 1 << 14);
  field_bytes = run.field_bytes();
  run.initialise();
  run.advance(3, true);
  run.checksum();
  run.canaries_alive();
  run.value({0, 0, 0});
  if (run.has_exact_solution()) run.error_norms();
  return most_held_bytes() - held + taken_bytes() - taken;
}

TEST(DeviceHatch, HostMemoryDoesNotGrowWithTheGrid) {
  const auto cube = [](std::int64_t n, const char* strategy) {
    Choice c = device_choice({"laplace3d", "star", Real::f64, {n, n, n * world_size()}}, true, "streams");
    c.process_grid = "1x1x" + std::to_string(world_size());
    c.strategy = strategy;
    return c;
  };
  std::int64_t fields = 0, small_fields = 0;
  for (const char* strategy : {"ordered/staged", "direct/aware", "ordered/ipc"}) {
    const std::int64_t small = host_bytes(cube(24, strategy), small_fields),
                       large = host_bytes(cube(96, strategy), fields);
    EXPECT_GT(fields, 40 * small_fields) << strategy;
    EXPECT_LT(large, fields / 8) << strategy;          // messages, and their descriptions
    EXPECT_LT(large - small, 16 * small) << strategy;  // which grow with the faces: 16 times
  }
  Choice here = cube(96, "ordered/p2p");
  here.device.clear();
  here.schedule = "bulk";
  EXPECT_GT(host_bytes(here, fields), fields);  // so that the counts see fields in host memory
}

}  // namespace
}  // namespace haloscope
