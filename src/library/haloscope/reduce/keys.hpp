// Numbers in the form that MPI combines. MPI_MAX and MPI_MIN may drop a NaN of a real, so that a diverged step would
// look like one within its tolerance: maxima and minima are sent as integers in the same order, with NaN beyond the
// end.
#pragma once

#include <mpi.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "haloscope/stage.hpp"

namespace haloscope {

inline MPI_Op mpi_op(ReduceOp op) { return op == ReduceOp::sum ? MPI_SUM : op == ReduceOp::max ? MPI_MAX : MPI_MIN; }
inline MPI_Datatype mpi_type(ReduceOp op) { return op == ReduceOp::sum ? MPI_DOUBLE : MPI_INT64_T; }

/// Converts bits of reals to integers of the same order: the bits of negative numbers count down, so all their bits
/// but the sign are flipped. The function is its own inverse.
inline std::int64_t turned_around(std::int64_t bits) {
  return bits < 0 ? bits ^ std::numeric_limits<std::int64_t>::max() : bits;
}

/// Replaces numbers by the keys that MPI combines, of type mpi_type(). Sums stay.
inline void to_keys(ReduceOp op, std::span<double> numbers) {
  using Limits = std::numeric_limits<std::int64_t>;
  if (op == ReduceOp::sum) return;
  const std::int64_t beyond = op == ReduceOp::max ? Limits::max() : Limits::min();
  for (double& number : numbers)
    number = std::bit_cast<double>(std::isnan(number) ? beyond : turned_around(std::bit_cast<std::int64_t>(number)));
}

/// The inverse of to_keys().
inline void from_keys(ReduceOp op, std::span<double> keys) {
  if (op == ReduceOp::sum) return;
  for (double& key : keys) key = std::bit_cast<double>(turned_around(std::bit_cast<std::int64_t>(key)));
}

}  // namespace haloscope
