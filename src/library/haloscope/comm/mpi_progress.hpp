// Progress of MPI while the library waits for something else, such as flags in shared memory.
#pragma once

#include <mpi.h>

#include <utility>

#include "haloscope/core/spin.hpp"

namespace haloscope {

/// Lets MPI progress operations that this rank and others have begun: messages of the program, access to its windows.
/// MPI is required to do so only within its calls, and other ranks may wait for it in theirs.
/// @param comm  communicator of the library: the call probes it for a message that no rank sends, since MPI may
///              return immediately, without progress, if it finds one. MPI_COMM_NULL: the halos arrive without MPI,
///              and no call is made. Local. Cost: an MPI_Iprobe; where MPI is simulated, none is made, since a poll
///              costs simulated time there.
void let_mpi_progress(MPI_Comm comm);

/// Makes long waits of this thread let MPI progress, for its lifetime: a wait may depend on a rank that is in a call
/// of MPI which depends on this rank. Only on a thread that may call MPI. Cost: three stores.
class MpiProgress final : public PolledMeanwhile {
 public:
  /// @param comm  as in let_mpi_progress().
  explicit MpiProgress(MPI_Comm comm) : comm_(comm), outer_(std::exchange(polled_meanwhile, this)) {}
  ~MpiProgress() { polled_meanwhile = outer_; }
  MpiProgress(const MpiProgress&) = delete;
  MpiProgress& operator=(const MpiProgress&) = delete;

  void poll() override { let_mpi_progress(comm_); }

 private:
  MPI_Comm comm_;
  PolledMeanwhile* outer_;
};

}  // namespace haloscope
