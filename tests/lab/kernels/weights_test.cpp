// Properties that must hold for the 27 coefficients (White & Dongarra 2011, section II).
#include "haloscope/apps/advection3d/weights.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "haloscope/extend/candidate.hpp"
#include "texts.hpp"

namespace haloscope {
namespace {

/// The scheme with a time step as long as the grid spacing: the velocity is the Courant number.
Choice advection(const std::array<double, 3>& courant) {
  Choice c{.grid = {3, {8, 8, 8}, {true, true, true}},
           .form = "dense",
           .set = {{"velocity", std::vector<double>(courant.begin(), courant.end())}, {"nu", 1.0}}};
  return c;
}

std::vector<double> dense_weights(const std::array<double, 3>& courant) {
  return advection_weights(problem_of(advection(courant)));
}

TEST(Coefficients, W1_SumToOneAndMatchTheMomentsUpToOrderTwo) {
  for (double p : {0.3, -0.7, 1.0, 0.0, 0.99}) {
    const auto w = lax_wendroff(p);
    for (int m = 0; m <= 2; ++m) {
      double moment = 0;
      for (int i = -1; i <= 1; ++i) moment += w[i + 1] * std::pow(i, m);
      EXPECT_NEAR(moment, std::pow(-p, m), 1e-15) << "p " << p << " moment " << m;
    }
  }
  double sum = 0;
  for (double a : dense_weights({0.5, 0.25, -0.75})) sum += a;
  EXPECT_NEAR(sum, 1, 1e-15);
}

TEST(Coefficients, W6_StableUpToOneOverTheFastestComponent) {
  EXPECT_DOUBLE_EQ(largest_stable_nu({2, 1, 1}), 0.5);
  EXPECT_DOUBLE_EQ(largest_stable_nu({0.5, 0.25, -0.25}), 2);
  const std::string reason = illegal(advection({1.01, 0, 0}));
  EXPECT_PART(reason, "nu = 1 is unstable");
  EXPECT_PART(reason, "--set nu=0.990099");
  EXPECT_EQ(illegal(advection({1, -1, 1})), "");
}

TEST(Coefficients, W6_WithoutATimeStepTheLargestStableOneIsTaken) {
  Choice c = advection({2, 1, 1});
  EXPECT_NE(illegal(c), "");
  c.set.erase("nu");
  EXPECT_EQ(illegal(c), "");
  EXPECT_DOUBLE_EQ(step_over_spacing(problem_of(c).parameters), 0.5);
}

TEST(Coefficients, AVelocityHasThreeNumbers) {
  Choice c = advection({1, 1, 1});
  c.set["velocity"] = std::vector<double>{1, 1};
  EXPECT_PART(illegal(c), "velocity of 3 numbers, not 2");
}

TEST(Coefficients, StarWeightsMustFitTheStencil) {
  Choice c{.app = "laplace2d", .grid = {2, {8, 8, 1}, {true, true, false}}};
  c.set["weights"] = std::vector<double>{1, 2, 3};
  EXPECT_PART(illegal(c), "takes 5 weights, not 3");
  const std::vector<double> weights{0.1, 0.2, 0.3, 0.2, 0.1};
  c.set["weights"] = weights;
  EXPECT_EQ(illegal(c), "");
  EXPECT_EQ(problem_of(c).parameters.reals("weights"), weights);
}

}  // namespace
}  // namespace haloscope
