// Small messages that the sender does not wait for.
#pragma once

#include <mpi.h>

#include <vector>

#include "haloscope/comm/settle.hpp"

namespace haloscope {

/// The next double from `from`.
inline double receive(MPI_Comm comm, int from, int tag, bool yield) {
  double value = 0;
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_DOUBLE, from, tag, comm, &request);
  settle(request, yield);
  return value;
}

/// Doubles to one rank, `places` of them in flight at most.
class Outbox {
 public:
  Outbox(MPI_Comm comm, int to, int tag, int places, bool yield)
      : comm_(comm), to_(to), tag_(tag), yield_(yield), values_(places), requests_(places, MPI_REQUEST_NULL) {}
  void send(double value) {
    settle(requests_[next_], yield_);
    values_[next_] = value;
    MPI_Isend(&values_[next_], 1, MPI_DOUBLE, to_, tag_, comm_, &requests_[next_]);
    next_ = (next_ + 1) % values_.size();
  }
  void finish() {
    for (MPI_Request& request : requests_) settle(request, yield_);
  }

 private:
  MPI_Comm comm_;
  int to_, tag_;
  bool yield_;
  std::vector<double> values_;
  std::vector<MPI_Request> requests_;
  std::size_t next_ = 0;
};

}  // namespace haloscope
