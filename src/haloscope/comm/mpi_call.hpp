// Calls of MPI whose return codes are read. One mechanism serves the library and the rank program.
//
// CHECK_MPI(MPI_Comm_dup(...)) throws an MpiError where MPI refuses. It belongs into calls that open something: inside
// agree() the error reaches all ranks, elsewhere collectively() finds out whether all ranks met one.
// REQUIRE_MPI(MPI_Isend(...)) ends the job. It belongs into time steps and destructors, where other ranks may already
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

/// MPI refused a call on this rank; other ranks may have got past theirs.
struct MpiError : Error {
  /// @param call  as in the source; its name is the part before the parenthesis.
  MpiError(int code, const char* call);
  explicit MpiError(const std::string& text) : Error(Exit::failed, text) {}
};

[[noreturn]] void throw_mpi_error(int code, const char* call);

/// Ends all ranks, once the launcher has read what this one has printed.
[[noreturn]] void abort_job();

/// Prints rank, call and MPI's text for the code on standard error and ends the job. Takes no memory.
[[noreturn]] void end_job(int code, const char* call);
/// The same for any other reason. @param more  follows the text.
[[noreturn]] void end_job(const char* text, const char* more = "");

/// Whether all ranks of a communicator make a call of MPI, by its name.
/// @param call  as in the source.
consteval bool is_collective(std::string_view call) {
  for (const char* name : {"All", "Iall", "Barrier", "Ibarrier", "Bcast", "Ibcast", "Gather", "Comm_dup", "Comm_split",
                           "Cart_create", "Dist_graph_create"})
    if (call.substr(std::string_view("MPI_").size()).starts_with(name)) return true;
  return false;
}

/// Counts collective calls of MPI of this thread. Ranks of a collective call of the library that have begun different
/// numbers of them have not failed at the same place.
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

/// "rank 3", by this process's number in MPI_COMM_WORLD, which reports use; "a rank" where MPI does not run or refuses
/// to return it. Local.
std::string own_name();

/// The number in MPI_COMM_WORLD of a rank of a communicator; -1: it is in another world. Local.
int world_rank(MPI_Comm comm, int rank);

/// "rank 3": a rank of a communicator, by its number in MPI_COMM_WORLD. Where that has it not, as after MPI_Comm_spawn,
/// "rank 1 of its communicator".
std::string name_rank(MPI_Comm comm, int rank);

/// Comes before a window is made, which takes a communicator: where none is left, MPICH 5 ends in a segmentation fault
/// there, and returns an error for a duplicate, as this one makes and frees. Collective. @throws MpiError
void require_communicator_left(MPI_Comm comm);

/// While it lives, MPI returns errors of calls on a communicator of the user's, instead of ending the job.
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

/// Called where an exception leaves a collective call on this rank, from its handler. An Error that is the same on all
/// ranks goes on. For any other exception, as MpiError, OutOfMemory and std::bad_alloc, it waits for the other ranks to
/// come here too.
/// @throws Error (exit code 1) with the exception's text once all ranks of `comm` have. A job in which some rank has
///         not within patience_s() is ended, with that text: such a rank waits for this one.
/// Cost: 2 log2(ranks) empty messages.
[[noreturn]] void fail_together(MPI_Comm comm);

/// A collective call runs on this thread.
class Collective {
 public:
  Collective() noexcept;
  ~Collective();
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;
  /// Whether one does. Local.
  static bool runs() noexcept;
};

/// Called before a collective call of MPI that frees something and waits for the other ranks. Where an exception ends a
/// collective call, other ranks may have none, and never come: the job ends after patience_s() then. Costs nothing
/// otherwise.
void require_company(MPI_Comm comm);

/// Called where a collective call has left what later ones find, as a communicator on another one. Ranks that have not
/// all left the same do not match each other any more: where the call fails then, the job ends. Local.
void note_kept() noexcept;

/// Runs a collective call. What one rank alone can meet (MPI refuses, memory is exhausted) becomes an Error on all
/// ranks where all met it; on some of them it ends the job. Costs nothing where nothing fails.
/// @param what  it makes, "an exchange"; a literal. Reports of long waits and errors of exhausted memory name it.
template <class Work>
decltype(auto) collectively(MPI_Comm comm, const char* what, Work&& work) {
  const Making making(what);
  try {
    const ErrorsReturned returned(comm);
    const Collective collective;
    return std::forward<Work>(work)();
  } catch (...) {
    fail_together(comm);
  }
}

}  // namespace haloscope
