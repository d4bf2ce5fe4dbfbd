// Kernels of blocks: their packed data, the errors they find, and a kernel that continues while the CPU works.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "device_here.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/extend/app_kernels.hpp"
#include "vanecek2020/app/launches.hpp"

namespace haloscope {
extern const AppKernels blocks_kernels;
}

namespace haloscope::device {
namespace {

using test::Imitated;

const bool kernels_added = (add_kernels(blocks_kernels), true);  // as the kind of requests does

/// Blocks that send to themselves, as the CPU copies the data that they have packed.
struct Blocks {
  Device& device;
  std::vector<Buffer> out, in;
  Buffer entries, faults;
  BlocksLaunch launch;

  Blocks(Device& on, const std::vector<std::int64_t>& elements, int threads) : device(on) {
    std::vector<BlockEntry> all;
    for (std::int64_t count : elements) {
      const auto bytes = static_cast<std::size_t>(count) * sizeof(double);
      out.emplace_back(device, Space::mapped, bytes);
      in.emplace_back(device, Space::mapped, bytes);
      all.push_back({reinterpret_cast<double*>(out.back().data()), reinterpret_cast<double*>(in.back().data()), count,
                     0, 0, static_cast<int>(all.size())});
    }
    entries = test::on_device(device, all);
    faults = Buffer(device, Space::mapped, elements.size() * sizeof(BlockFault));
    const int count = static_cast<int>(elements.size());
    launch = {.entries = reinterpret_cast<const BlockEntry*>(entries.data()), .count = count, .threads = threads};
    launch.numbers = count;
    launch.faults = reinterpret_cast<BlockFault*>(faults.data());
    forget_faults();
  }
  void forget_faults() {
    for (int b = 0; b < launch.count; ++b) launch.faults[b] = {};
  }
  std::span<double> packed(int b) { return values(out, b); }
  std::span<double> received(int b) { return values(in, b); }
  void deliver() {
    for (int b = 0; b < launch.count; ++b) std::copy(packed(b).begin(), packed(b).end(), received(b).begin());
  }
  void pack() { run(find_blocks_kernels(device.kernels()).pack); }
  void unpack() { run(find_blocks_kernels(device.kernels()).unpack); }

