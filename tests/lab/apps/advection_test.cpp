// The advection app against known properties of the scheme (White & Dongarra 2011, sections 1-3 of the digest).
#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>

#include "each_point.hpp"
#include "haloscope/error.hpp"
#include "haloscope/rank/measure/run.hpp"
#include "texts.hpp"
#include "world.hpp"

namespace haloscope {
namespace {

Choice cube(std::int64_t n, const char* form = "dense") {
  Choice c{.app = "advection3d", .grid = {3, {n, n, n}, {true, true, true}}, .form = form};
  MPI_Comm_size(MPI_COMM_WORLD, &c.ranks);
  return c;
}

Choice moving(Choice c, std::vector<double> velocity, double nu, const char* initial = "gaussian") {
  c.set["velocity"] = std::move(velocity);
  c.set["nu"] = nu;
  c.set["initial"] = initial;
  return c;
}

double l2_error(std::int64_t n, const char* form) {
  haloscope::Run s(MPI_COMM_WORLD, moving(cube(n, form), {1, 0.5, 0.25}, 0.8));
  s.initialise();
  s.advance(static_cast<std::int64_t>(std::llround(0.5 * n / 0.8)));
  return s.error_norms().l2;
}

TEST(Advection, W5_ConvergesWithSecondOrder) {
  for (const char* form : {"dense", "separable"}) {
    const double e40 = l2_error(40, form), e80 = l2_error(80, form);
    EXPECT_NEAR(std::log2(e40 / e80), 1.97, 0.05) << form << ": errors " << e40 << ", " << e80;
    if (test::world_size() > 2) continue;  // the finest grid takes seconds
    const double e160 = l2_error(160, form);
    EXPECT_NEAR(std::log2(e80 / e160), 2.00, 0.05) << form << ": errors " << e80 << ", " << e160;
  }
}

TEST(Advection, W4_ExactAtCourantNumberOne) {
  haloscope::Run s(MPI_COMM_WORLD, moving(cube(20), {1, 1, 1}, 1));
  s.initialise();
  s.advance(97);  // the wave stands 3 cells before its start: a sweep that does nothing would miss it
  EXPECT_LT(s.error_norms().max, 1e-13);
  EXPECT_LT(s.error_norms().l2, 1e-13);
  s.advance(3);  // 100 steps are five periods
  EXPECT_LT(s.error_norms().max, 1e-13);
  EXPECT_LT(s.error_norms().l2, 1e-13);
}

/// Random data after `steps` steps equals the initial data moved by (shift) cells per step, bit for bit.
void expect_shift(const std::vector<double>& courant, const char* form) {
  const std::int64_t n = 12, steps = 5;
  const Choice c = moving(cube(n, form), courant, 1, "random");
  haloscope::Run s(MPI_COMM_WORLD, c);
  s.initialise();
  s.advance(steps);
  const Box owned = s.layout().owned(s.plan().rank);
  test::each_point(owned, [&](const Index& p) {
    Index from = p;
    for (int d = 0; d < 3; ++d) {
      from[d] -= static_cast<std::int64_t>(courant[d]) * steps;
      from[d] = ((from[d] % n) + n) % n;
    }
    ASSERT_EQ(s.value({p[0] - owned.lo[0], p[1] - owned.lo[1], p[2] - owned.lo[2]}), random_value(1, 0, c.grid, from));
  });
}

TEST(Advection, W3_ShiftsExactlyWhenCourantNumbersAreWhole) {
  for (const char* form : {"dense", "separable"}) {
    expect_shift({1, 1, 1}, form);
    expect_shift({1, 0, 0}, form);
    expect_shift({-1, 1, 0}, form);
    expect_shift({0, 0, -1}, form);
  }
}

TEST(Advection, W2_PositiveVelocityMovesTheMaximumTowardsPlus) {
  haloscope::Run s(MPI_COMM_WORLD, moving(cube(24), {1, 0, 0}, 0.5));
  s.initialise();
  s.advance(12);  // six cells
  const Box owned = s.layout().owned(s.plan().rank);
  struct {
    double value;
    int x;
  } best{-1, 0}, all;
  test::each_point({{0, 0, 0}, s.plan().cells}, [&](const Index& p) {
    if (s.value(p) > best.value) best = {s.value(p), static_cast<int>(owned.lo[0] + p[0])};
  });
  MPI_Allreduce(&best, &all, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  EXPECT_NEAR(all.x, 12 + 6, 1);
}

TEST(Advection, W6_RefusesAnUnstableStep) {
  EXPECT_PART(test::error_of([&] { haloscope::Run s(MPI_COMM_WORLD, moving(cube(16), {2, 1, 1}, 1)); }), "0.5");
  haloscope::Run stable(MPI_COMM_WORLD, moving(cube(16), {2, 1, 1}, 0.5));
  haloscope::Run slow(MPI_COMM_WORLD, moving(cube(16), {0.5, 0.25, 0.25}, 2));
}

TEST(Advection, DenseAndSeparableAgreeToRoundOff) {
  const auto wave = [](const char* form) { return moving(cube(18, form), {1, 0.5, 0.25}, 0.9); };
  haloscope::Run dense(MPI_COMM_WORLD, wave("dense")), separable(MPI_COMM_WORLD, wave("separable"));
  dense.initialise();
  separable.initialise();
  dense.advance(20);
  separable.advance(20);
  test::each_point({{0, 0, 0}, dense.plan().cells},
                   [&](const Index& p) { ASSERT_NEAR(dense.value(p), separable.value(p), 20 * 4e-16); });
}

}  // namespace
}  // namespace haloscope
