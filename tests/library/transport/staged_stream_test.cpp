// Transport staged:stream: work that waits for messages is enqueued on its stream before they arrive, and continues in
// any order of arrival.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "device_rig.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/schedule.hpp"

namespace haloscope::test {
namespace {

/// A rig whose exchanges a runner runs, which logs the order in which operations begin.
struct RunnerRig : DeviceRig {
  Program program;
  DeviceStreams streams;
  DeviceOps ops;
  CommOps comm;
  std::vector<OpKind> begun;
  Runner runner;

  explicit RunnerRig(const std::string& strategy, bool one_way = false)
      : DeviceRig(strategy, one_way),
        program(exchange_program(plan, options())),
        streams(*device),
        ops(program, plan, fields.views(), fields.views(), &moves(), streams, DeviceSweeps(), false),
        comm(program, Views(), *link, MPI_COMM_WORLD, true),
        runner(program, comm, SweepCall(), runner_options()) {}
  static ScheduleOptions options() {
    ScheduleOptions options;
    options.device = options.staged = true;
    return options;
  }
  RunnerOptions runner_options() {
    RunnerOptions options{.yield = true,
                          .device = &ops,
                          .injection = {[](void* self, const Op& op, std::int64_t) {
                                          static_cast<RunnerRig*>(self)->begun.push_back(op.kind);
                                        },
                                        this}};
    return options;
  }
  std::ptrdiff_t place(OpKind kind) const { return std::find(begun.begin(), begun.end(), kind) - begun.begin(); }
};

TEST(StagedStream, CopiesOfArrivedMessagesAreGivenToTheStreamBeforeAnyIsSent) {
  if (world_size() < 2) GTEST_SKIP() << "needs a neighbour";
  const Imitated slow("devices=8,delay_us=20");
  for (const char* strategy : {"direct/staged:stream", "direct/staged"}) {
    RunnerRig rig(strategy);
    rig.runner.run(0, 0);
    rig.runner.finish();
    ASSERT_LT(rig.place(OpKind::h2d), static_cast<std::ptrdiff_t>(rig.begun.size()));
    EXPECT_LT(rig.place(OpKind::post), rig.place(OpKind::h2d));
    EXPECT_EQ(rig.place(OpKind::unpack) < rig.place(OpKind::send), rig.moves().tells_by_words()) << strategy;
    EXPECT_EQ(rig.place(OpKind::h2d) < rig.place(OpKind::wait), rig.moves().tells_by_words()) << strategy;
  }
}

/// The last rank packs nothing before it receives.
TEST(StagedStream, RanksThatOnlySendOrOnlyReceiveGetTheirMessages) {
  if (world_size() < 2) GTEST_SKIP() << "needs a neighbour";
  const Imitated slow("devices=8,delay_us=20");
  RunnerRig rig("direct/staged:stream", true);
  const bool first = world_rank() == 0;
  for (int exchange = 0; exchange < 6; ++exchange) {
    const int slot = exchange % 2;
    for (int y = 0; y < 600; ++y) *rig.value(slot, 7, y) = 1000.0 * (world_rank() + 10 * exchange) + y;
    rig.runner.run(slot, exchange);
    rig.runner.finish();
    for (int y = 0; y < 600 && !first; ++y)
      ASSERT_EQ(*rig.value(slot, -1, y), 1000.0 * (world_rank() - 1 + 10 * exchange) + y) << "exchange " << exchange;
  }
}

TEST(StagedStream, AnAbandonedOrDestroyedLinkLetsItsStreamGoOn) {
  if (world_size() < 2) GTEST_SKIP() << "needs a neighbour";
  for (const bool abandoned : {true, false}) {
    DeviceRig rig("direct/staged:stream");
    rig.begin();
    rig.moves().to_host(*rig.stream, rig.out, 0);
    rig.moves().await_on(*rig.stream, rig.in, 0);
    rig.moves().to_device(*rig.stream, rig.in, 0);
    rig.moves().unpack_on(*rig.stream, rig.in, 0);
    while (!rig.moves().is_on_host(rig.out, 0)) std::this_thread::yield();
    MPI_Barrier(MPI_COMM_WORLD);  // all streams have come this far, and no message has been sent
    const auto end = rig.device->event();
    rig.stream->record(*end);
    EXPECT_FALSE(end->reached());
    if (abandoned) {
      rig.link->abandon();
      rig.stream->finish();
      EXPECT_TRUE(end->reached());
    }
    rig.moves().send(rig.out, 0);
    rig.link.reset();
    rig.stream->finish();
    EXPECT_TRUE(end->reached());
  }
}

TEST(StagedStream, WhereOneRanksDeviceHasNoWordsAllRefuseBeforeAnyMessage) {
  const int last = world_size() - 1;
  const Imitated some(world_rank() == last ? "devices=8,words=0" : "devices=8");
  const Sent before = sent();
  const std::string text = error_of<UnavailableError>([] { DeviceRig rig("ordered/staged:stream"); });
  EXPECT_PART(text, "needs streams that write words and wait for them");
  EXPECT_PART(text, "; use staged");
  EXPECT_EQ(sent().messages, before.messages);
}

TEST(StagedStream, EveryScheduleGivesTheSameBytesUnderRandomDelays) {
  const Imitated slow("devices=2,delay_us=30");
  const int ran = expect_bytes_of_reference(
      {{"advection3d", "dense", Real::f64, {9, 8, 11}}, {"laplace2d", "star", Real::f32, {31, 27, 1}}},
      {"ordered/staged:stream", "direct:merged/staged:stream", "direct/staged:stream"},
      {"bulk", "streams", "faces", "faces-overlap"}, thorough() ? 1 : 5);
  EXPECT_GE(ran, 6);
}

}  // namespace
}  // namespace haloscope::test
