// The largest numbers over some ranks, by messages, so that it needs no communicator.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>
#include <vector>

namespace haloscope {

/// A nonblocking reduction to all of some ranks, one at a time. In round k a rank passes on all that it has to the rank
/// 2^k places ahead; largest numbers may be counted more than once.
/// Cost: log2(ranks) messages each way.
class Maximum {
 public:
  /// Local. @param ranks  that take part, this one among them, in the same order on all.
  /// @param tag  of messages that nothing else uses between these ranks.
  /// @param most  numbers that are ever reduced together: start() and test() allocate nothing.
  Maximum(MPI_Comm comm, std::vector<int> ranks, int tag, std::size_t most);
  /// Completes what is in flight; the other ranks take part.
  ~Maximum();
  Maximum(const Maximum&) = delete;
  Maximum& operator=(const Maximum&) = delete;

  /// Begins with this rank's numbers, equally many on all ranks. None may be under way.
  void start(std::span<const double> mine);
  /// Goes on without waiting. @return whether result() is there.
  bool test();
  /// Of the last reduction.
  std::span<const double> result() const { return all_; }

 private:
  void start_round();

  MPI_Comm comm_;
  std::vector<int> ranks_;
  int tag_, place_ = 0;
  int far_ = 0;  // places ahead in this round; at least ranks_.size(): none is under way
  std::vector<double> all_, sent_, received_;
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

}  // namespace haloscope
