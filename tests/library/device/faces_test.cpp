// Sweeps of faces: faces that they have packed are not packed again, until fields may have changed. The bytes are
// tested with ranks (mpi/device_test.cpp).
#include <gtest/gtest.h>

#include "device_here.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/candidate.hpp"
#include "haloscope/extend/schedule.hpp"
#include "haloscope/field/field.hpp"
#include "haloscope/runner/device_ops.hpp"

namespace haloscope {
namespace {

/// Messages of a rank without neighbours: none; counts the launches that would pack them.
struct NoMessages final : DeviceLink {
  int packed = 0, taken = 0;
  void post(Ids, int) override {}
  void send(Ids, int) override {}
  bool test(Ids, int) override { return true; }
  void wait(Ids, int) override {}
  bool test_complete(Ids, int) override { return true; }
  void complete(Ids, int) override {}
  int waiting_for(Ids, int) const override { return -1; }
  void pack_on(device::Stream&, Ids, int) override { ++packed; }
  void unpack_on(device::Stream&, Ids, int) override {}
  void to_host(device::Stream&, Ids, int) override {}
  void to_device(device::Stream&, Ids, int) override {}
  void taken_on(device::Stream&, int) override { ++taken; }
};

TEST(DeviceFaces, ArePackedByALaunchOfTheirOwnInTheFirstStepOfARunAlone) {
  device::Device& device = device::test::here();
  const Step step = stencil_step(2, 1, false);
  const Plan plan = make_plan(Layout(GridSpec{2, {8, 6, 1}, {true, true, false}}, {1, 1, 1}), 0,
                              ExchangeSpec{.high = {1, 1, 0}, .pattern = Pattern::direct});
  ScheduleOptions options{.device = true};
  Program program = find_schedule("faces").make(step.stages[0], plan, options);
  program.sweeps.front().faces = true;  // as with neighbours
  const Storage host(plan, 2);
  device::Buffer image(device, device::Space::device, host.all().size());
  Views views = host.views();
  for (auto& slots : views)
    for (SlotView& view : slots) view.origin = image.data() + (view.origin - host.all().data());
  DeviceStreams streams(device);
  DeviceSweeps sweeps;
  sweeps.faces = device::find_faces(device.kernels(), "laplace2d", "f64");
  NoMessages link;
  DeviceOps ops(program, plan, host.views(), views, &link, streams, sweeps, false);
  const auto run = [&](int steps) {
    for (int done = 0; done < steps; ++done) {
      ops.begin(done, done);
      for (std::size_t i = 0; i < program.ops.size(); ++i)
        if (on_device(program.ops[i].lane)) ops.enqueue(static_cast<int>(i), done % 2, 1 - done % 2);
      ops.end();
    }
    ops.finish();
  };
  run(5);
  EXPECT_EQ(link.packed, 1);
  EXPECT_EQ(link.taken, 5);
  run(3);
  EXPECT_EQ(link.packed, 2);
}

TEST(DeviceFaces, TwoBoxesOfMoreCellsTogetherThanALaunchTakesAreRefused) {
  device::Device& device = device::test::here();
  const auto stream = device.stream();
  device::SweepLaunch launch;
  launch.region = launch.twin = {{0, 0, 0}, {1 << 15, 1 << 15, 1}};  // each of the max number of cells
  EXPECT_THROW(device::find_faces(device.kernels(), "laplace2d", "f64")(*stream, launch), UsageError);
}

}  // namespace
}  // namespace haloscope
