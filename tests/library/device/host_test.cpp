// Imitated devices: streams held up, delayed and missing waits, concurrent blocks, a device that is lost.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <semaphore>
#include <thread>

#include "device_here.hpp"
#include "haloscope/device/host_stream.hpp"
#include "haloscope/error.hpp"
#include "haloscope/runner/device_ops.hpp"

namespace haloscope::device {
namespace {

using namespace std::chrono_literals;
using test::counted;
using test::Imitated;

// ---- streams held up ------------------------------------------------------------------------------------------------

/// A stream of an imitated device that does nothing until it is let go.
struct Held {
  std::unique_ptr<Device> device = Imitated::open();
  std::binary_semaphore gate{0};
  std::unique_ptr<Stream> stream = device->stream();
  Held() {
    static_cast<host::HostStream&>(*stream).enqueue([this] { gate.acquire(); });
  }
};

TEST(HostStream, AnEventIsReachedWhenTheWorkBeforeItIsDone) {
  Held held;
  const auto event = held.device->event();
  held.stream->record(*event);
  EXPECT_FALSE(event->reached());
  held.gate.release();
  event->wait();
  EXPECT_TRUE(event->reached());
}

TEST(HostStream, AnEventRecordedAgainMovesAndWaitsBeforeItStay) {
  Held held;
  const auto other = held.device->stream();
  const auto event = held.device->event(), passed = held.device->event();
  other->record(*event);
  other->finish();
  EXPECT_TRUE(event->reached());
  other->wait(*event);  // of the first record: not held up by the second
  held.stream->record(*event);
  EXPECT_FALSE(event->reached());
  other->record(*passed);
  passed->wait();
  other->wait(*event);
  other->record(*passed);
  EXPECT_FALSE(passed->reached());
  held.gate.release();
  passed->wait();
  EXPECT_TRUE(event->reached());
}

TEST(HostStream, AnEventRecordedAgainOnAFasterStreamStaysReached) {
  Held held;
  const auto fast = held.device->stream();
  const auto event = held.device->event();
  held.stream->record(*event);
  fast->record(*event);
  event->wait();
  held.gate.release();
  held.stream->finish();
  EXPECT_TRUE(event->reached());
  event->wait();
  fast->wait(*event);
  fast->finish();
}

TEST(HostStream, AnEventMayGoBeforeTheStreamComesToIt) {
  Held held;
  const auto other = held.device->stream();
  auto event = held.device->event();
  held.stream->record(*event);
  other->wait(*event);
  event.reset();
  held.gate.release();
  other->finish();
  held.stream->finish();
}

TEST(HostStream, AStreamThatGoesFinishesFirst) {
  const Imitated imitated("delay_us=200");
  const auto device = Imitated::open();
  const auto values = counted(100);
  std::vector<int> between(100), result(100);
  {
    const auto stream = device->stream();
    stream->copy(between.data(), values.data(), 400);
    stream->copy(result.data(), between.data(), 400);
  }
  EXPECT_EQ(result, values);
}

TEST(HostStream, SecondsAreThoseThatTheWorkBetweenTook) {
  const auto device = Imitated::open();
  const auto stream = device->stream();
  const auto from = device->event(), to = device->event();
  stream->record(*from);
  static_cast<host::HostStream&>(*stream).enqueue([] { std::this_thread::sleep_for(5ms); });
  stream->record(*to);
  stream->finish();
  EXPECT_GE(device->seconds(*from, *to), 0.005);
}

// ---- missing waits --------------------------------------------------------------------------------------------------

/// Of 20 times, the number that a consumer stream found old data: the producer has some work to do before it writes
/// new.
int stale_reads(bool wait) {
  const Imitated imitated("delay_us=200");
  const auto device = Imitated::open();
  int stale = 0;
  for (int round = 1; round <= 20; ++round) {
    int cell = 0, halo = 0, work[2] = {round, 0};
    {
      const auto producer = device->stream(), consumer = device->stream();
      const auto event = device->event();
      for (int i = 0; i < 12; ++i) producer->copy(&work[1], &work[0], sizeof cell);
      producer->copy(&cell, &work[1], sizeof cell);
      producer->record(*event);
      if (wait) consumer->wait(*event);
      consumer->copy(&halo, &cell, sizeof halo);
      producer->finish();  // before the consumer: else its end would order the two, and hide the race from a sanitizer
      consumer->finish();
    }
    stale += halo != round;
  }
  return stale;
}

TEST(DelayedStreams, AConsumerThatWaitsAlwaysSeesNewData) { EXPECT_EQ(stale_reads(true), 0); }

// A missing wait shows in the data.
TEST(StreamRace, AConsumerThatDoesNotWaitIsFoundOut) {
  if (!test::may_race()) return;
  EXPECT_GT(stale_reads(false), 0);
}

// ---- concurrent blocks ---------------------------------------------------------------------------------------------

/// Two blocks of threads, which write 1 and 2 to the specified addresses.
void two_blocks_write(std::array<int, 2>& first, std::array<int, 2>& second) {
  const Imitated imitated("threads=2");
  const auto device = Imitated::open();
  const int one[2] = {1, 1}, two[2] = {2, 2};
  BlockCopy copies[2];
  copies[0].from = reinterpret_cast<const std::byte*>(one), copies[0].to = reinterpret_cast<std::byte*>(first.data());
  copies[1].from = reinterpret_cast<const std::byte*>(two), copies[1].to = reinterpret_cast<std::byte*>(second.data());
  for (BlockCopy& copy : copies) copy.row_bytes = sizeof one, copy.rows = copy.planes = 1;
  test::run_copies(*device, {copies[0], copies[1]});
}

TEST(HostLaunch, BlocksThatThreadsShareAreAllRun) {
  std::array<int, 2> first{}, second{};
  two_blocks_write(first, second);
  EXPECT_EQ(first, (std::array<int, 2>{1, 1}));
  EXPECT_EQ(second, (std::array<int, 2>{2, 2}));
}

// Nothing orders the blocks of a launch: a sanitizer must see that they write the same cells.
TEST(BlockRace, BlocksThatWriteTheSameCellsAreFoundOut) {
  std::array<int, 2> cells{};
  if (test::may_race()) two_blocks_write(cells, cells);
}

// ---- a device that is lost -----------------------------------------------------------------------------------------

TEST(HostDevice, OnceLostDoesNoWorkHoldsUpNobodyAndEveryCallSaysSo) {
  const Imitated imitated("devices=2,lost=3");
  const auto good = Imitated::open(0), device = Imitated::open(1);
  const auto stream = device->stream(), other = device->stream();
  const auto event = device->event();
  std::vector<int> from = counted(6, 1), to(6);
  for (std::size_t i = 0; i < to.size(); ++i) {
    try {
      stream->copy(&to[i], &from[i], sizeof to[i]);
    } catch (const Error&) {  // the failure may be known by now
    }
  }
  stream->record(*event);
  other->wait(*event);
  EXPECT_THROW(event->wait(), Error);
  EXPECT_THROW(stream->finish(), Error);
  EXPECT_THROW(other->finish(), Error);
  EXPECT_THROW(event->reached(), Error);
  EXPECT_THROW(device->kernels().copy(*stream, {nullptr, 1}), Error);
  EXPECT_EQ(to, (std::vector<int>{1, 2, 3, 0, 0, 0}));
  try {
    stream->copy(&to[0], &from[1], sizeof to[0]);
    FAIL() << "a lost device took work";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), Exit::failed);
    EXPECT_PART(error.what(), "call copy of back end host failed");
  }
  good->stream()->finish();
}

