// Calls of MPI with checked return codes, for the library and the rank program.
//
// CHECK_MPI(MPI_Comm_dup(...)) throws an MpiError where MPI refuses. It belongs in calls that open an object: inside
// agree() the error reaches all ranks, elsewhere collectively() detects an error of all ranks.
// REQUIRE_MPI(MPI_Isend(...)) ends the job. It belongs in time steps and destructors, where other ranks may already
// wait for this one.
#pragma once

#include <mpi.h>

#include <string>
#include <string_view>
#include <utility>

#include "haloscope/core/making.hpp"
#include "haloscope/core/out_of_memory.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

/// An error for a call that MPI refused on this rank; calls of other ranks may have succeeded.
struct MpiError : Error {
  /// @param call  text of the call in the source; its name is the part before the parenthesis.
  MpiError(int code, const char* call);
  explicit MpiError(const std::string& text) : Error(Exit::failed, text) {}
};

[[noreturn]] void throw_mpi_error(int code, const char* call);

/// Ends all ranks, once the launcher has read the output of this one.
[[noreturn]] void abort_job();

/// Prints rank, call and MPI's text for the code on standard error and ends the job. Allocates nothing.
[[noreturn]] void end_job(int code, const char* call);
/// The same for any other reason. @param more  follows the text.
[[noreturn]] void end_job(const char* text, const char* more = "");

/// Returns true if all ranks of a communicator make a call of MPI, by its name.
/// @param call  text of the call in the source.
consteval bool is_collective(std::string_view call) {
  for (const char* name : {"All", "Iall", "Barrier", "Ibarrier", "Bcast", "Ibcast", "Gather", "Comm_dup", "Comm_split",
                           "Cart_create", "Dist_graph_create"})
    if (call.substr(std::string_view("MPI_").size()).starts_with(name)) return true;
  return false;
}

/// Counts collective calls of MPI of this thread. Ranks that have begun different numbers of them in a collective
/// call of the library have not failed at the same position.
void begin_collective() noexcept;

template <bool collective>
void begin_call() noexcept {
  if constexpr (collective) begin_collective();
}

inline void check_mpi(int code, const char* call) {
  if (code != MPI_SUCCESS) [[unlikely]]
    throw_mpi_error(code, call);
}

inline void require_mpi(int code, const char* call) {
  if (code != MPI_SUCCESS) [[unlikely]]
    end_job(code, call);
}

#define CHECK_MPI(...)                                                  \
  (::haloscope::begin_call<::haloscope::is_collective(#__VA_ARGS__)>(), \
   ::haloscope::check_mpi((__VA_ARGS__), #__VA_ARGS__))
#define REQUIRE_MPI(...)                                                \
  (::haloscope::begin_call<::haloscope::is_collective(#__VA_ARGS__)>(), \
   ::haloscope::require_mpi((__VA_ARGS__), #__VA_ARGS__))

/// Returns "rank 3", by this process's number in MPI_COMM_WORLD, which reports use; "a rank" where MPI does not run
/// or refuses to return it. Local.
std::string own_name();

/// Returns the number in MPI_COMM_WORLD of a rank of a communicator; -1: it is not in MPI_COMM_WORLD. Local.
int world_rank(MPI_Comm comm, int rank);

/// Returns "rank 3" for a rank of a communicator, by its number in MPI_COMM_WORLD. For a rank that is not in it, as
/// after MPI_Comm_spawn, returns "rank 1 of its communicator".
std::string name_rank(MPI_Comm comm, int rank);

/// Checks that a communicator is left, before a window is made, which uses one: where none is left, MPICH 5 then ends
/// in a segmentation fault, but returns an error for a duplicate, which this call makes and frees. Collective.
/// @throws MpiError
void require_communicator_left(MPI_Comm comm);

/// Makes MPI return errors of calls on a user's communicator, instead of ending the job, for its lifetime.
class ErrorsReturned {
 public:
  explicit ErrorsReturned(MPI_Comm comm);
  ~ErrorsReturned();
  ErrorsReturned(const ErrorsReturned&) = delete;
  ErrorsReturned& operator=(const ErrorsReturned&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

/// Handles an exception that leaves a collective call on this rank; called from its handler. Rethrows an Error that
/// is the same on all ranks. For any other exception, such as MpiError, OutOfMemory and std::bad_alloc, it waits for
/// the other ranks to call it too.
/// @throws Error (exit code 1) with the exception's text once all ranks of `comm` have called it. If some rank has
///         not within patience_s(), it ends the job, with that text: such a rank waits for this one.
/// Cost: 2 log2(ranks) empty messages.
[[noreturn]] void fail_together(MPI_Comm comm);

/// Marks this thread as running a collective call.
class Collective {
 public:
  Collective() noexcept;
  ~Collective();
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;
  /// Returns true if a collective call runs on this thread. Local.
  static bool runs() noexcept;
};

/// Called before a collective call of MPI that frees an object and waits for the other ranks. Where an exception ends
/// a collective call, other ranks may not have one, and never make that call: the job ends after patience_s() then.
/// Costs nothing otherwise.
void require_company(MPI_Comm comm);

/// Called where a collective call has stored an object that later calls find, such as a communicator on another one.
/// If not all ranks have stored the same, their later calls do not match: where the call fails then, the job ends.
/// Local.
void note_kept() noexcept;

/// Runs a collective call. An error that one rank alone can have (MPI refuses, memory is exhausted) becomes an Error
/// on all ranks if it occurred on all; if only on some, the job ends. Costs nothing where nothing fails.
/// @param object  that it makes, "an exchange"; a literal. Reports of long waits and errors of exhausted memory name
///                it.
template <class Work>
decltype(auto) collectively(MPI_Comm comm, const char* object, Work&& work) {
  const Making making(object);
  try {
    const ErrorsReturned returned(comm);
    const Collective collective;
    return std::forward<Work>(work)();
  } catch (...) {
    fail_together(comm);
  }
}

}  // namespace haloscope
