// Maxima over some ranks, by messages, so that they need no communicator.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>
#include <vector>

namespace haloscope {

/// A nonblocking reduction to all of some ranks, one at a time. In round k a rank passes all its numbers on to the
/// rank 2^k places ahead; a maximum may include a rank more than once.
/// Cost: log2(ranks) messages each way.
class Maximum {
 public:
  /// Local. @param ranks participating ranks including this one, in the same order on all.
  /// @param tag  tag that no other messages between these ranks use.
  /// @param most  maximum of numbers in a reduction: start() and test() allocate nothing.
  Maximum(MPI_Comm comm, std::vector<int> ranks, int tag, std::size_t most);
  /// Completes a reduction in flight; the other ranks take part.
  ~Maximum();
  Maximum(const Maximum&) = delete;
  Maximum& operator=(const Maximum&) = delete;

  /// Begins a reduction of this rank's numbers, equally many on all ranks. None may be in flight.
  void start(std::span<const double> mine);
  /// Continues without waiting. @return true if result() is available.
  bool test();
  /// Returns the result of the last reduction.
  std::span<const double> result() const { return all_; }

 private:
  void start_round();

  MPI_Comm comm_;
  std::vector<int> ranks_;
  int tag_, place_ = 0;
  int far_ = 0;  // places ahead in this round; at least ranks_.size(): no reduction is in flight
  std::vector<double> all_, sent_, received_;
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

}  // namespace haloscope
