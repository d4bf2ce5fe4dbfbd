// Messages between ranks during an opening.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/until_complete.hpp"

namespace haloscope {

/// Values, each of which is sent to another rank or received from one.
template <class Value>
class SetUpMessages {
 public:
  explicit SetUpMessages(std::size_t count) : held_(count) {}
  const Value& operator[](std::size_t at) { return held_->values[at]; }
  void send(std::size_t at, const Value& value, int to, int tag, MPI_Comm comm) {
    held_.begin();
    held_->values[at] = value;
    CHECK_MPI(MPI_Isend(&held_->values[at], sizeof(Value), MPI_BYTE, to, tag, comm, &held_->requests[at]));
  }
  void receive(std::size_t at, int from, int tag, MPI_Comm comm) {
    held_.begin();
    CHECK_MPI(MPI_Irecv(&held_->values[at], sizeof(Value), MPI_BYTE, from, tag, comm, &held_->requests[at]));
  }
  /// Waits for all messages. @throws MpiError where MPI refuses.
  void complete() {
    CHECK_MPI(MPI_Waitall(static_cast<int>(held_->requests.size()), held_->requests.data(), MPI_STATUSES_IGNORE));
    held_.completed();
  }

 private:
  struct Held {
    explicit Held(std::size_t count) : values(count), requests(count, MPI_REQUEST_NULL) {}
    std::vector<Value> values;
    std::vector<MPI_Request> requests;
  };
  UntilComplete<Held> held_;
};

}  // namespace haloscope
