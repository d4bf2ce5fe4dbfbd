// Streams, events and memory. What holds for every back end runs on the best device here; what needs a stream held up,
// a small device or several runs on imitated ones.
#include <gtest/gtest.h>

#include <semaphore>

#include "device/here.hpp"
#include "haloscope/core/error.hpp"
#include "haloscope/device/host_stream.hpp"

namespace haloscope::device {
namespace {

using namespace std::chrono_literals;
using test::Imitated;

std::vector<int> counted(int size, int start = 0) {
  std::vector<int> values(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) values[static_cast<std::size_t>(i)] = start + i;
  return values;
}

TEST(DeviceStream, CopiesOfOneStreamAreDoneInOrder) {
  Device& device = test::here();
  const auto values = counted(10000, 7);
  Buffer a(device, Space::pinned, 40000), b(device, Space::device, 40000), c(device, Space::device, 40000);
  std::vector<int> result(10000);
  const auto stream = device.stream();
  stream->copy(a.data(), values.data(), 40000);
  stream->copy(b.data(), a.data(), 40000);
  stream->copy(c.data(), b.data(), 40000);
  stream->copy(result.data(), c.data(), 40000);
  stream->finish();
  EXPECT_EQ(result, values);
}

TEST(DeviceStream, FinishOfAnIdleStreamReturns) {
  const auto stream = test::here().stream();
  stream->finish();
  stream->finish();
}

TEST(DeviceStream, AnEventNeverRecordedIsReachedAndHoldsUpNobody) {
  Device& device = test::here();
  const auto event = device.event();
  const auto stream = device.stream();
  EXPECT_TRUE(event->reached());
  event->wait();
  stream->wait(*event);
  stream->finish();
}

TEST(DeviceStream, AStreamThatWaitsForAnEventSeesWhatCameBeforeIt) {
  Device& device = test::here();
  const auto values = counted(1 << 18);
  const Buffer first = test::on_device(device, values);
  Buffer second(device, Space::device, first.size()), third(device, Space::device, first.size());
  const auto producer = device.stream(), consumer = device.stream();
  const auto event = device.event();
  producer->copy(second.data(), first.data(), first.size());
  producer->record(*event);
  consumer->wait(*event);
  consumer->copy(third.data(), second.data(), first.size());
  consumer->finish();
  EXPECT_TRUE(event->reached());
  EXPECT_EQ(test::from_device<int>(device, third), values);
}

TEST(DeviceStream, SecondsBetweenEventsAreNotNegative) {
  Device& device = test::here();
  const auto stream = device.stream();
  const auto from = device.event(), to = device.event();
  stream->record(*from);
  stream->record(*to);
  to->wait();
  EXPECT_GE(device.seconds(*from, *to), 0);
  EXPECT_LT(device.seconds(*from, *to), 60);
}

// ---- graphs ---------------------------------------------------------------------------------------------------------

/// Two halves of a buffer, swapped over two streams: the second one starts and ends with the first.
struct Swap {
  explicit Swap(Device& device)
      : a(device, Space::device, 4000),
        b(device, Space::device, 4000),
        spare(device, Space::device, 4000),
        one(device.stream()),
        other(device.stream()),
        fork(device.event(false)),
        join(device.event(false)) {}
  void enqueue(bool joined = true) {
    one->copy(spare.data(), a.data(), 4000);
    one->record(*fork);
    other->wait(*fork);
    other->copy(a.data(), b.data(), 4000);
    other->record(*join);
    if (!joined) return;
    one->wait(*join);
    one->copy(b.data(), spare.data(), 4000);
  }
  Buffer a, b, spare;
  std::unique_ptr<Stream> one, other;
  std::unique_ptr<Event> fork, join;
};

TEST(DeviceGraph, KeepsTheWorkOfSeveralStreamsAndDoesItAsOftenAsLaunched) {
  Device& device = test::here();
  Swap swap(device);
  const auto first = counted(1000), second = counted(1000, 5000);
  swap.one->copy(swap.a.data(), first.data(), 4000);
  swap.one->copy(swap.b.data(), second.data(), 4000);
  swap.one->finish();
  swap.one->begin_capture();
  swap.enqueue();
  const auto graph = swap.one->end_capture();
  swap.one->finish();
  EXPECT_EQ(test::from_device<int>(device, swap.a), first) << "nothing is done while it is captured";
  for (int launches = 1; launches <= 5; ++launches) {
    graph->launch();
    swap.one->finish();
    EXPECT_EQ(test::from_device<int>(device, swap.a), launches % 2 ? second : first);
    EXPECT_EQ(test::from_device<int>(device, swap.b), launches % 2 ? first : second);
  }
}

TEST(DeviceGraph, StreamsWorkAsBeforeOnceACaptureHasEnded) {
  Device& device = test::here();
  Swap swap(device);
  const auto first = counted(1000), second = counted(1000, 5000);
  swap.one->begin_capture();
  swap.enqueue();
  const auto graph = swap.one->end_capture();
  swap.one->copy(swap.a.data(), first.data(), 4000);
  swap.one->copy(swap.b.data(), second.data(), 4000);
  swap.enqueue();
  graph->launch();
  swap.enqueue();
  swap.one->finish();
  EXPECT_EQ(test::from_device<int>(device, swap.a), second);
  EXPECT_EQ(test::from_device<int>(device, swap.b), first);
}

TEST(DeviceGraph, AStreamThatTookPartMustBeWaitedFor) {
  Device& device = test::here();
  Swap swap(device);
  swap.one->begin_capture();
  swap.enqueue(false);
  EXPECT_THROW(swap.one->end_capture(), Error);
}

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

/// How often, of 20 times, a consumer stream found old data: the producer has a few things to do before it writes new.
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

#if defined(__SANITIZE_THREAD__)
constexpr bool races_are_reported = true;
#elif defined(__has_feature)
constexpr bool races_are_reported = __has_feature(thread_sanitizer);
#else
constexpr bool races_are_reported = false;
#endif

// A missing wait shows in the data. It is a race by intent: ThreadSanitizer is to see it only when it is asked to, by
// the long tests, which set HALOSCOPE_RUN_THE_RACE and look for the report.
TEST(StreamRace, AConsumerThatDoesNotWaitIsFoundOut) {
  if (races_are_reported && std::getenv("HALOSCOPE_RUN_THE_RACE") == nullptr) return;
  EXPECT_GT(stale_reads(false), 0);
}

// ---- memory ---------------------------------------------------------------------------------------------------------

TEST(DeviceMemory, ABufferIsGivenBackOnceAndMovesWithItsOwner) {
  const Imitated imitated("bytes=1000");
  const auto device = Imitated::open();
  const auto free = [&] { return device->info().free_bytes; };
  {
    Buffer a(*device, Space::device, 300);
    EXPECT_EQ(free(), 700);
    std::byte* const memory = a.data();
    Buffer b = std::move(a);
    EXPECT_EQ(b.data(), memory);
    EXPECT_EQ(b.size(), 300u);
    EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move): moved-from buffers are empty
    Buffer c(*device, Space::device, 100);
    c = std::move(b);
    EXPECT_EQ(c.data(), memory);
    const Buffer empty(*device, Space::device, 0);
    EXPECT_EQ(empty.data(), nullptr);
  }
  EXPECT_EQ(free(), 1000);
}

TEST(DeviceMemory, MoreThanIsFreeIsRefusedWithBothNumbersAndNothingIsTaken) {
  const Imitated imitated("bytes=1000");
  const auto device = Imitated::open();
  const Buffer pinned(*device, Space::pinned, 5000), pageable(*device, Space::pageable, 5000);
  const Buffer most(*device, Space::device, 600);
  try {
    const Buffer more(*device, Space::device, 500);
    FAIL() << "500 bytes were had where 400 were free";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.exit_code(), Exit::failed);
    EXPECT_NE(text.find("500 bytes are needed"), std::string::npos) << text;
    EXPECT_NE(text.find("400 of 1000 are free"), std::string::npos) << text;
  }
  EXPECT_EQ(device->info().free_bytes, 400);
  const Buffer rest(*device, Space::device, 400);
  EXPECT_EQ(device->info().free_bytes, 0);
}

