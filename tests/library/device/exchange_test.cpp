// The kernel of an exchange, with this thread in the part of CPU and peers: the data it packs, its signals and its
// waits.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>

#include "device_here.hpp"
#include "haloscope/core/clock.hpp"

namespace haloscope::device {
namespace {

constexpr int elements = 5000;  // of a message

/// Messages of one exchange after the other, from device memory to mapped memory and back to device memory elsewhere.
struct Loop {
  Device& device;
  int parts;
  std::vector<std::int64_t> begins;  // bytes
  Buffer field, halo, sent, received, pieces_, parts_, counters, relayed, words;
  ExchangeLaunch launch;
  std::unique_ptr<Stream> stream, other;

  Loop(Device& on, int count, int blocks, bool queue, double stay_s = 1000) : device(on), parts(count) {
    const std::size_t bytes = elements * sizeof(double);
    for (Buffer* buffer : {&field, &halo}) *buffer = Buffer(device, Space::device, bytes);
    for (Buffer* buffer : {&sent, &received}) *buffer = Buffer(device, Space::mapped, bytes);
    for (int part = 0; part < parts; ++part)
      begins.push_back(std::int64_t{elements} * part / parts * static_cast<std::int64_t>(sizeof(double)) / 128 * 128);
    std::vector<CopyLaunch::Piece> pieces;
    std::vector<ExchangeLaunch::Part> list;
    for (const auto& [to, from] : {std::pair{&sent, &field}, std::pair{&halo, &received}}) {
      const std::size_t first = pieces.size();
      cut_copies({{.from = from->data(), .to = to->data(), .row_bytes = static_cast<std::int64_t>(bytes)}}, pieces);
      const std::vector<int> cuts = cut_parts(pieces, first, begins);
      for (int part = 0; part < parts; ++part) list.push_back({cuts[part], cuts[part + 1]});
    }
    begins.push_back(static_cast<std::int64_t>(bytes));
    pieces_ = test::on_device(device, pieces);
    parts_ = test::on_device(device, list);
    counters = test::on_device(device, std::vector<std::uint32_t>(static_cast<std::size_t>(parts) + 1, 0));
    relayed = test::on_device(device, std::vector<std::uint64_t>(static_cast<std::size_t>(parts), 0));
    words = Buffer(device, Space::mapped, word_bytes * static_cast<std::size_t>(1 + 2 * parts + blocks));
    std::memset(words.data(), 0, words.size());
    launch.pieces = reinterpret_cast<const CopyLaunch::Piece*>(pieces_.data());
    launch.parts = reinterpret_cast<const ExchangeLaunch::Part*>(parts_.data());
    launch.sent = launch.received = parts;
    launch.blocks = blocks;
    launch.moved = reinterpret_cast<std::uint32_t*>(counters.data());
    launch.tasks = queue ? launch.moved + parts : nullptr;
    launch.packed = word(1);
    launch.arrived = word(1 + parts);
    launch.relayed = reinterpret_cast<std::uint64_t*>(relayed.data());
    launch.progress = word(1 + 2 * parts);
    launch.stay = {reinterpret_cast<const std::uint32_t*>(words.data()),
                   static_cast<std::uint64_t>(stay_s * device.info().clock_hz)};
    stream = device.stream(true);
    other = device.stream();
  }
  ~Loop() { stop(); }

  static constexpr std::size_t word_bytes = signal_words * sizeof(std::uint64_t);
  std::uint64_t* word(int number) {
    return reinterpret_cast<std::uint64_t*>(words.data() + static_cast<std::size_t>(number) * word_bytes);
  }
  static std::uint64_t read(const std::uint64_t* word) {
    return std::atomic_ref(*const_cast<std::uint64_t*>(word)).load();
  }
  void stop() { std::atomic_ref(*reinterpret_cast<std::uint32_t*>(words.data())).store(1, std::memory_order_release); }

