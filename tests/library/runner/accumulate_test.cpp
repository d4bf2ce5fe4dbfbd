// accumulate() is the transpose of exchange(), exactly, and computes the same bits by every strategy.
#include <gtest/gtest.h>
#include <mpi.h>

#include <complex>
#include <optional>

#include "allocation_counter.hpp"
#include "haloscope/haloscope.hpp"
#include "opened_case.hpp"
#include "tori.hpp"

namespace haloscope {
namespace {

using namespace test;

/// Integers in all points: any, which wrap around, in fields of integers; small ones in fields of reals.
std::vector<std::byte> random_integers(const OpenedCase& opened, std::mt19937_64& random) {
  std::vector<std::byte> all;
  opened.visit(0, [&](int, const Quantity& q, std::byte*) {
    std::byte point[24];
    each_number(q, point, [&](auto& number) {
      using T = std::decay_t<decltype(number)>;
      number =
          std::is_integral_v<T> ? static_cast<T>(random()) : static_cast<T>(static_cast<int>(random() % 201) - 100);
    });
    all.insert(all.end(), point, point + q.element_bytes);
  });
  return all;
}

std::uint64_t as_integer(std::uint64_t number) { return number; }
std::uint64_t as_integer(std::uint32_t number) { return number; }
std::uint64_t as_integer(std::uint16_t number) { return number; }
std::uint64_t as_integer(std::uint8_t number) { return number; }
std::uint64_t as_integer(double number) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(number)); }
std::uint64_t as_integer(float number) { return as_integer(static_cast<double>(number)); }

/// The inner product of each field over all points of all ranks, modulo the number at which its integers wrap around.
std::vector<std::uint64_t> products(const OpenedCase& opened, const std::vector<std::byte>& x,
                                    const std::vector<std::byte>& y) {
  std::vector<std::uint64_t> sums(opened.plan.spec.quantities.size());
  std::vector<std::byte> one = x, other = y;
  std::size_t at = 0;
  opened.visit(0, [&](int f, const Quantity& q, std::byte*) {
    std::vector<std::uint64_t> factors;
    each_number(q, &one[at], [&](auto number) { factors.push_back(as_integer(number)); });
    std::size_t i = 0;
    each_number(q, &other[at], [&](auto number) { sums[f] += factors[i++] * as_integer(number); });
    at += static_cast<std::size_t>(q.element_bytes);
  });
  MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(sums.size()), MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  for (std::size_t f = 0; f < sums.size(); ++f) {
    const Quantity& q = opened.plan.spec.quantities[f];
    const int bits = 8 * (q.number_bytes == 0 ? q.element_bytes : q.number_bytes);
    if (q.type == ScalarType::integer && bits < 64) sums[f] &= (std::uint64_t{1} << bits) - 1;
  }
  return sums;
}

/// The number of random cases, fewer where ranks share cores.
int cases() { return thorough() ? 12 : world_size() <= 2 ? 3 : 1; }

/// Let P copy the values of the grid's points to all their holders. Then accumulate() is P P^T E^T: for values x that
/// are equal at all holders, x = P x', the product of E x = E P x' and y is the product of x' and P^T E^T y, which is
/// any holder's result.
void expect_transpose(const OpenedCase& opened, Exchange& halo, int slot, std::mt19937_64& random) {
  const HeldPoints held(opened);
  const std::vector<std::byte> x = held.alike(random_integers(opened, random)), y = random_integers(opened, random);
  opened.set_contents(slot, x);
  halo.exchange(slot);
  const std::vector<std::byte> filled = opened.contents(slot);
  opened.set_contents(slot, y);
  halo.accumulate(slot);
  const std::vector<std::byte> sums = opened.contents(slot);
  EXPECT_EQ(products(opened, filled, y), products(opened, held.once(x), sums));
  EXPECT_EQ(sums, held.alike(sums));
  EXPECT_TRUE(opened.fields.canaries_alive());
}

TEST(Accumulate, IsTheTransposeOfTheExchangeByEveryStrategy) {
  std::mt19937 random(20);
  std::mt19937_64 values(static_cast<unsigned>(21 + world_rank()));
  std::size_t tried = 0;
  for (int n = 0; n < cases(); ++n) {
    const Case c = random_numbers_case(random);
    for (const Strategy& strategy : strategies_for(c)) {
      if (strategy.corners && !c.spec.corners)
        continue;  // it fills more than is requested, and transposes what is requested
      SCOPED_TRACE(to_string(strategy) + " " + describe(c));
      std::optional<OpenedCase> opened = open(c, strategy);
      if (!opened) continue;
      ++tried;
      for (int turn = 0; turn < 2 * c.slots; ++turn) expect_transpose(*opened, *opened->halo, turn % c.slots, values);
      ASSERT_FALSE(HasFailure());
    }
  }
  EXPECT_GT(tried, 20u);
}

TEST(Accumulate, GivesTheSameBitsByEveryStrategy) {
  std::mt19937 random(22);
  for (int n = 0; n < 2 * cases(); ++n) {
    Case c = random_numbers_case(random);
    c.slots = 1;
    std::vector<std::byte> first;
    for (const Strategy& strategy : strategies_for(c)) {
      SCOPED_TRACE(to_string(strategy) + " " + describe(c));
      std::optional<OpenedCase> opened = open(c, strategy);
      if (!opened) continue;
      std::mt19937_64 values(static_cast<unsigned>(23 + world_rank()));
      opened->visit(0, [&](int, const Quantity& q, std::byte* at) { set_fractions(q, at, values); });
      opened->halo->accumulate();
      const std::vector<std::byte> found = opened->contents(0);
      if (first.empty()) first = found;
      ASSERT_EQ(found, first);
      ASSERT_EQ(found, HeldPoints(*opened).alike(found));
    }
  }
}

