// The 27 coefficients against their exact values, and properties that must hold for them (White & Dongarra 2011,
// section II).
#include "haloscope/apps/advection3d/weights.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "haloscope/extend/candidate.hpp"

namespace haloscope {
namespace {

struct Vector {
  std::array<double, 3> courant{};
  std::map<std::array<int, 3>, double> value;  // by (i, j, k)
};

/// Exact coefficients of the shipped table, by case name.
std::map<std::string, Vector> exact_vectors() {
  std::ifstream file(HALOSCOPE_DATA "/white2011/coefficient_vectors.csv");
  std::map<std::string, Vector> cases;
  std::string line, name, word;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream row(line);
    std::getline(row, name, ',');
    std::vector<std::string> words;
    while (std::getline(row, word, ',')) words.push_back(word);
    Vector& v = cases[name];
    for (int d = 0; d < 3; ++d) v.courant[d] = std::stod(words[d]);
    v.value[{std::stoi(words[3]), std::stoi(words[4]), std::stoi(words[5])}] = std::stod(words[7]);
  }
  return cases;
}

/// The scheme with a time step as long as the grid spacing: the velocity is the Courant number.
Choice advection(const std::array<double, 3>& courant) {
  Choice c;
  c.form = "dense";
  c.grid = {3, {8, 8, 8}, {true, true, true}};
  c.set = {{"velocity", std::vector<double>(courant.begin(), courant.end())}, {"nu", 1.0}};
  return c;
}

std::vector<double> dense_weights(const std::array<double, 3>& courant) {
  return advection_weights(problem_of(advection(courant)));
}

double at(const std::vector<double>& w, int i, int j, int k) { return w[(k + 1) * 9 + (j + 1) * 3 + (i + 1)]; }

TEST(Coefficients, W1_EqualTheExactValuesToOneUlp) {
  const auto cases = exact_vectors();
  ASSERT_EQ(cases.size(), 3u);
  for (const auto& [name, v] : cases) {
    const auto w = dense_weights(v.courant);
    ASSERT_EQ(v.value.size(), 27u) << name;
    for (const auto& [ijk, exact] : v.value) {
      const double got = at(w, ijk[0], ijk[1], ijk[2]);
      EXPECT_LE(std::abs(got - exact), std::abs(std::nextafter(exact, 2 * exact + 1) - exact))
          << name << " (" << ijk[0] << "," << ijk[1] << "," << ijk[2] << ")";
    }
  }
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
  EXPECT_NE(reason.find("nu = 1 is unstable"), std::string::npos) << reason;
  EXPECT_NE(reason.find("--set nu=0.990099"), std::string::npos) << reason;
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
  EXPECT_NE(illegal(c).find("velocity of 3 numbers, not 2"), std::string::npos) << illegal(c);
}

TEST(Coefficients, StarWeightsMustFitTheStencil) {
  Choice c;
  c.app = "laplace2d";
  c.grid = {2, {8, 8, 1}, {true, true, false}};
  c.set["weights"] = std::vector<double>{1, 2, 3};
  EXPECT_NE(illegal(c).find("takes 5 weights, not 3"), std::string::npos) << illegal(c);
  const std::vector<double> weights{0.1, 0.2, 0.3, 0.2, 0.1};
  c.set["weights"] = weights;
  EXPECT_EQ(illegal(c), "");
  EXPECT_EQ(problem_of(c).parameters.reals("weights"), weights);
}

}  // namespace
}  // namespace haloscope
