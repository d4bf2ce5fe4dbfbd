// Stencils of free weights on a star: laplace2d and laplace3d.
#pragma once

#include "haloscope/app.hpp"

namespace haloscope {

/// An app that multiplies the points of a star by weights, which users may set, and adds them up.
/// @param weights  the default ones. They differ in every direction, so that no exchange error can hide. Their sum is
///        1, so that values neither overflow nor sink into subnormal numbers (which compute up to a hundred times
///        slower) in any number of steps.
/// @param order  the points that the weights belong to, for help texts.
App star_app(const std::string& name, int dims, const std::vector<double>& weights, const std::string& order);

}  // namespace haloscope
