// Checks before calls of MPI: MPI runs, and this thread may call it.
#pragma once

#include <atomic>

#include "haloscope/extend/which_mpi.hpp"

namespace haloscope {

/// Keeps the shared library of this code loaded until the process ends: MPI_Finalize still calls functions of it, and
/// Python unloads libraries before. Local.
void stay_loaded();

/// Returns true if MPI_Finalize has been called. Objects that still hold communicators or windows then leave them as
/// they are. Only for objects made after require_mpi(). Cost: a load.
bool mpi_has_ended();

/// Checks the running MPI. @throws UsageError where it is not the one that the library was built for: a different
///         file name or vendor.
/// Makes no call that takes a handle. Local.
void refuse_other_mpi();

/// Makes the checks of require_mpi() for objects that were made after require_mpi(). Cost: two loads.
/// @param call  name of the call, for errors.
void require_running(const char* call);

/// A call on an object that one thread at a time may use, from its begin to its end. Cost: some ns.
class Call {
 public:
  /// @param busy  true during a call, see busy_mark().
  /// @param name  name of the call, for errors.
  /// @throws UsageError after MPI_Finalize, on a thread that may not call MPI, and while another thread is in a call.
  Call(std::atomic<bool>& busy, const char* name);
  ~Call() { busy_.store(false, std::memory_order_release); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  std::atomic<bool>& busy_;
};

/// Returns the mark that an object's calls set: the object's, or the mark of all objects where threads may call MPI
/// only by turns.
std::atomic<bool>& busy_mark(std::atomic<bool>& own);

}  // namespace haloscope
