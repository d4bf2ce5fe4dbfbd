// Several steps fused give the bits of single sweeps.
#include <gtest/gtest.h>

#include "kernel_reference.hpp"

namespace haloscope {
namespace {

using test::Grid;

/// `levels` reference steps, each on a region one cell smaller than the last; the result stands in `region`.
template <class T>
std::vector<T> stepwise(const Grid<T>& grid, const Box& region, int levels, const std::vector<double>& weights) {
  auto from = grid.in, to = grid.in;
  for (int level = 1; level <= levels; ++level) {
    const int reach = levels - level;
    test::reference_sweep<T>("laplace2d", from.data() + grid.first, to.data() + grid.first, grid.row, grid.plane,
                             grown(region, {reach, reach, 0}, {reach, reach, 0}), weights);
    std::swap(from, to);
  }
  auto expected = grid.out;
  for (auto y = region.lo[1]; y < region.hi[1]; ++y)
    for (auto x = region.lo[0]; x < region.hi[0]; ++x) {
      const auto at = grid.first + x + y * grid.row;
      expected[at] = from[at];
    }
  return expected;
}

template <class T>
void expect_single_step_bits(const std::string& isa, const Index& cells, const Box& region, int levels, int pad,
                             bool stream, std::mt19937_64& rng) {
  const Kernel kernel = find_kernel("laplace2d", sizeof(T) == 8 ? Real::f64 : Real::f32, isa);
  const auto weights = test::random_weights("laplace2d", rng);
  Grid<T> grid("laplace2d", cells, levels, pad, pad % 7, rng);
  const auto expected = stepwise(grid, region, levels, weights);

  // Scratch in a guarded block: NaN around it and in it, so that unset cells and overruns both show.
  const std::size_t bytes = kernel.scratch_bytes(region, levels);
  std::vector<T> block(bytes / sizeof(T) + 256, std::numeric_limits<T>::quiet_NaN());
  auto address = reinterpret_cast<std::uintptr_t>(block.data() + 64);
  T* scratch = reinterpret_cast<T*>((address + 63) / 64 * 64);
  const auto before = block;

  auto args = grid.args(region, weights, stream);
  args.levels = levels, args.scratch = scratch;
  kernel.fused(args);
  EXPECT_TRUE(test::same_bytes(grid.out, expected))
      << isa << ", levels " << levels << ", region [" << region.lo[0] << "," << region.hi[0] << ") x [" << region.lo[1]
      << "," << region.hi[1] << "), row " << grid.row << ", stream " << stream;
  const std::size_t front = (scratch - block.data()), back = front + bytes / sizeof(T);
  EXPECT_EQ(std::memcmp(block.data(), before.data(), front * sizeof(T)), 0) << "wrote before the scratch space";
  EXPECT_EQ(std::memcmp(block.data() + back, before.data() + back, (block.size() - back) * sizeof(T)), 0)
      << "wrote beyond the scratch space";
}

class FusedSweep : public testing::TestWithParam<std::string> {};

TEST_P(FusedSweep, OneToTwelveLevelsOnOddRegionsGiveTheBitsOfSingleSweeps) {
  std::mt19937_64 rng(99);
  for (int levels = 1; levels <= 12; ++levels) {
    for (int round = 0; round < 6; ++round) {
      const Index cells{static_cast<std::int64_t>(1 + rng() % 90), static_cast<std::int64_t>(1 + rng() % 40), 1};
      const Index lo{static_cast<std::int64_t>(rng() % cells[0]), static_cast<std::int64_t>(rng() % cells[1]), 0};
      const Box region{round % 3 ? Index{0, 0, 0} : lo, cells};
      const int pad = static_cast<int>(rng() % 30);
      expect_single_step_bits<double>(GetParam(), cells, region, levels, pad, round % 2, rng);
      expect_single_step_bits<float>(GetParam(), cells, region, levels, pad, round % 2, rng);
    }
  }
}

TEST_P(FusedSweep, ManyTilesGiveTheBitsOfSingleSweeps) {
  std::mt19937_64 rng(5);
  for (const int levels : {1, 2, 8, 33}) {
    for (const std::int64_t width : {513, 1800, 2600}) {
      // Rows with equal alignment (row a multiple of 128 elements) and rows without.
      const Index cells{width, 11, 1};
      const int in_step = static_cast<int>(127 - (width + 2 * levels + 127) % 128);
      for (const int pad : {in_step, in_step + 3}) {
        expect_single_step_bits<double>(GetParam(), cells, {{0, 0, 0}, cells}, levels, pad, true, rng);
        expect_single_step_bits<float>(GetParam(), cells, {{0, 0, 0}, cells}, levels, pad, true, rng);
      }
    }
  }
}

TEST_P(FusedSweep, EmptyRegionsNeedNoScratchAndWriteNothing) {
  std::mt19937_64 rng(2);
  expect_single_step_bits<double>(GetParam(), {30, 8, 1}, {{5, 3, 0}, {5, 8, 1}}, 4, 3, true, rng);
  EXPECT_EQ(find_kernel("laplace2d", Real::f64, GetParam()).scratch_bytes({{5, 3, 0}, {5, 8, 1}}, 4), 0u);
}

INSTANTIATE_TEST_SUITE_P(All, FusedSweep, testing::ValuesIn(kernel_isas()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace haloscope
