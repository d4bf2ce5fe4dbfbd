// The model of caches that counts misses of hydro3d's kernels.
#include <gtest/gtest.h>

#include "davis2017/bench/counted/tally.hpp"

namespace haloscope::counted {
namespace {

const void* at(std::uint64_t bytes) { return reinterpret_cast<const void*>(bytes); }

TEST(CountedCache, DB3_ReplacesTheLeastRecentlyUsedLineOfASet) {
  Cache two(4 * line_bytes, 2);  // two sets of two ways: even lines, odd lines
  EXPECT_FALSE(two.access(0));
  EXPECT_FALSE(two.access(2));
  EXPECT_TRUE(two.access(0));
  EXPECT_FALSE(two.access(4)) << "replaces 2, which was used before 0";
  EXPECT_TRUE(two.access(0));
  EXPECT_FALSE(two.access(2));
  EXPECT_FALSE(two.access(1)) << "the other set";
  EXPECT_TRUE(two.access(2));
}

TEST(CountedCache, DB3_ALoopOverMoreThanACacheMissesEveryLineAndOverLessNone) {
  Tally t;
  for (int pass = 0; pass < 3; ++pass)
    for (std::uint64_t line = 0; line < 2 * 32 * 1024 / line_bytes; ++line) t.load(at(line * line_bytes), 8);
  EXPECT_EQ(t.loads, 3 * 1024);
  EXPECT_EQ(t.l1_misses, 3 * 1024) << "64 KiB do not stay in 32 KiB";
  EXPECT_EQ(t.l2_misses, 1024) << "they stay in 256 KiB";
}

TEST(CountedCache, DB3_AVectorAcrossTwoLinesAccessesBoth) {
  Tally t;
  t.store(at(line_bytes - 8), 16);
  t.load(at(0), 8);
  t.load(at(line_bytes), 8);
  EXPECT_EQ(t.stores, 1);
  EXPECT_EQ(t.l1_misses, 2);
  t.operate(2);
  t.operate(1);
  EXPECT_EQ(t.operations, 3);
  EXPECT_EQ(t.vector_operations, 1);
}

}  // namespace
}  // namespace haloscope::counted