TEST(Accumulate, CountsHowManyHalosHoldACellAndClearsThem) {
  const auto grid = torus();
  const Index n = grid.cells();
  Field<std::complex<float>, 2> u{grid, {.halo = 1}};
  auto halo = make_exchange(grid, {u}, "ordered/p2p");
  for (int turn = 0; turn < 2; ++turn) {
    each_cell(grid, 1, [&](auto i, auto j) { u[0](i, j) = {1, -2}; });
    halo.accumulate();
    for (std::int64_t j = -1; j <= n[1]; ++j)
      for (std::int64_t i = -1; i <= n[0]; ++i) {
        const int copies = (1 + (i == 0) + (i == n[0] - 1)) * (1 + (j == 0) + (j == n[1] - 1));
        const float times = is_own(grid, i, j) ? static_cast<float>(copies) : 0.0f;
        ASSERT_EQ(u[0](i, j), std::complex<float>(times, -2 * times)) << i << "," << j;
      }
  }
}

TEST(Accumulate, AddsUpWhatAllHoldersOfANodeHaveInHalosOfNoLayersToo) {
  const auto grid = torus();
  const Index n = grid.cells();
  Field<double, 2> u{grid, {.halo = 0, .centring = Centring::node}};
  for (const char* strategy : {"ordered/p2p", "direct/persistent"}) {
    auto halo = make_exchange(grid, {u}, strategy);
    for (std::int64_t j = 0; j <= n[1]; ++j)
      for (std::int64_t i = 0; i <= n[0]; ++i) u[0](i, j) = 1;
    halo.accumulate();
    for (std::int64_t j = 0; j <= n[1]; ++j)
      for (std::int64_t i = 0; i <= n[0]; ++i) {
        const int holders = (1 + (i == 0 || i == n[0])) * (1 + (j == 0 || j == n[1]));
        ASSERT_EQ(u[0](i, j), holders) << strategy << " at " << i << "," << j;
      }
  }
}

TEST(Accumulate, MayBeStartedAndFinishedAndFollowsArraysThatMove) {
  const auto grid = torus();
  const Index n = grid.cells();
  const std::int64_t row = n[0] + 2;
  std::vector<double> one(static_cast<std::size_t>(row * (n[1] + 2)), 1.0), two = one;
  auto halo = make_exchange(grid, {view<double, 2>(grid, {one.data() + row + 1}, row, 0, 1)}, "direct/p2p");
  halo.accumulate();
  halo.rebind(std::vector<void*>{two.data() + row + 1});
  halo.start_accumulate();
  while (!halo.progress()) {
  }
  EXPECT_EQ(one, two);
  halo.exchange();
  EXPECT_EQ(two[0], 4);  // a corner of the neighbour's, which four ranks hold as their corner
}

TEST(Accumulate, LaterCallsAllocateNothing) {
  const auto grid = torus();
  Field<double, 2> u{grid, {.halo = 2}};
  for (const char* strategy : {"ordered/p2p", "direct:merged/persistent", "ordered/shared:packed"}) {
    auto halo = make_exchange(grid, {u}, strategy);
    halo.accumulate();
    const std::int64_t before = allocations();
    for (int turn = 0; turn < 3; ++turn) halo.accumulate();
    EXPECT_EQ(allocations(), before) << strategy;
  }
}

TEST(Accumulate, PointsThatAreNoNumbersAreRefusedByName) {
  struct Cell {
    double density;
    int material;
  };
  const auto grid = torus();
  Field<Cell, 2> cells{grid, {.halo = 1, .name = "cells"}};
  Field<bool, 2> flags{grid, {.halo = 1, .name = "flags"}};
  Field<std::array<int, 3>, 2> counts{grid, {.halo = 1}};
  for (const auto& [field, name] : {std::pair{FieldRef(cells), "'cells'"}, std::pair{FieldRef(flags), "'flags'"}}) {
    auto halo = make_exchange(grid, {counts, field}, "ordered/p2p");
    const std::string error = error_of([&] { halo.accumulate(); });
    EXPECT_PART(error, name);
    EXPECT_PART(error, "number_bytes");
    halo.exchange();  // still works
  }
  make_exchange(grid, {counts}, "ordered/p2p").accumulate();
}

TEST(Accumulate, WhileAnythingIsInFlightNothingElseStarts) {
  if (world_size() == 1) return;
  const auto grid = torus();
  Field<double, 2> u{grid, {.halo = 1}};
  auto halo = make_exchange(grid, {u}, "ordered/p2p");
  halo.accumulate();
  MPI_Barrier(MPI_COMM_WORLD);
  if (grid.rank() == 0) {  // the others have not even started
    halo.start_accumulate();
    EXPECT_PART(error_of([&] { halo.start(); }), "the accumulation of slot 0");
    EXPECT_PART(error_of([&] { halo.start_accumulate(); }), "finish()");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (grid.rank() != 0) halo.start_accumulate();
  halo.finish();
  EXPECT_PART(error_of([&] { halo.start_accumulate(1); }), "slot 1");
}

}  // namespace
}  // namespace haloscope
