// The timetable of an emulated network: departure times of frames by their arrival times.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cluster/wire.hpp"

namespace haloscope::lab {
namespace {

constexpr double gbit = 125e6;  // bytes per second: 8 ns a byte

TEST(Timetable, AFrameTakesItsLengthAndTheLatency) {
  Timetable t({.latency_ns = 50'000, .bytes_per_s = gbit}, 2);
  EXPECT_EQ(t.departure(0, 1, 1000, 0), 8'000 + 50'000);
}

TEST(Timetable, WithoutALimitOfBandwidthOnlyTheLatencyCounts) {
  Timetable t({.latency_ns = 50'000}, 2);
  EXPECT_EQ(t.departure(0, 1, 9000, 7), 50'007);
  EXPECT_EQ(t.departure(0, 1, 9000, 7), 50'007);
}

TEST(Timetable, FramesOfOneHostFollowEachOther) {
  Timetable t({.latency_ns = 50'000, .bytes_per_s = gbit}, 2);
  EXPECT_EQ(t.departure(0, 1, 1000, 0), 58'000);
  EXPECT_EQ(t.departure(0, 1, 1000, 0), 66'000);
  EXPECT_EQ(t.departure(0, 1, 1000, 100'000), 158'000);  // the line was free again
}

TEST(Timetable, LinesGoBothWaysAtOnce) {
  Timetable t({.latency_ns = 50'000, .bytes_per_s = gbit}, 2);
  EXPECT_EQ(t.departure(0, 1, 1000, 0), 58'000);
  EXPECT_EQ(t.departure(1, 0, 1000, 0), 58'000);
}

TEST(Timetable, TwoSendersShareTheLineOfOneReceiver) {
  Timetable t({.latency_ns = 50'000, .bytes_per_s = gbit}, 3);
  EXPECT_EQ(t.departure(0, 2, 1000, 0), 58'000);
  EXPECT_EQ(t.departure(1, 2, 1000, 0), 66'000);
}

TEST(Timetable, JitterAddsItsMeanAndKeepsTheOrder) {
  Timetable t({.latency_ns = 10'000, .jitter_ns = 2'000}, 2);
  double added = 0;
  std::int64_t before = 0;
  constexpr int frames = 10'000;
  for (int i = 0; i < frames; ++i) {
    const std::int64_t came = std::int64_t{1'000'000} * i;
    const std::int64_t out = t.departure(0, 1, 100, came);
    EXPECT_GE(out, std::max(before, came + 10'000));
    added += static_cast<double>(out - came - 10'000);
    before = out;
  }
  EXPECT_NEAR(added / frames, 2'000, 100);
}

TEST(Timetable, NoLineCarriesMoreThanItsBandwidth) {
  std::mt19937 random(3);
  constexpr int ports = 4;
  Timetable t({.latency_ns = 1'000, .bytes_per_s = gbit, .jitter_ns = 500}, ports);
  std::vector<std::int64_t> out(ports);
  std::int64_t now = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::size_t from = random() % ports, to = (from + 1 + random() % (ports - 1)) % ports;
    const std::size_t bytes = 60 + random() % 9000;
    now += static_cast<std::int64_t>(random() % 40'000);
    const std::int64_t time = t.departure(from, to, bytes, now), length = 8 * static_cast<std::int64_t>(bytes);
    EXPECT_GE(time, std::max(out[to], now + 1'000) + length);
    out[to] = time;
  }
}

}  // namespace
}  // namespace haloscope::lab
