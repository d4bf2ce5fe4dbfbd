// Numbers that every rank gathers from all ranks and combines itself, in the order of ranks.
#pragma once

#include <mpi.h>

#include <span>
#include <vector>

#include "haloscope/core/combine.hpp"
#include "haloscope/stage.hpp"

namespace haloscope {

/// The gathers of one reduction, by ReduceBy::gather or ReduceBy::lists.
class Gatherer {
 public:
  /// Local. `comm` must outlive it.
  Gatherer(const Reduction& reduction, MPI_Comm comm);

  /// Makes all calls of the reduction, sequentially. Collective. @param numbers in: this rank's, out: the combined
  /// numbers of all ranks.
  void gather(std::span<double> numbers);
  /// Begins a reduction of one call. Collective.
  void start(std::span<const double> numbers, MPI_Request* request);
  /// Combines the gathered numbers, once the request of start() is complete.
  void finish(std::span<double> numbers) const;

 private:
  void pack(std::span<const double> numbers);
  void gather_lists();

  ReduceOp op_;
  ReduceBy by_;
  NumberType type_;
  MPI_Comm comm_;
  int each_;                           // numbers of a rank in a call
  std::vector<int> lengths_, places_;  // lengths and places of the ranks' lists
  std::vector<std::byte> mine_, all_;  // as sent: this rank's numbers, and the numbers of all ranks in order
};

}  // namespace haloscope
