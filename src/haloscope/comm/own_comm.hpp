// A communicator of one object's own, for collective calls in time steps and messages that must match no others.
#pragma once

#include <mpi.h>

#include <utility>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/patience.hpp"

namespace haloscope {

/// Duplicates a communicator and frees the duplicate; both are collective. Move-only.
class OwnComm {
 public:
  explicit OwnComm(MPI_Comm comm) {
    CHECK_MPI(MPI_Comm_dup(comm, &comm_));
    CHECK_MPI(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  }
  ~OwnComm() {
    if (comm_ == MPI_COMM_NULL) return;
    const EndOfAll end("a communicator");
    REQUIRE_MPI(MPI_Comm_free(&comm_));
  }
  OwnComm(OwnComm&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  OwnComm& operator=(OwnComm&&) = delete;
  MPI_Comm get() const { return comm_; }
  int rank() const { return (REQUIRE_MPI(MPI_Comm_rank(comm_, &number_)), number_); }
  int size() const { return (REQUIRE_MPI(MPI_Comm_size(comm_, &number_)), number_); }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  mutable int number_ = 0;
};

}  // namespace haloscope
