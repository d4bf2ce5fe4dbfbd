// Operations that combine numbers of a reduction.
#pragma once

#include <cmath>

#include "haloscope/both_sides.hpp"
#include "haloscope/stage.hpp"

namespace haloscope {

/// Returns the identity of an operation, with which combining begins.
HALOSCOPE_ON_BOTH_SIDES inline double identity_of(ReduceOp op) {
  return op == ReduceOp::sum ? 0 : op == ReduceOp::max ? -INFINITY : INFINITY;
}

/// Returns two numbers combined; a NaN on either side stays.
HALOSCOPE_ON_BOTH_SIDES inline double combined(ReduceOp op, double a, double b) {
  if (op == ReduceOp::sum) return a + b;
  return (op == ReduceOp::max ? a < b : b < a) || b != b ? b : a;
}

}  // namespace haloscope
