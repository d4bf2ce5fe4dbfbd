// Initial states of hydro3d, and known solutions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "haloscope/extend/app.hpp"
#include "haloscope/sweep.hpp"

namespace haloscope::hydro {

/// Returns the words of parameter `initial`.
const std::vector<std::string>& initial_states();

/// Returns the extents of a cell.
std::array<double, 3> cell_size(const Problem& problem);

/// Returns the value of a quantity at time 0.
InitialValue initial_value(const Problem& problem, int quantity);

/// Returns the density of a cell at a time in seconds; null if no solution is known. Sod's tube: Toro 2009, chapter 4.
/// Sedov's blast: Landau & Lifshitz, Fluid Mechanics, section 106. The standing wave is a wave of linear acoustics.
std::function<double(const Index& cell)> exact_density(const Problem& problem, double time);

}  // namespace haloscope::hydro