  /// Writes new values to the field, and starts the kernel.
  void begin(double value) {
    std::vector<double> values(elements);
    for (int i = 0; i < elements; ++i) values[i] = value + i;
    other->copy(field.data(), values.data(), field.size());
    other->finish();
    ++launch.exchange;
    device.kernels().exchange.run(*stream, launch);
  }
  /// The part that position `at` announces as packed. Waits for it.
  int task(int at) {
    std::uint64_t announced = 0;
    for (const double end = now_s() + 60; exchange_of(announced) != launch.exchange && now_s() < end;) {
      announced = read(launch.packed + at * signal_words);
      std::this_thread::yield();
    }
    EXPECT_EQ(exchange_of(announced), launch.exchange);
    return of_signal(announced);
  }
  /// The bytes of a part travel, and it arrives as number `turn`.
  void deliver(int part, int turn) {
    const auto begin = static_cast<std::size_t>(begins[part]);
    const auto end = static_cast<std::size_t>(begins[static_cast<std::size_t>(part) + 1]);
    std::memcpy(received.data() + begin, sent.data() + begin, end - begin);
    std::atomic_ref(*const_cast<std::uint64_t*>(launch.arrived + turn * signal_words))
        .store(signal(launch.exchange, part));
  }
  Progress progress(int block) {
    return static_cast<Progress>(of_signal(read(launch.progress + block * signal_words)));
  }
};

TEST(NT1_NT2_NT4_Exchange, OneKernelPacksWaitsAndUnpacksAgainAndAgainWithoutAReset) {
  for (const auto& [parts, blocks, queue] :
       {std::tuple{1, 1, false}, {4, 3, false}, {16, 5, true}, {3, 2, true}, {5, 1, true}}) {
    Loop loop(test::here(), parts, blocks, queue);
    for (int exchange = 0; exchange < 25; ++exchange) {
      loop.begin(1000.0 * exchange);
      for (int turn = 0; turn < parts; ++turn) loop.deliver(loop.task(turn), turn);
      loop.stream->finish();
      const auto found = test::from_device<double>(loop.device, loop.halo);
      for (int i = 0; i < elements; ++i) ASSERT_EQ(found[i], 1000.0 * exchange + i);
      for (int block = 0; block < blocks; ++block) ASSERT_EQ(loop.progress(block), Progress::ended);
    }
  }
}

TEST(NT3_Exchange, TheListNamesEveryPartOnce) {
  Loop loop(test::here(), 16, 8, true);
  for (int exchange = 0; exchange < 20; ++exchange) {
    loop.begin(exchange);
    std::vector<int> named;
    for (int turn = 0; turn < 16; ++turn) named.push_back(loop.task(turn));
    for (int turn = 0; turn < 16; ++turn) loop.deliver(named[turn], turn);
    loop.stream->finish();
    std::sort(named.begin(), named.end());
    ASSERT_EQ(named, test::counted(16));
  }
}

TEST(NT6_Exchange, PartsAreUnpackedInTheOrderOfTheirArrivalThoughOthersAreMissing) {
  Loop loop(test::here(), 4, 2, false, 1);  // seconds
  loop.begin(7);
  for (int part = 0; part < 4; ++part) loop.task(part);
  for (const auto& [turn, part] : {std::pair{0, 2}, {1, 0}, {2, 3}}) loop.deliver(part, turn);
  loop.stream->finish();
  for (int block : {0, 1}) EXPECT_EQ(loop.progress(block), Progress::left);
  const auto found = test::from_device<double>(loop.device, loop.halo);
  for (int part : {2, 0, 3})
    for (auto i = loop.begins[part] / 8; i < loop.begins[part + 1] / 8; ++i)
      ASSERT_EQ(found[i], 7 + static_cast<double>(i)) << "part " << part;
}

TEST(Exchange, AKernelThatIsToldToOrHasStayedLongEnoughLeaves) {
  Loop stopped(test::here(), 3, 2, false);
  stopped.begin(0);
  for (int part = 0; part < 3; ++part) stopped.task(part);
  stopped.deliver(1, 0);
  stopped.stop();
  stopped.stream->finish();
  EXPECT_EQ(stopped.progress(0), Progress::left);
  Loop alone(test::here(), 3, 2, true, 0.01);
  alone.begin(0);
  alone.stream->finish();
  for (int block : {0, 1}) EXPECT_EQ(alone.progress(block), Progress::left);
}

/// Parts arrive just when the kernel leaves: either it has announced that by then, or it unpacks them all.
TEST(Exchange, AKernelThatLeavesSaysSoOrUnpacksWhatHasArrived) {
  for (int exchange = 0; exchange < 400; ++exchange) {
    Loop loop(test::here(), 2, 2, false, 2e-4);
    loop.begin(exchange);
    const int first = loop.task(0);
    const double until = now_s() + 1e-6 * exchange;
    while (now_s() < until) {
    }
    loop.deliver(first, 0);
    loop.deliver(loop.task(1), 1);
    const bool left = loop.progress(0) == Progress::left;
    loop.stream->finish();
    const auto found = test::from_device<double>(loop.device, loop.halo);
    bool all = true;
    for (int i = 0; i < elements; ++i) all = all && found[i] == exchange + i;
    ASSERT_TRUE(left || all) << "exchange " << exchange;
  }
}

TEST(Exchange, PiecesAreCutWherePartsBegin) {
  std::vector<std::byte> memory(1 << 16);
  const BlockCopy copy{.from = memory.data(),
                       .to = memory.data() + (1 << 15),
                       .row_bytes = 48,
                       .rows = 5,
                       .planes = 7,
                       .from_row = 64,
                       .from_plane = 512,
                       .to_row = 48,
                       .to_plane = 240};
  std::vector<CopyLaunch::Piece> pieces(2);
  const std::size_t first = pieces.size();
  cut_copies({copy}, pieces);
  const std::vector<int> cuts = cut_parts(pieces, first, {0, 16, 512, 1024, 1024 + 128});
  ASSERT_EQ(cuts.size(), 6u);
  EXPECT_EQ(cuts.front(), 2);
  EXPECT_EQ(cuts.back(), static_cast<int>(pieces.size()));
  std::vector<std::int64_t> bytes;
  for (std::size_t part = 0; part + 1 < cuts.size(); ++part) {
    bytes.push_back(0);
    for (int p = cuts[part]; p < cuts[part + 1]; ++p) bytes.back() += pieces[p].units * pieces[p].unit_bytes;
    const CopyLaunch::Piece& begin = pieces[cuts[part]];
    const std::int64_t at = (begin.to - copy.to) + begin.y * begin.to_row + begin.x * begin.unit_bytes;
    EXPECT_EQ(at, (std::vector<std::int64_t>{0, 16, 512, 1024, 1152})[part]);
  }
  EXPECT_EQ(bytes, (std::vector<std::int64_t>{16, 496, 512, 128, 48 * 35 - 1152}));
}

}  // namespace
}  // namespace haloscope::device
