// Sums of parts are exact, so the order of terms changes no bit; and they are close to the true sum.
#include "haloscope/extend/reproducible_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <random>
#include <vector>

namespace haloscope {
namespace {

std::array<double, 3> sums_of(const ReproducibleSum& sum, const std::vector<double>& terms) {
  std::array<double, 3> sums{};
  for (double term : terms) sum.add(term, sums.data());
  return sums;
}

/// Terms of both signs whose magnitudes differ by many orders.
std::vector<double> terms_of(std::mt19937& random, std::size_t count, double largest) {
  std::uniform_real_distribution<double> sign(-1, 1), decades(-20, 0);
  std::vector<double> terms(count);
  for (double& term : terms) term = sign(random) * largest * std::pow(10.0, decades(random));
  return terms;
}

TEST(ReproducibleSum, TheOrderOfTermsAndHowTheyAreDividedChangeNoBit) {
  std::mt19937 random(5);
  for (double largest : {1e-200, 3.7e-9, 1.0, 12.0, 8.5e150}) {
    std::vector<double> terms = terms_of(random, 5000, largest);
    const ReproducibleSum sum(largest, 5000);
    const auto expected = sums_of(sum, terms);
    std::shuffle(terms.begin(), terms.end(), random);
    EXPECT_EQ(sums_of(sum, terms), expected);
    for (std::size_t cut : {1u, 777u, 4999u}) {
      const auto first = sums_of(sum, {terms.begin(), terms.begin() + cut});
      const auto rest = sums_of(sum, {terms.begin() + cut, terms.end()});
      for (int i = 0; i < 3; ++i) EXPECT_EQ(first[i] + rest[i], expected[i]);
    }
  }
}

TEST(ReproducibleSum, IsAsCloseToTheTrueSumAsDoublesGet) {
  std::mt19937 random(6);
  for (double loose : {1.0, 1e3, 1e6}) {  // a bound that is larger than any term
    const std::vector<double> terms = terms_of(random, 100000, 1.0);
    const ReproducibleSum sum(loose, 100000);
    long double exact = 0;
    for (double term : terms) exact += term;
    EXPECT_NEAR(ReproducibleSum::total(sums_of(sum, terms).data()), static_cast<double>(exact), 1e-12);
  }
}

TEST(ReproducibleSum, TermsBeyondTheBoundAreStillAdded) {
  const ReproducibleSum sum(1.0, 100);
  EXPECT_NEAR(ReproducibleSum::total(sums_of(sum, {3.25, -1.5, 10.0}).data()), 11.75, 1e-12);
}

}  // namespace
}  // namespace haloscope
