// What calls need of MPI before they make any of its calls: that it runs, and that this thread may call it.
#pragma once

#include <atomic>

#include "haloscope/which_mpi.hpp"

namespace haloscope {

/// Keeps the shared library that holds this code loaded until the process ends: MPI_Finalize still calls functions of
/// it, and Python unloads libraries before. Local.
void stay_loaded();

/// Whether MPI_Finalize has been called. What still holds communicators or windows then leaves them as they are. Only
/// for what was made after require_mpi(). Cost: a load.
bool mpi_has_ended();

/// @throws UsageError where another MPI is running than the one that the library was built for: of another file name or
///         vendor.
/// Calls nothing that takes a handle. Local.
void refuse_other_mpi();

/// The checks of require_mpi() for objects that were made after require_mpi(). Cost: two loads.
/// @param call  its name, for messages.
void require_running(const char* call);

/// A call on an object that one thread at a time may use, from its begin to its end. Cost: some ns.
class Call {
 public:
  /// @param busy  whether a call is under way, see busy_mark().
  /// @param name  of the call, for messages.
  /// @throws UsageError after MPI_Finalize, on a thread that may not call MPI, and while another thread is in a call.
  Call(std::atomic<bool>& busy, const char* name);
  ~Call() { busy_.store(false, std::memory_order_release); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  std::atomic<bool>& busy_;
};

/// The mark that an object's calls set: its own, or that of all objects where threads may call MPI by turns only.
std::atomic<bool>& busy_mark(std::atomic<bool>& own);

}  // namespace haloscope