 private:
  static std::span<double> values(std::vector<Buffer>& of, int b) {
    Buffer& buffer = of[static_cast<std::size_t>(b)];
    return {reinterpret_cast<double*>(buffer.data()), buffer.size() / sizeof(double)};
  }
  void run(void (*kernel)(Stream&, const BlocksLaunch&)) {
    const auto stream = device.stream();
    kernel(*stream, launch);
    stream->finish();
  }
};

TEST(Blocks, NC5_NC7_PackTheValueOfIterationSideAndBlockWithAnyNumberOfThreads) {
  for (int threads : {1, 16, 128, 1024}) {
    Blocks blocks(test::here(), {1, 1500, 77}, threads);
    blocks.launch.iteration = 4;
    blocks.pack();
    for (int b = 0; b < 3; ++b)
      for (double value : blocks.packed(b)) ASSERT_EQ(value, 5 * 3 + b) << threads << " threads, block " << b;
  }
}

TEST(Blocks, NC2_TheBlocksOfAGridHaveTheNumbersFromZeroOnceEach) {
  for (const int count : {4, 3 * 3 * 1, 3 * 3 * 3}) {
    Blocks blocks(test::here(), std::vector<std::int64_t>(static_cast<std::size_t>(count), 1), 16);
    blocks.pack();
    std::vector<double> found, all;
    for (int b = 0; b < count; ++b) {
      found.push_back(blocks.packed(b)[0] - count);
      all.push_back(b);
    }
    EXPECT_EQ(found, all);
  }
}

TEST(Blocks, NC6_UnpackingFindsAWrongElementWhereAThreadLooks) {
  Blocks blocks(test::here(), {1, 1600, 77}, 16);
  blocks.pack();
  blocks.deliver();
  blocks.unpack();
  for (int b = 0; b < 3; ++b) EXPECT_EQ(blocks.launch.faults[b].element, -1);
  blocks.received(1)[1] = -1;  // between two places
  blocks.unpack();
  EXPECT_EQ(blocks.launch.faults[1].element, -1);
  blocks.received(1)[300] = -1;
  blocks.unpack();
  EXPECT_EQ(blocks.launch.faults[1].element, 300);
  EXPECT_EQ(blocks.launch.faults[1].expected, 4);
  EXPECT_EQ(blocks.launch.faults[1].found, -1);
  EXPECT_EQ(blocks.launch.faults[2].element, -1);
}

TEST(Blocks, NC6_AFullCheckFindsAnyWrongElementAndAnyWrongPlace) {
  Blocks blocks(test::here(), {900}, 16);
  blocks.launch.every = true;
  blocks.launch.slope = 0x1p-21;
  blocks.pack();
  blocks.deliver();
  blocks.unpack();
  EXPECT_EQ(blocks.launch.faults[0].element, -1);
  std::swap(blocks.received(0)[5], blocks.received(0)[6]);
  blocks.unpack();
  EXPECT_TRUE(blocks.launch.faults[0].element == 5 || blocks.launch.faults[0].element == 6);
}

/// Unpacks a block whose elements the CPU has written, then with one of them wrong, each in turn.
template <class T>
void expect_reads(ElementType type) {
  Blocks blocks(test::here(), {40}, 16);
  const std::int64_t count = 320 / static_cast<std::int64_t>(sizeof(T));
  auto* const in = reinterpret_cast<T*>(blocks.in[0].data());
  const std::vector<BlockEntry> entry{{blocks.out[0].data(), in, count, 0, 0, 0}};
  const Buffer entries = test::on_device(blocks.device, entry);
  blocks.launch.entries = reinterpret_cast<const BlockEntry*>(entries.data());
  blocks.launch.type = type;
  blocks.launch.every = true;
  blocks.launch.slope = slope_of(type);
  for (std::int64_t i = 0; i < count; ++i) in[i] = element_at<T>(1, slope_of(type), i);
  blocks.unpack();
  EXPECT_EQ(blocks.launch.faults[0].element, -1);
  for (std::int64_t i = 0; i < count; ++i) {
    const T right = in[i];
    in[i] = right + 1;
    blocks.forget_faults();
    blocks.unpack();
    EXPECT_EQ(blocks.launch.faults[0].element, i);
    in[i] = right;
  }
}

TEST(Blocks, NC4_TheDeviceReadsEveryElementThatTheCpuHasWritten) {
  expect_reads<double>(ElementType::f64);
  expect_reads<float>(ElementType::f32);
  expect_reads<std::int32_t>(ElementType::i32);
}

/// The words of a queue with a channel for each block. It has neither lock, tail nor count of packed blocks: a kernel
/// that changed one by an atomic operation would fail.
struct QueueWords {
  Buffer memory;
  std::uint32_t* posted;
  std::uint32_t* stop;
  BlocksQueue queue;

