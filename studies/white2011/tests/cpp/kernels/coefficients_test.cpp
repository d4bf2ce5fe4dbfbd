// The 27 coefficients against their exact values (White & Dongarra 2011, section II).
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "haloscope/apps/advection3d/weights.hpp"
#include "haloscope/extend/candidate.hpp"
#include "tests/published.hpp"

namespace haloscope {
namespace {

struct ExactCoefficients {
  std::vector<double> courant;
  std::map<std::size_t, double> value;  // by their place among the 27
};

std::map<std::string, ExactCoefficients> exact_coefficients() {
  std::map<std::string, ExactCoefficients> cases;
  for (const Row& row : published("white2011/data/coefficient_vectors.csv")) {
    ExactCoefficients& exact = cases[row.at("case")];
    exact.courant.clear();
    for (const char* column : {"cx_nu", "cy_nu", "cz_nu"}) exact.courant.push_back(std::stod(row.at(column)));
    const int place = (number(row, "k") + 1) * 9 + (number(row, "j") + 1) * 3 + number(row, "i") + 1;
    exact.value[static_cast<std::size_t>(place)] = std::stod(row.at("value"));
  }
  return cases;
}

std::vector<double> coefficients_of(const std::vector<double>& velocity, double nu = 1) {
  Choice c;
  c.form = "dense";
  c.grid = {3, {8, 8, 8}, {true, true, true}};
  c.set = {{"velocity", velocity}, {"nu", nu}};
  return advection_weights(problem_of(c));
}

/// An entry of the printed table: the velocities of the dimensions with an offset, as many powers of nu, p + 1 for an
/// offset of -1 and p - 1 for +1, p^2 - 1 for the other dimensions, and a factor over 8. Source: section II, table I.
double printed_entry(const std::vector<double>& velocity, double nu, const std::array<int, 3>& offset) {
  constexpr std::array<double, 4> factor{-8, 4, -2, 1};  // by the number of dimensions with an offset
  double value = 1;
  std::size_t offsets = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    const double p = velocity[d] * nu;
    value *= offset[d] == 0 ? p * p - 1 : velocity[d] * nu * (p - offset[d]);
    offsets += offset[d] != 0;
  }
  return factor[offsets] * value / 8;
}

/// The same as printed: the entry of the lower corner has the velocity along y twice and lacks the one along z.
double printed_lower_corner(const std::vector<double>& velocity, double nu) {
  return printed_entry(velocity, nu, {-1, -1, -1}) / velocity[2] * velocity[1];
}

TEST(Coefficients, W1_EqualTheExactValuesToOneUlp) {
  const auto cases = exact_coefficients();
  ASSERT_EQ(cases.size(), 3u);
  for (const auto& [name, exact] : cases) {
    const auto found = coefficients_of(exact.courant);
    ASSERT_EQ(exact.value.size(), 27u) << name;
    for (const auto& [place, value] : exact.value)
      EXPECT_LE(std::abs(found.at(place) - value), std::abs(std::nextafter(value, 2 * value + 1) - value))
          << name << " " << place;
  }
}

TEST(Coefficients, W1_ReproduceThe26GoodEntriesOfThePrintedTable) {
  const std::vector<double> velocity{0.9, -0.7, 0.3};
  constexpr double nu = 0.8;
  const auto found = coefficients_of(velocity, nu);
  int equal = 0;
  for (int k = -1; k <= 1; ++k)
    for (int j = -1; j <= 1; ++j)
      for (int i = -1; i <= 1; ++i) {
        const auto place = static_cast<std::size_t>((k + 1) * 9 + (j + 1) * 3 + i + 1);
        const double printed = place == 0 ? printed_lower_corner(velocity, nu) : printed_entry(velocity, nu, {i, j, k});
        equal += std::abs(found.at(place) - printed) <= 1e-15 * std::abs(printed);
        if (place > 0) {
          EXPECT_NEAR(found.at(place), printed, 1e-15 * std::abs(printed)) << i << " " << j << " " << k;
        }
      }
  EXPECT_EQ(equal, 26);
}

TEST(Coefficients, W1_TheMisprintOfTheTableVanishesOnlyForEqualVelocities) {
  const double right = coefficients_of({0.9, -0.7, 0.3}, 0.8).front();
  EXPECT_GT(std::abs(printed_lower_corner({0.9, -0.7, 0.3}, 0.8) - right), std::abs(right));
  const double same = coefficients_of({0.9, 0.3, 0.3}, 0.8).front();
  EXPECT_NEAR(printed_lower_corner({0.9, 0.3, 0.3}, 0.8), same, 1e-15 * std::abs(same));
}

}  // namespace
}  // namespace haloscope
