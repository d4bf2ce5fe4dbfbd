// The normal distribution, and percentiles of numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace haloscope::model {

/// The number that exceeds a normal variable with a probability between 0 and 1.
inline double normal_quantile(double probability) {
  double x = 0;
  for (int i = 0; i < 100; ++i) {  // Newton's method: the distribution is convex below 0, concave above
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
    const double away = (std::erfc(-x / std::sqrt(2.0)) / 2 - probability) / density;
    x -= away;
    if (std::abs(away) <= 1e-16 * std::abs(x)) break;
  }
  return x;
}

/// The value below which a part (0 to 1) of the numbers lies, linear between two of them. @param numbers  not empty.
inline double quantile(std::vector<double> numbers, double part) {
  std::sort(numbers.begin(), numbers.end());
  const double place = part * static_cast<double>(numbers.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, numbers.size() - 1);
  return numbers[low] + (numbers[high] - numbers[low]) * (place - static_cast<double>(low));
}

}  // namespace haloscope::model