TEST(HostDevice, OnceLostIsFinishedOnlyWhenNothingIsUnderWayOnAnyStream) {
  const Imitated imitated("devices=1,lost=1");
  const auto device = Imitated::open(0);
  DeviceStreams streams(*device);
  std::atomic<bool> begun{false}, ended{false};
  static_cast<host::HostStream&>(*streams.streams[1]).enqueue([&] {
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ended = true;
  });
  while (!begun) std::this_thread::yield();
  EXPECT_THROW(
      {
        device->kernels().copy(*streams.streams[0], {nullptr, 1});
        streams.finish();
      },
      Error);
  device::call_even_if_lost([&] { streams.finish(); });
  EXPECT_TRUE(ended);
}

// ---- descriptions --------------------------------------------------------------------------------------------------

TEST(HostDevice, ADescriptionThatCannotBeReadIsRefused) {
  for (const std::string word :
       {"devices", "devices=", "devices=0", "devices=1000000", "devices=two", "bytes=-1", "bytes=nan", "bytes=1e99",
        "threads=0", "threads=65", "device=5", "=4", "delay_us=2", "bytes=1;threads=2"}) {
    EXPECT_PART(test::error_of([&] { host::parse_imitation("devices=1," + word); }), "'" + word + "'");
  }
}

TEST(HostDevice, IsAsManyDevicesAsAreImitated) {
  EXPECT_EQ(find_backend("host").count(), host::imitation().devices);
  const Imitated several("devices=3,bytes=5000");
  EXPECT_EQ(find_backend("host").count(), 3);
  EXPECT_EQ(Imitated::open(2)->info().total_bytes, 5000);
}

}  // namespace
}  // namespace haloscope::device
