// Small messages that the sender does not wait for.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <span>
#include <vector>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/settle.hpp"

namespace haloscope {

/// Receives the next numbers from `from`.
inline void receive(MPI_Comm comm, int from, int tag, bool yield, std::span<double> into) {
  MPI_Request request;
  REQUIRE_MPI(MPI_Irecv(into.data(), static_cast<int>(into.size()), MPI_DOUBLE, from, tag, comm, &request));
  settle(request, yield);
}

/// Messages of `numbers` doubles to one rank, `places` of them in flight at most.
class Outbox {
 public:
  Outbox(MPI_Comm comm, int to, int tag, int places, bool yield, int numbers = 1)
      : comm_(comm),
        to_(to),
        tag_(tag),
        numbers_(numbers),
        yield_(yield),
        values_(static_cast<std::size_t>(places) * numbers),
        requests_(places, MPI_REQUEST_NULL) {}
  void send(std::span<const double> numbers) {
    settle(requests_[next_], yield_);
    double* at = values_.data() + next_ * static_cast<std::size_t>(numbers_);
    std::copy(numbers.begin(), numbers.end(), at);
    REQUIRE_MPI(MPI_Isend(at, numbers_, MPI_DOUBLE, to_, tag_, comm_, &requests_[next_]));
    next_ = (next_ + 1) % requests_.size();
  }
  void send(double number) { send(std::span<const double>(&number, 1)); }
  void finish() {
    for (MPI_Request& request : requests_) settle(request, yield_);
  }

 private:
  MPI_Comm comm_;
  int to_, tag_, numbers_;
  bool yield_;
  std::vector<double> values_;
  std::vector<MPI_Request> requests_;
  std::size_t next_ = 0;
};

}  // namespace haloscope