  QueueWords(Device& device, int blocks)
      : memory(device, Space::mapped, static_cast<std::size_t>(3 * blocks + 1) * sizeof(std::uint32_t)),
        posted(reinterpret_cast<std::uint32_t*>(memory.data())),
        stop(posted + 2 * blocks) {
    std::fill_n(posted, 3 * blocks + 1, 0u);
    std::fill_n(posted, blocks, no_task);
    queue.posted = posted, queue.notices = posted + blocks;
    queue.left = stop + 1;
    queue.stay.stop = stop;
  }
};

std::uint32_t word_now(std::uint32_t& word) { return std::atomic_ref(word).load(std::memory_order_acquire); }

TEST(Blocks, NT1_NT4_AKernelPacksWaitsForTheCpuAndUnpacks) {
  Device& device = test::here();
  Blocks blocks(device, {1, 300, 40}, 8);
  ASSERT_GE(find_blocks_kernels(device.kernels()).resident(8), 3);
  const QueueWords words(device, 3);
  std::uint32_t* const word = words.posted;
  const auto stream = device.stream();
  const auto end = device.event();
  find_blocks_kernels(device.kernels()).queue(*stream, blocks.launch, words.queue);
  stream->record(*end);
  for (int b : {2, 0, 1}) {
    while (word_now(word[b]) == no_task) std::this_thread::yield();
    EXPECT_FALSE(end->reached());
    std::copy(blocks.packed(b).begin(), blocks.packed(b).end(), blocks.received(b).begin());
    std::atomic_ref(word[3 + b]).store(arrived(0), std::memory_order_release);
  }
  stream->finish();
  for (int b = 0; b < 3; ++b) EXPECT_EQ(blocks.launch.faults[b].element, -1);
}

TEST(WordRace, ACpuThatDoesNotAcquireWhatATaskAnnouncesIsFoundOut) {
  if (!test::may_race()) return;
  const Imitated imitated("");
  const auto device = Imitated::open();
  Blocks blocks(*device, {10}, 8);
  const QueueWords words(*device, 1);
  const auto stream = device->stream();
  find_blocks_kernels(device->kernels()).queue(*stream, blocks.launch, words.queue);
  while (std::atomic_ref(*words.posted).load(std::memory_order_relaxed) == no_task) std::this_thread::yield();
  EXPECT_EQ(blocks.packed(0)[3], 1);  // x86 orders the two loads; the language does not
  std::atomic_ref(*words.stop).store(1u, std::memory_order_release);
  stream->finish();
}

TEST(Blocks, NT6_AKernelThatWaitsEndsWhenItIsToldTo) {
  Device& device = test::here();
  Blocks blocks(device, {10}, 8);
  const QueueWords words(device, 1);
  const auto stream = device.stream();
  find_blocks_kernels(device.kernels()).queue(*stream, blocks.launch, words.queue);
  std::atomic_ref(*words.stop).store(1u, std::memory_order_release);
  stream->finish();
}

/// The kernel leaves while it waits for its input, for another block, and for each chunk; it repeats no work.
TEST(Blocks, AKernelThatHasLeftGoesOnWhereItWas) {
  Device& device = test::here();
  Blocks blocks(device, {1, 300, 40}, 8);
  QueueWords words(device, 3);
  words.queue.chunks = 2, words.queue.copies = true, words.queue.at_once = 1;
  words.queue.stay.ticks = static_cast<std::uint64_t>(1e-4 * device.info().clock_hz);
  const std::vector<std::uint32_t> zeros(3 * line_words, 0);
  const Buffer counters = copied_to(device, zeros.data(), zeros.size() * sizeof zeros[0]);
  words.queue.packed = reinterpret_cast<std::uint32_t*>(counters.data());
  const auto stream = device.stream();
  const auto run = [&] {
    find_blocks_kernels(device.kernels()).queue(*stream, blocks.launch, words.queue);
    stream->finish();
    words.queue.resumes = true;
    return std::vector<std::uint32_t>(words.queue.left, words.queue.left + 3);
  };
  const auto tell = [&](int block, std::uint32_t bit) { std::atomic_ref(words.posted[3 + block]).fetch_or(bit); };
  const auto posted = [&] { return std::vector<std::uint32_t>(words.posted, words.posted + 3); };
  using Words = std::vector<std::uint32_t>;
  EXPECT_EQ(run(), (Words{1, 1, 1}));
  tell(1, copied);  // block 0 has to pack before it
  EXPECT_EQ(run(), (Words{1, 1, 1}));
  tell(0, copied);
  while (run()[1] != 2) std::this_thread::yield();  // blocks begin in any order
  EXPECT_EQ(posted(), (Words{0, 1, no_task}));
  tell(2, copied);
  while (run()[2] != 2) std::this_thread::yield();
  EXPECT_EQ(posted(), (Words{0, 1, 1}));
  for (int b : {0, 1, 2}) std::copy(blocks.packed(b).begin(), blocks.packed(b).end(), blocks.received(b).begin());
  tell(0, arrived(0));
  tell(1, arrived(0));
  tell(2, arrived(1));
  EXPECT_EQ(run(), (Words{0, 3, 2}));
  tell(1, arrived(1));
  EXPECT_EQ(run(), (Words{0, 0, 2}));
  blocks.received(1)[0] = -1;  // it does not look again
  tell(2, arrived(0));
  EXPECT_EQ(run(), (Words{0, 0, 0}));
  for (int b = 0; b < 3; ++b) EXPECT_EQ(blocks.launch.faults[b].element, -1);
}

TEST(Blocks, NI1_NI2_TheDevicesClockRunsOnBetweenTwoAnswers) {
  Device& device = test::here();
  const Buffer words(device, Space::mapped, 2 * sizeof(std::uint64_t));
  auto* word = reinterpret_cast<std::uint64_t*>(words.data());
  word[0] = word[1] = 0;
  const auto stream = device.stream();
  const auto answer = [&] {
    std::uint64_t ticks = 0;
    while ((ticks = std::atomic_ref(word[0]).load(std::memory_order_acquire)) == 0) std::this_thread::yield();
    return ticks;
  };
  const double before = now_s();
  device.kernels().clock(*stream, word, {reinterpret_cast<std::uint32_t*>(word + 1), std::uint64_t{1} << 40});
  const std::uint64_t first = answer();
  std::atomic_ref(word[0]).store(0, std::memory_order_release);
  const std::uint64_t second = answer();
  stream->finish();
  EXPECT_GE(second, first);
  EXPECT_LE(static_cast<double>(second - first) / device.info().clock_hz, now_s() - before + 1e-6);
}

}  // namespace
}  // namespace haloscope::device