TEST(DeviceMemory, ARealDeviceRefusesMoreThanItHas) {
  Device& device = test::here();
  const auto too_much = static_cast<std::size_t>(device.info().total_bytes) + 1;
  EXPECT_THROW(Buffer(device, Space::device, too_much), Error);
}

// ---- back ends ------------------------------------------------------------------------------------------------------

TEST(DeviceBackend, SeveralImitatedDevicesCopyToEachOther) {
  const Imitated imitated("devices=2,delay_us=20");
  EXPECT_EQ(find_backend("host").count(), 2);
  const auto one = Imitated::open(0), two = Imitated::open(1);
  EXPECT_NE(one->info().name, two->info().name);
  const auto values = counted(500);
  const Buffer from = test::on_device(*one, values);
  const Buffer to(*two, Space::device, from.size());
  const auto stream = one->stream();
  stream->copy(to.data(), from.data(), from.size());
  stream->finish();
  EXPECT_EQ(test::from_device<int>(*two, to), values);
  EXPECT_THROW(Imitated::open(2), UsageError);
  EXPECT_THROW(Imitated::open(-1), UsageError);
}

TEST(DeviceBackend, ADescriptionThatCannotBeReadIsRefused) {
  for (const std::string word : {"devices", "devices=", "devices=0", "devices=1000000", "devices=two", "bytes=-1",
                                 "bytes=nan", "bytes=1e99", "delay_us=5us", "delay=5", "=4", "bytes=1;delay_us=2"}) {
    const Imitated imitated("delay_us=1," + word);
    try {
      Imitated::open();
      ADD_FAILURE() << word << " was taken";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("'" + word + "'"), std::string::npos) << error.what();
    }
    EXPECT_THROW(find_backend("host").count(), UsageError) << word;
  }
}

TEST(DeviceBackend, OneThatCannotBeUsedSaysWhyAndAnUnknownOneNamesTheOthers) {
  for (const Backend& backend : backends()) {
    if (backend.absent().empty()) {
      EXPECT_GT(find_backend(backend.name).count(), 0) << backend.name;
      continue;
    }
    EXPECT_EQ(backend.count(), 0);
    const std::string option = backend.name == "cuda" ? "-DHALOSCOPE_CUDA=ON" : "-DHALOSCOPE_HIP=ON";
    try {
      find_backend(backend.name);
      ADD_FAILURE() << backend.name << " was found";
    } catch (const UnavailableError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("back end '" + backend.name + "'"), std::string::npos) << text;
      EXPECT_NE(text.find(backend.open == nullptr ? option : "device"), std::string::npos) << text;
    }
  }
  try {
    find_backend("hostt");
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("'hostt'; did you mean host"), std::string::npos) << error.what();
  }
}

TEST(DeviceBackend, AutoAlwaysFindsADevice) {
  const Backend& found = find_backend("auto");
  EXPECT_GT(found.count(), 0);
  EXPECT_GT(test::here().info().total_bytes, 0);
  EXPECT_GE(test::here().info().shared_bytes, 48 << 10);
}

}  // namespace
}  // namespace haloscope::device
