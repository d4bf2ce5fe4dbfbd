// Apps: what a kernel computes: coefficients, initial data, exact solutions. Names and legality live in core/choice.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "haloscope/apps/poisson.hpp"
#include "haloscope/choice.hpp"

namespace haloscope {

/// Numbers a user may set; what an app does not know is refused.
struct AppParameters {
  /// random, gaussian (advection3d), id (global cell numbers), zero (poisson2d: inside the border)
  std::string initial = "random";
  std::uint64_t seed = 1;
  std::array<double, 3> velocity{1.0, 0.5, 0.25};  ///< advection3d: c
  double nu = 0;                                   ///< advection3d: time step / grid spacing; 0: the largest stable one
  double sigma = 0.1;                              ///< Gaussian width in units of the domain
  int function = 1;                                ///< poisson2d: 1 (f = 0) or 2 (f = 2 pi^2 sin(pi x) sin(pi y))
  std::vector<double> weights;  ///< laplace: 5 (north, west, centre, east, south) or 7; empty: defaults
};

/// Largest stable time step over grid spacing, 1 / max|c_d| (White & Dongarra 2011, section II, condition corrected).
double largest_stable_nu(const std::array<double, 3>& velocity);

/// The three Lax-Wendroff weights for offsets -1, 0, +1 at Courant number p; the wave moves towards + for p > 0.
std::array<double, 3> lax_wendroff(double p);

/// Coefficients in the order the kernel form expects.
/// @throws UsageError for an unstable step (naming the largest stable nu) or a wrong number of weights.
std::vector<double> kernel_weights(const Choice& choice, const AppParameters& parameters);

/// Name of the kernel form, as find_kernel() knows it.
std::string kernel_form(const Choice& choice);

/// Value at a global cell at time 0 for initial data `random` and `id`; also defined outside the grid, where it serves
/// as fixed boundary value.
double initial_value(const Choice& choice, const AppParameters& parameters, const Index& cell);

/// The problem that a legal choice of poisson2d solves.
PoissonProblem poisson_problem(const Choice& choice, const AppParameters& parameters);

/// True if exact_value() is known: advection3d from a Gaussian on a periodic grid.
bool has_exact_solution(const Choice& choice, const AppParameters& parameters);

/// The exact solution on a box of global cells after `steps` steps: the initial wave moved by c t. Steps 0: the initial
/// Gaussian. Tabulated per dimension, so a whole block costs no more than a product per cell.
class ExactSolution {
 public:
  ExactSolution(const Choice& choice, const AppParameters& parameters, const Box& cells, std::int64_t steps);
  double operator()(const Index& cell) const {
    double value = 1;
    for (int d = 0; d < dims_; ++d) value *= profile_[d][static_cast<std::size_t>(cell[d] - low_[d])];
    return value;
  }

 private:
  int dims_;
  Index low_;
  std::array<std::vector<double>, 3> profile_;
};

}  // namespace haloscope
