// Arrays that share memory or not, against bytes that are counted one by one.
#include "haloscope/field/overlap.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "each_point.hpp"

namespace haloscope {
namespace {

std::byte* const somewhere = reinterpret_cast<std::byte*>(0x10000);

/// The addresses of all bytes of all points.
std::set<std::int64_t> bytes_of(const PointSet& set) {
  std::set<std::int64_t> bytes;
  test::each_point(set.points, [&](const Index& p) {
    for (std::int64_t b = 0; b < set.view.element_bytes(); ++b)
      bytes.insert(reinterpret_cast<std::intptr_t>(set.view.at(p)) + b);
  });
  return bytes;
}

bool share_counted(const PointSet& a, const PointSet& b) {
  const std::set<std::int64_t> of_a = bytes_of(a), of_b = bytes_of(b);
  return std::any_of(of_b.begin(), of_b.end(), [&](std::int64_t byte) { return of_a.contains(byte); });
}

TEST(Overlap, OfRandomStridesIsWhatCountingTheBytesFinds) {
  std::mt19937 random(39);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const auto random_set = [&] {
    PointSet set{{somewhere + pick(-40, 40), {}, pick(1, 4)}, {}};
    for (int d = 0; d < 3; ++d) {
      set.points.lo[d] = pick(-2, 0);
      set.points.hi[d] = set.points.lo[d] + pick(1, 4);
      set.view.stride[d] = pick(1, 6) * pick(1, 8) * (pick(0, 3) == 0 ? -1 : 1);
    }
    return set;
  };
  int shared = 0;
  for (int round = 0; round < 4000; ++round) {
    const PointSet a = random_set(), b = random_set();
    const bool counted = share_counted(a, b);
    shared += counted;
    ASSERT_EQ(share_memory(a, b), counted) << "round " << round;
    ASSERT_EQ(share_memory(b, a), counted) << "round " << round;
    ASSERT_TRUE(share_memory(a, a));
    ASSERT_EQ(extent_of(a).begin, *bytes_of(a).begin());
    ASSERT_EQ(extent_of(a).end, *bytes_of(a).rbegin() + 1);
  }
  EXPECT_GT(shared, 400);
  EXPECT_LT(shared, 3600);
}

TEST(Overlap, MembersOfLargeStructsAndHalvesOfLargeRowsAreApart) {
  const Box points{{0, 0, 0}, {1000, 1000, 1000}}, half{{0, 0, 0}, {500, 500, 1000}};
  const auto member = [&](std::int64_t at, const Box& box) {
    return PointSet{{somewhere + at, {24, 24000, 24000000}, 8}, box};
  };
  EXPECT_FALSE(share_memory(member(0, points), member(8, points)));
  EXPECT_TRUE(share_memory(member(0, points), member(7, points)));
  EXPECT_FALSE(share_memory(member(0, half), member(16 - 24, points)));
  const PointSet left{{somewhere, {8, 8000, 8000000}, 8}, half};
  const PointSet right{{somewhere + 4000, {8, 16000, 8000000}, 8}, half};  // of every second row
  EXPECT_FALSE(share_memory(left, right));
  EXPECT_TRUE(share_memory(left, {{somewhere + 3992, {8, 16000, 8000000}, 8}, half}));
}

TEST(Overlap, StridesBeyondAllMemoryAreKnown) {
  const Box points{{-1, 0, 0}, {9, 9, 1}};
  EXPECT_TRUE(is_addressable({{somewhere, {8, 80, 0}, 8}, points}));
  EXPECT_FALSE(is_addressable({{somewhere, {8, 0x5a5a5a5a5a5a5a5a, 0}, 8}, points}));
  EXPECT_FALSE(is_addressable({{somewhere, {8, std::numeric_limits<std::int64_t>::min(), 0}, 8}, points}));
}

}  // namespace
}  // namespace haloscope
