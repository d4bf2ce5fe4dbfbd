// Calls that the wrappers of pmpi_counter.cpp have seen on this thread, besides the messages of Sent (link_rig.hpp),
// and the calls that they refuse.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

namespace haloscope::test {

struct Calls {
  std::int64_t collectives = 0;    ///< that every rank of a communicator calls; fences count, making windows too
  std::int64_t communicators = 0;  ///< made by duplicating, splitting, from groups or graphs
  std::int64_t barriers = 0;       ///< blocking or not
  bool behind_barrier = false;     ///< a blocking barrier came after the last reading of the clock
  std::int64_t clocks_behind_barriers = 0;                     ///< MPI_Wtime, the first one after a blocking barrier
  std::map<std::int64_t, std::int64_t> gathers, list_gathers;  ///< MPI_Allgather, MPI_Allgatherv by this rank's bytes
  std::int64_t fences = 0;
  std::int64_t largest_fence_group = 0;
  std::int64_t locks = 0, unlocks = 0, lock_alls = 0, unlock_alls = 0;
  std::int64_t own_locks = 0;                ///< of this rank's part of a window
  std::int64_t syncs = 0;                    ///< MPI_Win_sync
  std::int64_t exposures = 0, accesses = 0;  ///< MPI_Win_post, MPI_Win_start
  std::int64_t puts = 0, gets = 0, request_gets = 0, atomics = 0;
  std::int64_t windows_allocated = 0, windows_created = 0;  ///< memory from MPI, memory of the user
  std::int64_t hinted_windows = 0;                          ///< made with info keys
  std::set<std::string> hints;                              ///< these keys
  std::int64_t asserted = 0;                                ///< synchronisation calls with an assertion
  int assertions = 0;                                       ///< these assertions, joined
};
Calls& calls();

/// Handles that this rank has made and not freed.
struct Held {
  std::int64_t communicators = 0, groups = 0, types = 0, windows = 0;
  std::int64_t requests = 0;  ///< persistent ones
  bool operator==(const Held&) const = default;
};
Held& held();

/// The number of further calls that make requests, datatypes, communicators or windows on this rank before MPI refuses
/// one; negative: it refuses none.
std::int64_t& calls_until_refusal();

/// Called with every MPI_Isend of this thread, if it is set.
using IsendHook = std::function<void(const void* data, int count, MPI_Datatype type, int to, int tag)>;
IsendHook& on_isend();

/// The time that this rank sleeps after each MPI_Isend, which then has left. Seconds.
double& pause_after_send_s();

}  // namespace haloscope::test
