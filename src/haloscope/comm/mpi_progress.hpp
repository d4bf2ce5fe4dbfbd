// Letting MPI progress while the library waits for something else, as for flags in shared memory.
#pragma once

#include <mpi.h>

#include <utility>

#include "haloscope/core/spin.hpp"

namespace haloscope {

/// Lets MPI carry on what this rank and others have begun: messages of the program, access to its windows. MPI needs to
/// do so only within its calls, and other ranks may wait for it in theirs.
/// @param comm  of the library: the call looks there for a message that nobody sends, since MPI may return at once,
///              without progress, where it finds one. MPI_COMM_NULL: the halos come without MPI, nothing is called.
/// Local. Cost: an MPI_Iprobe; nothing where MPI is simulated, since a poll costs simulated time there.
void let_mpi_progress(MPI_Comm comm);

/// While it lives, waits of this thread that last let MPI progress: a wait may depend on a rank that is in a call of
/// MPI which depends on this one. Only on a thread that may call MPI. Cost: three stores.
class MpiProgress final : public PolledMeanwhile {
 public:
  /// @param comm  as of let_mpi_progress().
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
