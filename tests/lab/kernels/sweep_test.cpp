// Every kernel gives the bits of the plain loop and writes nothing outside its region.
#include <gtest/gtest.h>

#include "haloscope/error.hpp"
#include "kernel_reference.hpp"
#include "texts.hpp"

namespace haloscope {
namespace {

using test::Grid;

struct Case {
  std::string form;
  Real real;
  std::string isa;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& isa : kernel_isas()) {
    for (const std::string form : {"laplace2d", "laplace3d"}) {
      cases.push_back({form, Real::f64, isa});
      cases.push_back({form, Real::f32, isa});
    }
    cases.push_back({"advection3d-dense", Real::f64, isa});
    cases.push_back({"advection3d-separable", Real::f64, isa});
  }
  return cases;
}

std::string name(const testing::TestParamInfo<Case>& info) {
  return test::test_name(info.param.form + (info.param.real == Real::f64 ? "_f64_" : "_f32_") + info.param.isa);
}

class KernelSweep : public testing::TestWithParam<Case> {};

Box random_region(const Index& cells, std::mt19937_64& rng) {
  Box region;
  for (int d = 0; d < 3; ++d) {
    const auto n = static_cast<std::uint64_t>(cells[d]);
    const auto a = static_cast<std::int64_t>(rng() % (n + 1)), b = static_cast<std::int64_t>(rng() % (n + 1));
    region.lo[d] = std::min(a, b), region.hi[d] = std::max(a, b);  // one in n is empty
    const auto pick = rng() % 4;
    if (pick == 0) region.lo[d] = 0, region.hi[d] = cells[d];
    if (pick == 1) region.lo[d] = std::min(a, cells[d] - 1), region.hi[d] = region.lo[d] + 1;
  }
  return region;
}

template <class T>
void expect_reference_bits(const Case& c, const Index& cells, const Box& region, int pad, int start, bool stream,
                           std::mt19937_64& rng) {
  const auto weights = test::random_weights(c.form, rng);
  Grid<T> grid(c.form, cells, 1, pad, start, rng);
  auto expected = grid.out;
  test::reference_sweep<T>(c.form, grid.in.data() + grid.first, expected.data() + grid.first, grid.row, grid.plane,
                           region, weights);
  find_kernel(c.form, c.real, c.isa).sweep(grid.args(region, weights, stream));
  EXPECT_TRUE(test::same_bytes(grid.out, expected))
      << "region [" << region.lo[0] << "," << region.hi[0] << ") x [" << region.lo[1] << "," << region.hi[1] << ") x ["
      << region.lo[2] << "," << region.hi[2] << "), row " << grid.row << ", start " << start << ", stream " << stream;
}

void expect_reference_bits(const Case& c, const Index& cells, const Box& region, int pad, int start, bool stream,
                           std::mt19937_64& rng) {
  if (c.real == Real::f64)
    expect_reference_bits<double>(c, cells, region, pad, start, stream, rng);
  else
    expect_reference_bits<float>(c, cells, region, pad, start, stream, rng);
}

TEST_P(KernelSweep, RandomRegionsAndStridesGiveTheBitsOfTheScalarLoop) {
  const Case c = GetParam();
  std::mt19937_64 rng(20110901);
  for (int round = 0; round < 150; ++round) {
    const Index cells{static_cast<std::int64_t>(1 + rng() % 150), static_cast<std::int64_t>(1 + rng() % 21),
                      test::dims(c.form) == 3 ? static_cast<std::int64_t>(1 + rng() % 13) : 1};
    const int pad = static_cast<int>(rng() % 40), start = static_cast<int>(rng() % 20);
    expect_reference_bits(c, cells, random_region(cells, rng), pad, start, round % 2 == 1, rng);
  }
}

TEST_P(KernelSweep, RowsThatLieAlikeGiveTheBitsOfTheScalarLoop) {
  const Case c = GetParam();
  std::mt19937_64 rng(7);
  for (int start = 0; start < 18; ++start) {
    for (const bool stream : {false, true}) {
      const Index cells{111, 13, test::dims(c.form) == 3 ? 7 : 1};  // 111 + 2 + 15 = 128: rows and planes in step
      expect_reference_bits(c, cells, Box{{3, 0, 0}, {111 - start % 5, 13, cells[2]}}, 15 - 15 % 2, start, stream, rng);
      expect_reference_bits(c, cells, Box{{0, 0, 0}, {111, 13, cells[2]}}, 15, start, stream, rng);
    }
  }
}

TEST_P(KernelSweep, LargeBoxesCutIntoBlocksGiveTheBitsOfTheScalarLoop) {
  const Case c = GetParam();
  std::mt19937_64 rng(3);
  const Index cells = test::dims(c.form) == 3 ? Index{2100, 19, 6} : Index{70001, 6, 1};
  for (const bool stream : {false, true}) {
    expect_reference_bits(c, cells, Box{{0, 0, 0}, cells}, 5, 0, stream, rng);
  }
}

TEST_P(KernelSweep, EmptyRegionsWriteNothing) {
  const Case c = GetParam();
  std::mt19937_64 rng(1);
  for (const bool stream : {false, true}) {
    expect_reference_bits(c, {20, 5, 1}, Box{{4, 2, 0}, {4, 5, 1}}, 3, 0, stream, rng);
    expect_reference_bits(c, {20, 5, 1}, Box{{0, 4, 0}, {20, 3, 1}}, 3, 0, stream, rng);
    expect_reference_bits(c, {20, 5, 1}, Box{{0, 0, 1}, {20, 5, 1}}, 3, 0, stream, rng);
  }
}

INSTANTIATE_TEST_SUITE_P(All, KernelSweep, testing::ValuesIn(all_cases()), name);

TEST(KernelForms, DenseAndSeparableAgreeWithinTheRoundingOfTheirOperations) {
  std::mt19937_64 rng(42);
  const Index cells{40, 11, 9};
  const auto w = test::random_weights("advection3d-separable", rng);
  std::vector<double> product(27);
  for (int n = 0; n < 27; ++n) product[n] = w[6 + n / 9] * w[3 + n / 3 % 3] * w[n % 3];
  Grid<double> grid("advection3d-dense", cells, 1, 2, 0, rng);
  find_kernel("advection3d-dense", Real::f64).sweep(grid.args({{0, 0, 0}, cells}, product, false));
  const auto dense = grid.out;
  find_kernel("advection3d-separable", Real::f64).sweep(grid.args({{0, 0, 0}, cells}, w, false));

  // Dense: two roundings per weight and at most 27 per term; separable: nine per term. To first order the results
  // differ by at most 38 unit roundoffs of the sum of the terms' magnitudes; 40 covers the higher orders.
  const double bound = 40 * 0x1p-53;
  test::each_point({{0, 0, 0}, cells}, [&](const Index& p) {
    const auto at = grid.first + p[0] + p[1] * grid.row + p[2] * grid.plane;
    double magnitude = 0;
    for (int n = 0; n < 27; ++n)
      magnitude +=
          std::abs(product[n] * grid.in[at + n % 3 - 1 + (n / 3 % 3 - 1) * grid.row + (n / 9 - 1) * grid.plane]);
    ASSERT_LE(std::abs(dense[at] - grid.out[at]), bound * magnitude);
  });
}

TEST(KernelChoice, ListsTheBaselineLastAndTakesTheFirstByDefault) {
  const auto isas = kernel_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.back(), "baseline");
  EXPECT_EQ(find_kernel("laplace2d", Real::f64).isa, isas.front());
  for (const auto& isa : isas) EXPECT_EQ(find_kernel("laplace3d", Real::f64, isa).isa, isa);
}

TEST(KernelChoice, RefusesUnknownFormsTypesAndInstructionSetsAndNamesTheValidOnes) {
  EXPECT_PART(test::error_of([] { find_kernel("laplace4d", Real::f64); }), "laplace2d, laplace3d");
  EXPECT_PART(test::error_of([] { find_kernel("advection3d-dense", Real::f32); }), "choose f64");
  EXPECT_PART(test::error_of([] { find_kernel("laplace2d", Real::f64, "mmx"); }), "baseline");
}

}  // namespace
}  // namespace haloscope
