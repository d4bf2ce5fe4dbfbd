#include "haloscope/apps/advection3d/weights.hpp"

#include <algorithm>
#include <cmath>

namespace haloscope {

double largest_stable_nu(const std::vector<double>& velocity) {
  double fastest = 0;
  for (double c : velocity) fastest = std::max(fastest, std::abs(c));
  return fastest > 0 ? 1 / fastest : 1;
}

std::array<double, 3> lax_wendroff(double p) { return {p * (1 + p) / 2, 1 - p * p, p * (p - 1) / 2}; }

double step_over_spacing(const Parameters& parameters) {
  const double nu = parameters.real("nu");
  return nu > 0 ? nu : largest_stable_nu(parameters.reals("velocity"));
}

std::vector<double> advection_weights(const Problem& problem) {
  const std::vector<double>& velocity = problem.parameters.reals("velocity");
  std::array<std::array<double, 3>, 3> w;
  for (std::size_t d = 0; d < 3; ++d) w[d] = lax_wendroff(velocity[d] * step_over_spacing(problem.parameters));
  std::vector<double> weights;
  if (problem.form == "separable") {
    for (const auto& one : w) weights.insert(weights.end(), one.begin(), one.end());
    return weights;
  }
  for (int k = 0; k < 3; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i)
        weights.push_back(static_cast<double>(static_cast<long double>(w[0][i]) * w[1][j] * w[2][k]));
  return weights;
}

}  // namespace haloscope
