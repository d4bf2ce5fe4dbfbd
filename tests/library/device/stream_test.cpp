// Streams, events and memory. Tests of every back end run on the best device here; tests that need a small device or
// several runs use imitated ones.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "device_here.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/error.hpp"

namespace haloscope::device {
namespace {

using test::counted;
using test::error_of;
using test::Imitated;

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

TEST(DeviceStream, AWordTellsTheHostWhatTheStreamHasDoneAndTheStreamWhatTheHostHas) {
  Device& device = test::here();
  if (const std::string reason = device.refuse_words(); !reason.empty()) GTEST_SKIP() << reason;
  const auto first = counted(1 << 16), second = counted(1 << 16, 9);
  const std::size_t bytes = first.size() * sizeof(int);
  const Buffer words(device, Space::mapped, 2 * sizeof(std::uint64_t)), there(device, Space::device, bytes);
  const Buffer out(device, Space::pinned, bytes), in(device, Space::pinned, bytes), back(device, Space::pinned, bytes);
  std::memset(words.data(), 0, words.size());
  auto* const done = reinterpret_cast<std::uint64_t*>(words.data());
  auto* const go = done + 1;
  const auto stream = device.stream();
  const auto end = device.event();
  for (std::uint64_t turn = 1; turn <= 3; ++turn) {
    std::memset(back.data(), 0, bytes);
    std::memcpy(in.data(), first.data(), bytes);
    stream->copy(there.data(), in.data(), bytes);
    stream->copy(out.data(), there.data(), bytes);
    stream->write(done, turn);
    stream->wait(go, turn);
    stream->copy(there.data(), in.data(), bytes);
    stream->copy(back.data(), there.data(), bytes);
    stream->record(*end);
    while (std::atomic_ref(*done).load(std::memory_order_acquire) < turn) std::this_thread::yield();
    EXPECT_EQ(std::memcmp(out.data(), first.data(), bytes), 0);
    EXPECT_FALSE(end->reached());
    std::memcpy(in.data(), second.data(), bytes);
    std::atomic_ref(*go).store(turn, std::memory_order_release);
    stream->finish();
    EXPECT_EQ(std::memcmp(back.data(), second.data(), bytes), 0);
  }
  stream->wait(go, 2);  // long since written
  stream->finish();
}

TEST(DeviceStream, SecondsBetweenEventsAreNotNegativeAndNoMoreThanTheHostSawPass) {
  Device& device = test::here();
  const auto stream = device.stream();
  const auto from = device.event(), to = device.event();
  const double begin = now_s();
  stream->record(*from);
  stream->record(*to);
  to->wait();
  const double passed = now_s() - begin;
  EXPECT_GE(device.seconds(*from, *to), 0);
  EXPECT_LE(device.seconds(*from, *to), 1.01 * passed + 1e-6);  // two clocks
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
    EXPECT_PART(text, "needs 500 bytes");
    EXPECT_PART(text, "(of 1000), and 400 are available");
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

TEST(DeviceBackend, OneThatCannotBeUsedSaysWhyAndAnUnknownOneNamesTheOthers) {
  for (const Backend& backend : backends()) {
    if (backend.absent().empty()) {
      EXPECT_GT(find_backend(backend.name).count(), 0) << backend.name;
      continue;
    }
    EXPECT_EQ(backend.count(), 0);
    const std::string option = backend.name == "cuda" ? "-DHALOSCOPE_CUDA=ON" : "-DHALOSCOPE_HIP=ON";
    const std::string text = error_of<UnavailableError>([&] { find_backend(backend.name); });
    EXPECT_PART(text, "back end '" + backend.name + "'");
    EXPECT_PART(text, backend.open == nullptr ? option : "device");
  }
  EXPECT_PART(error_of([] { find_backend("hostt"); }), "'hostt'; did you mean host");
}

TEST(DeviceBackend, AutoAlwaysFindsADevice) {
  const Backend& found = find_backend("auto");
  EXPECT_GT(found.count(), 0);
  EXPECT_GT(test::here().info().total_bytes, 0);
  EXPECT_GE(test::here().info().shared_bytes, 48 << 10);
}

}  // namespace
}  // namespace haloscope::device
