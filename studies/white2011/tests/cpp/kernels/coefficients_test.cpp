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

/// With a time step as long as the grid spacing: the velocity is the Courant number.
std::vector<double> coefficients_of(const std::vector<double>& courant) {
  Choice c;
  c.form = "dense";
  c.grid = {3, {8, 8, 8}, {true, true, true}};
  c.set = {{"velocity", courant}, {"nu", 1.0}};
  return advection_weights(problem_of(c));
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

}  // namespace
}  // namespace haloscope
