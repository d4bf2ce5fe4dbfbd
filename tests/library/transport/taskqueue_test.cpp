// Transport taskqueue: the same bytes with all options and delays, and its end when a message does not come.
#include <gtest/gtest.h>
#include <mpi.h>
#include <sched.h>

#include <atomic>
#include <random>
#include <thread>

#include "device_rig.hpp"
#include "haloscope/comm/patience.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/error.hpp"
#include "haloscope/rank/measure/run.hpp"

namespace haloscope::test {
namespace {

/// Streams and blocks sleep for random times, blocks up to `us`; a kernel has up to `blocks` blocks a rank.
std::string with_slow_blocks(int us, int blocks) {
  return "devices=8,delay_us=20,block_delay_us=" + std::to_string(us) + ",resident=" + std::to_string(8 * blocks);
}

TEST(NT1_NT2_NT3_NT4_Taskqueue, EveryWayToTellGivesTheSameBytesUnderRandomDelays) {
  const Imitated slow(with_slow_blocks(30, 3));
  const int ran = expect_bytes_of_reference(
      {{"advection3d", "dense", Real::f64, {9, 8, 11}},
       {"laplace2d", "star", Real::f32, {31, 27, 1}},
       {"laplace3d", "star", Real::f64, {11, 7, 13}}},
      {"ordered/taskqueue", "direct/taskqueue:device,chunks=16", "direct:merged/taskqueue:queue,chunks=3",
       "ordered:self-first/taskqueue:device,queue", "direct:corners/taskqueue:chunks=5"},
      {"bulk", "streams"}, thorough() ? 1 : 13);
  EXPECT_GE(ran, 4);
}

/// Ten times the limit, and a hundred times the time that kernels stay.
TEST(Taskqueue, AMessageThatIsLateIsWaitedForAndReportedWithTheStateOfMessagesAndBlocks) {
  if (world_size() < 2 || world_size() > 3) GTEST_SKIP() << "needs a neighbour, and a core for it";
  const Environment patience("HALOSCOPE_PATIENCE", "0.05");
  if (patience_s() > 1) GTEST_SKIP() << "another test of this process has read the patience before";
  const Imitated short_stay("devices=8,resident=16,stay_us=5000");
  for (const char* strategy : {"direct/taskqueue:device,queue,chunks=2", "direct/taskqueue:chunks=2"}) {
    DeviceRig rig(strategy);
    rig.set(1);
    rig.begin();
    if (world_rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    testing::internal::CaptureStderr();
    rig.end();
    const std::string text = testing::internal::GetCapturedStderr();
    rig.expect(1);
    if (world_rank() != 1) continue;
    EXPECT_PART(text, "rank 1 has waited for");
    EXPECT_PART(text, "from rank 0: 0 of 2 parts here");
    EXPECT_PART(text, "left: blocks 0 1");
  }
}

/// The process does other work, perhaps waits for the device as a whole, and the kernel has left when it returns.
TEST(Taskqueue, AKernelThatLeavesBeforeItsMessagesAreSentLosesNone) {
  const Imitated short_stay("devices=8,resident=16,stay_us=100");
  for (const char* strategy :
       {"direct/taskqueue", "direct/taskqueue:queue,chunks=3", "direct/taskqueue:device,chunks=16"}) {
    DeviceRig rig(strategy);
    for (int exchange = 1; exchange < 6; ++exchange) {
      rig.set(exchange);
      rig.begin();
      rig.stream->finish();
      rig.end();
      rig.expect(exchange);
    }
  }
}

/// Messages come before, while and after the kernel leaves.
TEST(Taskqueue, KernelsThatLeaveAtAnyTimeLoseNoMessage) {
  const Imitated short_stay("devices=8,resident=24,stay_us=150");
  std::minstd_rand random(static_cast<unsigned>(world_rank()) + 1);
  DeviceRig rig("direct/taskqueue:chunks=4");
  for (int exchange = 1; exchange < 300; ++exchange) {
    rig.set(exchange);
    rig.begin();
    for (const double until = now_s() + 1e-6 * std::uniform_real_distribution<>(0, 300)(random); now_s() < until;)
      sched_yield();
    rig.end();
    rig.expect(exchange);
    ASSERT_FALSE(HasFailure()) << "exchange " << exchange;
  }
}

/// The first kernel never packs: each call reports that, and the end waits for nothing.
TEST(Taskqueue, ADeviceThatFailsEndsEveryCallWithTheReasonAndThePeers) {
  if (world_size() < 2) GTEST_SKIP() << "needs a neighbour";
  Doom doom("devices=8,resident=16");
  DeviceRig rig("direct/taskqueue");
  doom.come(0);
  const std::string text = error_of<Error>([&] {  // the first of them that reads the device
    rig.begin();
    rig.moves().send(rig.out, 0);
    rig.link->wait(rig.in, 0);
  });
  EXPECT_PART(text, "the device is lost");
  EXPECT_PART(text, "to rank " + std::to_string((world_rank() + 1) % world_size()) + ": 0 of 1 parts packed");
  EXPECT_EQ(error_of<Error>([&] { rig.link->complete(rig.out, 0); }), text);
  EXPECT_EQ(error_of<Error>([&] { rig.link->test(rig.in, 0); }), text);
  EXPECT_EQ(error_of<Error>([&] { rig.moves().post(rig.in, 1); }), text);
  EXPECT_EQ(error_of<Error>([&] { rig.moves().pack_on(*rig.stream, rig.out, 1); }), text);
  rig.link.reset();
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Taskqueue, RanksThatOnlySendOrOnlyReceiveHaveAKernelToo) {
  if (world_size() < 2) GTEST_SKIP() << "needs a neighbour";
  const Imitated slow(with_slow_blocks(20, 2));
  DeviceRig rig("direct/taskqueue:queue,chunks=2", true);
  const bool first = world_rank() == 0, last = world_rank() == world_size() - 1;
  ASSERT_EQ(rig.in.size(), first ? 0u : 1u);
  ASSERT_EQ(rig.out.size(), last ? 0u : 1u);
  for (int exchange = 0; exchange < 4; ++exchange) {
    const int slot = exchange % 2;
    const SlotView& field = rig.fields.views()[0][slot];
    const auto value = [&](int x, int y) { return reinterpret_cast<double*>(field.at({x, y, 0})); };
    for (int y = 0; y < 600; ++y) *value(7, y) = 1000.0 * (world_rank() + 10 * exchange) + y;
    if (!first) rig.moves().post(rig.in, slot);
    rig.moves().pack_on(*rig.stream, rig.out, slot);
    rig.moves().send(rig.out, slot);
    rig.link->wait(rig.in, slot);
    rig.moves().unpack_on(*rig.stream, rig.in, slot);
    rig.link->complete(rig.out, slot);
    rig.stream->finish();
    for (int y = 0; y < 600 && !first; ++y)
      ASSERT_EQ(*value(-1, y), 1000.0 * (world_rank() - 1 + 10 * exchange) + y) << "exchange " << exchange;
  }
}

TEST(Taskqueue, ALinkThatIsAbandonedHasNoKernelRunning) {
  DeviceRig rig("direct/taskqueue");
  rig.begin();
  rig.link->abandon();
  rig.stream->finish();
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Taskqueue, ALinkDestroyedInFlightCompletesItsMessages) {
  for (const char* strategy : {"direct/taskqueue:queue,chunks=3", "direct/taskqueue:device"}) {
    DeviceRig rig(strategy);
    rig.begin();
    rig.moves().send(rig.out, 0);
    rig.link.reset();
    rig.stream->finish();
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST(NT7_NX2_Taskqueue, PartsAreSentWhileOthersAreNotYetPacked) {
  if (world_size() < 2) GTEST_SKIP() << "needs a neighbour";
  if (world_size() > 8) GTEST_SKIP() << "ranks would share a device and its blocks";
  const Imitated imitated("devices=8,resident=16");  // two blocks a rank
  std::atomic<bool> held{true};
  change_imitation([&](device::host::Imitation& now) {
    now.before_block = [&held](int block) {
      while (block == 1 && held) sched_yield();
    };
  });
  DeviceRig rig("direct/taskqueue:chunks=4");
  const Sent before = sent();
  const auto parts_sent = [&] { return sent().messages - before.messages; };
  rig.begin();
  rig.moves().send(rig.out, 0);
  for (const double end = now_s() + 60; parts_sent() < 4 && now_s() < end;) EXPECT_FALSE(rig.link->test(rig.in, 0));
  EXPECT_EQ(parts_sent(), 4);  // every second one of the two messages' parts
  MPI_Barrier(MPI_COMM_WORLD);
  held = false;
  rig.link->wait(rig.in, 0);
  rig.link->complete(rig.out, 0);
  rig.unpack();
  EXPECT_EQ(parts_sent(), 8);
  EXPECT_EQ(sent().bytes - before.bytes, rig.plan.bytes_out());
}

TEST(Taskqueue, WhereNotEvenABlockForEachRankFitsItIsRefusedWithBothNumbers) {
  if (world_size() < 2) GTEST_SKIP() << "needs ranks that share a device";
  const Imitated small("resident=1");
  EXPECT_PART(error_of<Error>([] { DeviceRig rig("direct/taskqueue"); }),
              "here " + std::to_string(world_size()) + ", and 1 are possible");
}

}  // namespace
}  // namespace haloscope::test
