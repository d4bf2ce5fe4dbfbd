// Sums of fields: the same bits on any number of ranks, for any split and any layout in memory.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>
#include <complex>
#include <limits>
#include <random>

#include "haloscope/haloscope.hpp"
#include "opened_case.hpp"
#include "tori.hpp"

namespace haloscope {
namespace {

using namespace test;

/// A number for each point of a grid, of magnitudes from `scale` to 2^40 times that, with rounding in every sum.
double term(const Index& at, double scale) {
  std::mt19937_64 random(static_cast<std::uint64_t>(at[0] + 1000 * at[1] + 1000000 * at[2]));
  const double value = std::uniform_real_distribution<double>(-1, 1)(random);
  return scale * std::ldexp(value, static_cast<int>(random() % 41));
}

/// Sets points to their numbers, and ghost layers to others.
template <class T>
void fill(const Grid<3>& grid, const Field<T, 3>& u, const Box& owned, double scale) {
  const auto& spec = grid.layout().grid();
  each_point(grown(owned, {1, 1, 1}, {1, 1, 1}), [&](const Index& p) {
    Index at;
    for (int d = 0; d < 3; ++d) {
      at[d] = grid.owned().lo[d] + p[d];
      if (spec.periodic[d]) at[d] = (at[d] + spec.cells[d]) % spec.cells[d];
    }
    u[0](p[0], p[1], p[2]) = static_cast<T>(owned.contains(p) ? term(at, scale) : 1e30 * scale);
  });
}

Box points_of(const Grid<3>& grid, Centring centring) {
  Box box{{0, 0, 0}, grid.cells()};
  for (int d = 0; d < 3; ++d) box.hi[d] += staggered(centring, d);
  return box;
}

template <class T>
std::array<double, 3> sums_on(MPI_Comm comm, const std::string& split, bool periodic, Centring centring, double scale) {
  const Grid<3> grid(comm, {.cells = {7, 6, 9}, .periodic = {periodic, !periodic, periodic}, .process_grid = split});
  const Field<T, 3> u(grid, {.halo = 1, .centring = centring}), v(grid, {.halo = 1, .centring = centring});
  fill(grid, u, points_of(grid, centring), scale);
  fill(grid, v, points_of(grid, centring), std::min(1 / scale, 1e300));
  return {sum(grid, u), dot(grid, u, v), norm(grid, v)};
}

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

TEST(FieldSums, HaveTheSameBitsOnAnyNumberOfRanks) {
  const int size = world_size();
  std::vector<std::string> splits{"slabs", "prime-factors"};
  if (size <= 6) splits.push_back("1x" + std::to_string(size) + "x1");
  for (const bool periodic : {false, true})
    for (const Centring centring : {Centring::cell, Centring::node, Centring::face_y})
      for (const double scale : {1.0, 1e-300, 1e290}) {
        const auto alone = sums_on<double>(MPI_COMM_SELF, "slabs", periodic, centring, scale);
        const auto alone_in_single = sums_on<float>(MPI_COMM_SELF, "slabs", periodic, centring, 1.0);
        for (const std::string& split : splits) {
          SCOPED_TRACE(split + " scale " + std::to_string(scale));
          const auto found = sums_on<double>(MPI_COMM_WORLD, split, periodic, centring, scale);
          const auto in_single = sums_on<float>(MPI_COMM_WORLD, split, periodic, centring, 1.0);
          for (std::size_t n = 0; n < 3; ++n) {
            EXPECT_TRUE(same_bits(found[n], alone[n])) << n << ": " << found[n] << " and " << alone[n];
            EXPECT_TRUE(same_bits(in_single[n], alone_in_single[n])) << n;
          }
        }
      }
}

/// Against sums in extended precision.
TEST(FieldSums, AreAsExactAsTheirTermsAllow) {
  for (const double scale : {1.0, 1e-280, 1e290}) {
    long double sum_of_all = 0, sizes = 0, squares = 0;
    for (std::int64_t z = 0; z < 9; ++z)
      for (std::int64_t y = 0; y < 6; ++y)
        for (std::int64_t x = 0; x < 7; ++x) {
          const long double one = term({x, y, z}, scale);
          sum_of_all += one, sizes += std::abs(one), squares += one * one;
        }
    const Grid<3> grid(MPI_COMM_WORLD, {.cells = {7, 6, 9}, .process_grid = "slabs"});
    const Field<double, 3> u(grid, {.halo = 1});
    fill(grid, u, points_of(grid, Centring::cell), scale);
    const auto unit = static_cast<double>(sizes) * std::ldexp(1.0, -53);
    EXPECT_NEAR(sum(grid, u), static_cast<double>(sum_of_all), 2 * unit);
    if (scale == 1.0) {
      EXPECT_NEAR(norm(grid, u) / std::sqrt(static_cast<double>(squares)), 1, 1e-15);
    }
  }
}

/// Any layout in memory, uneven blocks, holes, several numbers a point: each point counts once, with its owner's value.
TEST(FieldSums, CountEachPointOnceInAnyArraysAndBlocks) {
  std::mt19937 random(26);
  for (int n = 0; n < (thorough() ? 60 : 12); ++n) {
    Case c = random_numbers_case(random);
    c.spec.quantities = {
        {"u", 8, ScalarType::real, static_cast<Centring>(pick(random, 0, 1 + c.grid.dims))},
        {"v", 16, ScalarType::real, static_cast<Centring>(pick(random, 0, 1 + c.grid.dims)), 1, {}, 8}};
    c.spec.widths.clear();
    c.slots = 1;
    SCOPED_TRACE(describe(c));
    const OpenedCase opened(c, Strategy("direct/p2p"));
    std::mt19937_64 values(static_cast<unsigned>(27 + world_rank()));
    opened.visit(0, [&](int, const Quantity& q, std::byte* at) {
      each_number(q, at, [&](auto& number) { number = static_cast<std::decay_t<decltype(number)>>(values() % 1000); });
    });
    const HeldPoints held(opened, true);
    const std::vector<std::byte> once = held.once(opened.contents(0));
    double expected[2]{};
    const std::byte* from = once.data();
    opened.visit_at(0, [&](int f, const Index& p, const Quantity& q, const std::byte*) {
      std::byte point[16];
      std::memcpy(point, from, static_cast<std::size_t>(q.element_bytes));
      from += q.element_bytes;
      if (!opened.plan.owned(f).contains(p)) return;
      each_number(q, point,
                  [&](auto number) { expected[f] += f == 0 ? double(number) : double(number) * double(number); });
    });
    MPI_Allreduce(MPI_IN_PLACE, expected, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    const auto field = [&](std::size_t q) {
      return FieldRef{c.spec.quantities[q], {}, {}, opened.fields.views()[q], {}};
    };
    EXPECT_EQ(sum(MPI_COMM_WORLD, opened.layout, field(0)), expected[0]);
    EXPECT_EQ(dot(MPI_COMM_WORLD, opened.layout, field(1), field(1)), expected[1]);
  }
}

TEST(FieldSums, OfInfiniteAndUndefinedTermsAreInfiniteAndUndefined) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const auto grid = torus();
  const Field<double, 2> u(grid, {.halo = 1});
  EXPECT_TRUE(same_bits(sum(grid, u), 0.0));
  const int last = world_size() - 1;
  if (world_rank() == last) u[0](1, 1) = infinite;
  EXPECT_EQ(sum(grid, u), infinite);
  EXPECT_EQ(norm(grid, u), infinite);
  if (world_rank() == 0) u[0](0, 1) = -infinite;
  EXPECT_TRUE(std::isnan(sum(grid, u)));
  if (world_rank() == 0) u[0](0, 1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(sum(grid, u)));
}

TEST(FieldSums, ThatOneRankCannotTakeAreRefusedOnAll) {
  const auto grid = torus();
  const Field<double, 2> u(grid, {.halo = 1, .name = "u"}), nodes(grid, {.halo = 1, .centring = Centring::node});
  const Field<std::complex<double>, 2> wave(grid, {.halo = 1, .name = "wave"});
  const Field<int, 2> count(grid, {.halo = 1, .name = "count"});
  EXPECT_PART(error_of([&] { sum(grid, count); }), "'count' has points that are not made of reals");
  EXPECT_PART(error_of([&] { sum(grid, wave); }), "'wave' has points of 2 numbers");
  EXPECT_PART(error_of([&] { dot(grid, u, nodes); }), "differ in centring");
  const int slot = world_rank() == 0 ? 1 : 0;
  const std::string error = error_of([&] { sum(grid, u, slot); });
  EXPECT_PART(error, "slot 1 of field 'u' does not exist");
  EXPECT_EQ(has_part(error, "rank 0: "), world_rank() != 0) << error;
  EXPECT_GT(norm(grid, wave), -1);
}

TEST(FieldSums, OfOtherGridsOnSomeRanksAreRefusedOnAll) {
  const int size = world_size(), last = size - 1;
  if (size == 1) GTEST_SKIP();
  const PerDimension<std::int64_t, 2> cells{12, 4 * size};
  const auto refuse_on_last = [&](const Grid<2>& grid, const Grid<2>& of_last) {
    const Grid<2>& mine = world_rank() == last ? of_last : grid;
    const Field<double, 2> u(mine, {});
    EXPECT_PART(error_of([&] { sum(mine, u); }), "fields of different grids");
    const Field<double, 2> v(grid, {});
    EXPECT_EQ(sum(grid, v), 0);
  };
  const Grid<2> grid(MPI_COMM_WORLD, {.cells = cells, .periodic = {true, false}, .process_grid = "slabs"});
  refuse_on_last(grid, {MPI_COMM_WORLD, {.cells = {12, 4 * size + 1}, .periodic = {true, false}}});
  refuse_on_last(grid, {MPI_COMM_WORLD, {.cells = cells, .periodic = {true, true}, .process_grid = "slabs"}});
  refuse_on_last(grid, grid.folded(Fold::node));
  const auto slabs = [&](int place) {  // the same blocks of other ranks
    return Grid<2>::of_boxes(MPI_COMM_WORLD, cells, {true, false}, {{0, 4 * place, 0}, {12, 4 * place + 4, 1}});
  };
  refuse_on_last(slabs(world_rank()), slabs(last - world_rank()));
  const Grid<2> plain(MPI_COMM_WORLD, {.cells = cells, .process_grid = "slabs"});
  refuse_on_last(plain, plain.joined({{{{0, 0, 0}, {12, 4 * size, 1}}}, {}}));
}

}  // namespace
}  // namespace haloscope
