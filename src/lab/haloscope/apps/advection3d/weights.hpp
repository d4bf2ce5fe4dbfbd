// The Lax-Wendroff scheme of advection3d (White & Dongarra 2011, section II).
#pragma once

#include <array>
#include <vector>

#include "haloscope/sweep.hpp"

namespace haloscope {

/// Largest stable time step over grid spacing, 1 / max|c_d| (White & Dongarra 2011, section II, condition corrected).
double largest_stable_nu(const std::vector<double>& velocity);

/// The three Lax-Wendroff weights for offsets -1, 0, +1 at Courant number p; the wave moves towards + for p > 0.
std::array<double, 3> lax_wendroff(double p);

/// Time step over grid spacing: parameter nu, or the largest stable one where it is 0.
double step_over_spacing(const Parameters& parameters);

/// Coefficients in the order that the problem's kernel form expects.
std::vector<double> advection_weights(const Problem& problem);

}  // namespace haloscope
