// Every kernel of a device computes the bits of the plain loop and writes nothing outside its region.
#include <gtest/gtest.h>

#include <limits>

#include "device_here.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/candidate.hpp"
#include "kernel_reference.hpp"

namespace haloscope::device {
namespace {

using test::below;
using test::error_of;

using haloscope::test::Grid;
using Entry = Kernels::Entry;

std::vector<Entry> entries(bool fused) {
  std::vector<Entry> chosen;
  for (const Entry& entry : test::here().kernels().sweeps)
    if ((entry.variant == std::string("fused")) == fused) chosen.push_back(entry);
  return chosen;
}

std::string name(const testing::TestParamInfo<Entry>& info) {
  return haloscope::test::test_name(std::string(info.param.form) + "_" + info.param.real + "_" + info.param.variant);
}

std::string text(const SweepLaunch& s) {
  const auto three = [](const auto& v) {
    return "(" + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ", " + std::to_string(v[2]) + ")";
  };
  return "cells " + three(s.region.lo) + " to " + three(s.region.hi) + ", wrap " + three(s.wrap) + ", levels " +
         std::to_string(s.levels) + ", block " + three(std::array{s.shape.x, s.shape.y, s.shape.layers});
}

/// Runs the sweep on the device, on copies of the grid's two slots, and compares the whole slot written.
/// @param shift  elements by which the slot written begins later than the one read, as far as 16 bytes are concerned
template <class T>
void expect_result(const Entry& entry, const Grid<T>& grid, SweepLaunch launch, const std::vector<double>& weights,
                   std::vector<T> expected, int shift) {
  Device& device = test::here();
  const auto shifted = [&](std::vector<T> values) {
    values.insert(values.begin(), static_cast<std::size_t>(shift), T{});
    return values;
  };
  expected = shifted(expected);
  const Buffer in = test::on_device(device, grid.in), out = test::on_device(device, shifted(grid.out));
  launch.in = reinterpret_cast<const T*>(in.data()) + grid.first;
  launch.out = reinterpret_cast<T*>(out.data()) + grid.first + shift;
  launch.row = grid.row, launch.plane = grid.plane;
  std::copy(weights.begin(), weights.end(), launch.weights);
  const auto stream = device.stream();
  entry.sweep(*stream, launch);
  stream->finish();
  EXPECT_TRUE(haloscope::test::same_bytes(test::from_device<T>(device, out), expected)) << text(launch);
  EXPECT_TRUE(haloscope::test::same_bytes(test::from_device<T>(device, in), grid.in))
      << text(launch) << " wrote to its input";
}

/// The result of `levels` steps, each on a region one cell smaller than the one before.
template <class T>
std::vector<T> reference(const std::string& form, const Grid<T>& grid, const Box& region, int levels,
                         const std::vector<double>& weights) {
  auto from = grid.in, to = grid.in;
  auto expected = grid.out;
  for (int reach = levels - 1; reach >= 0; --reach) {
    const Widths around{reach, reach, haloscope::test::dims(form) == 3 ? reach : 0};
    haloscope::test::reference_sweep<T>(form, from.data() + grid.first, (reach ? to : expected).data() + grid.first,
                                        grid.row, grid.plane, grown(region, around, around), weights);
    std::swap(from, to);
  }
  return expected;
}

/// Fills the halo of dimensions that wrap: with `fill` the values of a periodic grid, otherwise NaN, so that a kernel
/// that reads it is detected.
template <class T>
void set_halo(Grid<T>& grid, const Index& wrap, int margin, int dims, bool fill) {
  const std::int64_t deep = dims == 3 ? margin : 0;
  const Box all = grown({{0, 0, 0}, grid.cells}, {margin, margin, static_cast<int>(deep)},
                        {margin, margin, static_cast<int>(deep)});
  haloscope::test::each_point(all, [&](const Index& halo) {
    Index p = halo;
    for (int d = 0; d < 3; ++d)
      if (wrap[d] > 0) p[d] = (p[d] + 8 * wrap[d]) % wrap[d];
    if (p == halo) return;
    const auto at = [&](const Index& c) { return grid.first + c[0] + c[1] * grid.row + c[2] * grid.plane; };
    grid.in[at(halo)] = fill ? grid.in[at(p)] : std::numeric_limits<T>::quiet_NaN();
  });
}

/// @param whole_packs  rows are padded by multiples of 32 bytes, planes by multiples of 16
template <class T>
void expect_reference(const Entry& entry, const Index& cells, const SweepLaunch& launch, std::mt19937_64& rng,
                      bool whole_packs, int shift) {
  const int dims = haloscope::test::dims(entry.form), margin = launch.levels;
  const auto weights = haloscope::test::random_weights(entry.form, rng);
  const auto pad = static_cast<int>(whole_packs ? rng() % 2 * 8 : rng() % 9);
  Grid<T> grid(entry.form, cells, margin, pad, static_cast<int>(rng() % 5), rng);
  set_halo(grid, launch.wrap, margin, dims, true);
  const auto expected = reference(entry.form, grid, launch.region, launch.levels, weights);
  set_halo(grid, launch.wrap, margin, dims, false);
  expect_result(entry, grid, launch, weights, expected, shift);
}

void expect_reference(const Entry& entry, Index cells, SweepLaunch launch, std::mt19937_64& rng,
                      bool whole_packs = false, int shift = 0) {
  if (haloscope::test::dims(entry.form) == 2)
    cells[2] = launch.region.hi[2] = 1, launch.region.lo[2] = launch.wrap[2] = 0;
  entry.real == std::string("f64") ? expect_reference<double>(entry, cells, launch, rng, whole_packs, shift)
                                   : expect_reference<float>(entry, cells, launch, rng, whole_packs, shift);
}

SweepLaunch sweep_of(const Box& region, const BlockShape& shape, const Index& wrap = {0, 0, 0}, int levels = 1) {
  SweepLaunch launch;
  launch.region = region, launch.shape = shape, launch.wrap = wrap, launch.levels = levels;
  return launch;
}

Box random_region(const Index& cells, std::mt19937_64& rng) {
  Box region;
  for (int d = 0; d < 3; ++d) {
    region.lo[d] = below(cells[d], rng);
    region.hi[d] = region.lo[d] + 1 + below(cells[d] - region.lo[d], rng);
  }
  return region;
}

class DeviceSweep : public testing::TestWithParam<Entry> {};

TEST_P(DeviceSweep, RegionsOfAnySizeGiveTheBitsOfTheScalarLoop) {
  std::mt19937_64 rng(20110901);
  const std::vector<BlockShape> shapes{{}, {1, 1, 1}, {4, 2, 3}, {7, 3, 5}, {32, 4, 2}, {64, 1, 100}};
  const std::vector<Index> grids{{1, 1, 1},  {1, 5, 1},   {9, 1, 1},    {1, 1, 7},
                                 {33, 9, 4}, {300, 3, 2}, {3, 150, 35}, {31, 17, 9}};
  for (const Index& cells : grids)
    for (const BlockShape& shape : shapes)
      expect_reference(GetParam(), cells, sweep_of({{0, 0, 0}, cells}, shape), rng);
  for (int round = 0; round < 40; ++round) {
    const Index cells{1 + below(80, rng), 1 + below(25, rng), 1 + below(14, rng)};
    const auto shape = shapes[static_cast<std::size_t>(round) % shapes.size()];
    expect_reference(GetParam(), cells, sweep_of(random_region(cells, rng), shape), rng);
  }
}

TEST_P(DeviceSweep, RowsOfWholePacksGiveTheBitsWhereverARegionBeginsAndEnds) {
  std::mt19937_64 rng(128);
  const std::vector<BlockShape> shapes{{}, {1, 1, 1}, {3, 2, 3}, {8, 1, 2}, {32, 4, 100}};
  for (int round = 0; round < 120; ++round) {
    const Index cells{6 + 8 * below(round % 4 ? 9 : 50, rng), 1 + below(25, rng), 1 + below(9, rng)};
    const auto shape = shapes[static_cast<std::size_t>(round) % shapes.size()];
    const Box region = round % 8 ? random_region(cells, rng) : Box{{0, 0, 0}, cells};
    expect_reference(GetParam(), cells, sweep_of(region, shape), rng, true, round % 5 == 0 ? 1 : 0);
  }
}

TEST_P(DeviceSweep, DimensionsThatWrapAroundInTheKernelEqualAPeriodicGrid) {
  std::mt19937_64 rng(14);
  for (int round = 0; round < 48; ++round) {
    const Index cells{1 + below(40, rng), 1 + below(20, rng), 1 + below(9, rng)};
    const Index wrap{round & 1 ? cells[0] : 0, round & 2 ? cells[1] : 0, round & 4 ? cells[2] : 0};
    const BlockShape shape = round % 3 == 0 ? BlockShape{4, 2, 3} : BlockShape{};
    const Box region = round < 32 ? Box{{0, 0, 0}, cells} : random_region(cells, rng);
    expect_reference(GetParam(), cells, sweep_of(region, shape, wrap), rng);
  }
}

TEST_P(DeviceSweep, AnEmptyRegionWritesNothing) {
  std::mt19937_64 rng(1);
  expect_reference(GetParam(), {5, 4, 3}, sweep_of({{2, 2, 0}, {2, 4, 1}}, {}), rng);
}

INSTANTIATE_TEST_SUITE_P(Every, DeviceSweep, testing::ValuesIn(entries(false)), name);

class DeviceFusedSweep : public testing::TestWithParam<Entry> {};

/// The limit of the legality function for the kernel's app.
int most_levels(const Entry& entry) { return find_app(entry.form).device_levels; }

TEST_P(DeviceFusedSweep, AsManyLevelsAsLegalGiveTheBitsOfSingleSweeps) {
  std::mt19937_64 rng(8);
  for (int levels = 1; levels <= most_levels(GetParam()); ++levels)
    for (int round = 0; round < 12; ++round) {
      const Index cells = round == 0   ? Index{1, 1, 1}
                          : round == 1 ? Index{530, 6, 3}
                                       : Index{1 + below(90, rng), 1 + below(40, rng), 1 + below(20, rng)};
      const BlockShape shape = round % 3 == 0   ? BlockShape{2 * levels + 1 + round, 2 * levels + 1 + round % 4, 3}
                               : round % 3 == 1 ? BlockShape{}
                                                : BlockShape{64, 12, 7};
      const Box region = round % 2 ? random_region(cells, rng) : Box{{0, 0, 0}, cells};
      expect_reference(GetParam(), cells, sweep_of(region, shape, {0, 0, 0}, levels), rng);
    }
}

TEST_P(DeviceFusedSweep, FusedLevelsThatWrapAroundEqualAPeriodicGrid) {
  std::mt19937_64 rng(88);
  for (int levels = 1; levels <= most_levels(GetParam()); ++levels)
    for (int wraps = 1; wraps <= 7; ++wraps) {
      const Index cells{levels + below(40, rng), levels + below(20, rng), levels + below(9, rng)};
      const Index wrap{wraps & 1 ? cells[0] : 0, wraps & 2 ? cells[1] : 0, wraps & 4 ? cells[2] : 0};
      for (const BlockShape& shape : {BlockShape{}, BlockShape{2 * levels + 3, 2 * levels + 2, 4}})
        expect_reference(GetParam(), cells, sweep_of({{0, 0, 0}, cells}, shape, wrap, levels), rng);
    }
}

INSTANTIATE_TEST_SUITE_P(Every, DeviceFusedSweep, testing::ValuesIn(entries(true)), name);

// ---- refusals -------------------------------------------------------------------------------------------------------

std::string refusal(const std::string& form, const std::string& variant, const SweepLaunch& launch) {
  Device& device = test::here();
  const auto stream = device.stream();
  return error_of([&] { find_sweep(device.kernels(), form, "f32", variant)(*stream, launch); });
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const auto& word : words) EXPECT_PART(text, word);
}

TEST(DeviceRefusal, AKernelThatDoesNotExistIsToldFromThoseThatDo) {
  const Kernels& kernels = test::here().kernels();
  const auto find = [&](const char* form, const char* real, const char* variant) {
    return error_of([&] { find_sweep(kernels, form, real, variant); });
  };
  EXPECT_EQ(find_sweep(kernels, "laplace3d", "f32", ""), find_sweep(kernels, "laplace3d", "f32", "stream"));
  expect_words(find("laplace4d", "f32", ""), {"laplace4d/f32", "laplace2d/f32", "laplace3d/f32"});
  expect_words(find("advection3d-dense", "f32", ""), {"advection3d-dense/f32", "advection3d-dense/f64"});
  expect_words(find("advection3d-dense", "f64", "fused"),
               {"advection3d-dense/f64", "'fused'", "stream", "shared", "naive"});
}

TEST(DeviceRefusal, ALaunchThatNoDeviceCanDoNamesTheLimit) {
  const Box region{{0, 0, 0}, {40, 40, 1}};
  expect_words(refusal("laplace2d", "stream", sweep_of(region, {1025, 1, 1})), {"1025 x 1", "1024"});
  expect_words(refusal("laplace3d", "naive", sweep_of(region, {64, 17, 1})), {"64 x 17", "1024"});
  expect_words(refusal("laplace2d", "shared", sweep_of(region, {}, {0, 0, 0}, 2)), {"2 time steps", "fused"});
  expect_words(refusal("laplace2d", "fused", sweep_of(region, {}, {0, 0, 0}, 9)), {"9 time steps", "1 to 8"});
  expect_words(refusal("laplace2d", "fused", sweep_of(region, {}, {0, 0, 0}, 0)), {"0 time steps", "1 to 8"});
  expect_words(refusal("laplace2d", "fused", sweep_of(region, {16, 1, 1}, {0, 0, 0}, 8)),
               {"16 x 1", "8 fused", "16 are"});
  expect_words(refusal("laplace3d", "fused", sweep_of(region, {}, {0, 0, 0}, 5)), {"5 time steps", "1 to 4"});
  expect_words(refusal("laplace3d", "fused", sweep_of(region, {32, 8, 1}, {0, 0, 0}, 4)),
               {"32 x 8", "4 fused", "8 are"});
  expect_words(refusal("laplace2d", "fused", sweep_of(region, {}, {0, 3, 0}, 4)), {"3 cells", "4 fused"});
  const Box huge{{0, 0, 0}, {1 << 20, 1 << 12, 1}};
  expect_words(refusal("laplace2d", "naive", sweep_of(huge, {1, 1, 1})), {"2^31", "larger blocks"});
}

}  // namespace
}  // namespace haloscope::device
