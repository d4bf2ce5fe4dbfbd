// Transport taskqueue: the same bytes whatever the options and delays, and how it ends when a message does not come.
#include <gtest/gtest.h>
#include <mpi.h>
#include <sched.h>

#include <atomic>
#include <random>
#include <thread>

#include "app_problem.hpp"
#include "device_rig.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/error.hpp"
#include "haloscope/run/run.hpp"

namespace haloscope::test {
namespace {

/// Streams and blocks sleep for random times; a kernel has up to `blocks` blocks a rank.
struct SlowBlocks {
  explicit SlowBlocks(double us, int blocks)
      : imitated("devices=8,delay_us=20,resident=" + std::to_string(8 * blocks)) {
    device::host::Imitation now = device::host::imitation();
    now.before_block = [us](int) {
      thread_local std::minstd_rand random(static_cast<unsigned>(world_rank()) + 1);
      std::this_thread::sleep_for(
          std::chrono::duration<double, std::micro>(std::uniform_real_distribution<>(0, us)(random)));
    };
    device::host::imitate(now);
  }
  Imitated imitated;
};

TEST(NT1_NT2_NT3_NT4_Taskqueue, EveryWayToTellGivesTheSameBytesUnderRandomDelays) {
  const SlowBlocks slow(30, 3);
  int ran = 0, turn = world_size();
  const int stride = thorough() ? 1 : 13;
  for (const AppProblem& problem : {AppProblem{"advection3d", "dense", Real::f64, {9, 8, 11}},
                                    AppProblem{"laplace2d", "star", Real::f32, {31, 27, 1}},
                                    AppProblem{"laplace3d", "star", Real::f64, {11, 7, 13}}})
    for (const bool periodic : {true, false}) {
      Choice c = choice_for(problem, periodic);
      c.strategy = "reference";
      const std::uint64_t expected = bytes_of(c);
      c.device = "host";
      for (const char* strategy :
           {"ordered/taskqueue", "direct/taskqueue:device,chunks=16", "direct:merged/taskqueue:queue,chunks=3",
            "ordered:self-first/taskqueue:device,queue", "direct:corners/taskqueue:chunks=5"})
        for (const char* schedule : {"bulk", "streams"}) {
          c.strategy = strategy;
          c.schedule = schedule;
          c.depth = turn % 3 == 2 ? 2 : 1;
          if (!illegal(c).empty()) c.depth = 1;
          if (turn++ % stride != 0) continue;
          ASSERT_EQ(bytes_of(c), expected) << problem.app << " " << strategy << " " << schedule << " depth " << c.depth;
          ++ran;
        }
    }
  EXPECT_GE(ran, 4);
}

TEST(Taskqueue, AMessageThatDoesNotComeEndsTheWaitWithTheStateOfMessagesAndBlocks) {
  if (world_size() < 2 || world_size() > 3) GTEST_SKIP() << "needs a neighbour, and a core for it";
  const SlowBlocks slow(0, 2);
  for (const char* strategy : {"direct/taskqueue:device,queue,chunks=2", "direct/taskqueue:chunks=2"}) {
    DeviceRig rig(strategy, 0.3);
    const int rank = world_rank(), last = world_size() - 1;
    const bool stuck = rank == 1 || rank == last;  // rank 0 sends nothing
    rig.begin();
    if (rank > 0) rig.moves().send(rig.out, 0);
    if (stuck) {
      const double begun = now_s();
      while (rig.link->waiting_for(rig.in, 0) != 0 && now_s() < begun + 5)
        error_of<Error>([&] { rig.link->test(rig.in, 0); });
      const std::string text = error_of<Error>([&] { rig.link->wait(rig.in, 0); });
      EXPECT_NE(text.find("transport 'taskqueue' is stuck"), std::string::npos) << text;
      EXPECT_NE(text.find("from rank 0: 0 of 2 parts here"), std::string::npos) << text;
      EXPECT_NE(text.find("waiting: blocks 0 1"), std::string::npos) << text;
      rig.stream->finish();  // the kernel has been told to stop
    } else if (rank > 0) {
      rig.link->wait(rig.in, 0);
      rig.link->complete(rig.out, 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) rig.link->abandon();
    rig.stream->finish();
    rig.link.reset();
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST(Taskqueue, RanksThatOnlySendOrOnlyReceiveHaveAKernelToo) {
  if (world_size() < 2) GTEST_SKIP() << "needs a neighbour";
  const SlowBlocks slow(20, 2);
  DeviceRig rig("direct/taskqueue:queue,chunks=2", 8, true);
  const bool first = world_rank() == 0, last = world_rank() == world_size() - 1;
  ASSERT_EQ(rig.in.size(), first ? 0u : 1u);
  ASSERT_EQ(rig.out.size(), last ? 0u : 1u);
  for (int exchange = 0; exchange < 4; ++exchange) {
    const int slot = exchange % 2;
    const SlotView& field = rig.fields.views()[0][static_cast<std::size_t>(slot)];
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
  const Imitated imitated("devices=8,resident=16");  // two blocks a rank
  std::atomic<bool> held{true};
  device::host::Imitation now = device::host::imitation();
  now.before_block = [&held](int block) {
    while (block == 1 && held) sched_yield();
  };
  device::host::imitate(now);
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
  const std::string text = error_of<Error>([] { DeviceRig rig("direct/taskqueue"); });
  EXPECT_NE(text.find("here " + std::to_string(world_size()) + ", and 1 are possible"), std::string::npos) << text;
}

}  // namespace
}  // namespace haloscope::test
