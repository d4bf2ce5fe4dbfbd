// Sums whose bits do not depend on the order of their terms. Sweeps need them for sums that later sweeps use: the
// order of additions differs between numbers of threads, ranks and between schedules.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <cmath>

#include "haloscope/extend/both_sides.hpp"

namespace haloscope {

/// Splits each term into parts, multiples of fixed powers of two, whose sums are exact (Demmel and Nguyen 2013,
/// Algorithms 5 and 6, with a bound that is passed in advance). A reduction of such a sum has `parts` numbers.
struct ReproducibleSum {
  static constexpr int parts = 3;
  double split[parts];  ///< adding and subtracting it rounds to the part's multiple

  /// @param largest  bound on the magnitude of terms. If a term exceeds it, the sum is as exact as a plain one, but
  ///                depends on the order
  /// @param terms    number of terms over all threads and ranks, at most 2^40
  ReproducibleSum(double largest, double terms) {
    int bits = 0, count = 0;
    std::frexp(largest, &bits);
    std::frexp(terms, &count);
    for (double& one : split) {
      one = std::ldexp(1.5, bits + count + 2);
      bits += count + 2 - 53;  // the rest is at most half a unit in the last place of `one`
    }
  }

  /// @param sums  `parts` numbers, zeros before the first term
  HALOSCOPE_ON_BOTH_SIDES void add(double term, double* sums) const {
    for (int i = 0; i < parts; ++i) {
      const double part = (term + split[i]) - split[i];
      sums[i] += part;
      term -= part;
    }
  }

  /// Returns the sum of all terms, from the sums of the parts.
  static double total(const double* sums) { return sums[0] + (sums[1] + sums[2]); }
};

}  // namespace haloscope
