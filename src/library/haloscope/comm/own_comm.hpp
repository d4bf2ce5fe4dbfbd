// A separate communicator of one object, for collective calls in time steps and messages that must match no others.
#pragma once

#include <mpi.h>

#include "haloscope/comm/handles.hpp"
#include "haloscope/extend/agree.hpp"

namespace haloscope {

/// Duplicates a communicator and frees the duplicate; both are collective. Move-only.
class OwnComm {
 public:
  explicit OwnComm(MPI_Comm comm) {
    CHECK_MPI(MPI_Comm_dup(comm, comm_.address()));
    CHECK_MPI(MPI_Comm_set_errhandler(get(), MPI_ERRORS_RETURN));
  }
  MPI_Comm get() const { return comm_.get(); }
  int rank() const { return rank_in(get()); }
  int size() const { return ranks_in(get()); }
  /// Gives it up, so that it is never freed: other ranks may never make that call.
  void leave() { static_cast<void>(comm_.release()); }

 private:
  OwnedComm comm_;
};

}  // namespace haloscope
