// Calls of MPI whose return codes are read. One mechanism serves the library and the rank program.
//
// CHECK_MPI(MPI_Comm_dup(...)) throws an MpiError where MPI refuses. It belongs into calls that open something: inside
// agree() the error reaches all ranks, elsewhere collectively() finds out whether all ranks met one.
// REQUIRE_MPI(MPI_Isend(...)) ends the job. It belongs into time steps and destructors, where other ranks may already
// wait for this one.
#pragma once

#include <mpi.h>

#include <string>
#include <utility>

#include "haloscope/comm/together.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

/// MPI refused a call on this rank; other ranks may have got past theirs.
struct MpiError : Error {
  /// @param call  as in the source; its name is the part before the parenthesis.
  MpiError(int code, const char* call);
};

[[noreturn]] void throw_mpi_error(int code, const char* call);

/// Prints rank, call and MPI's text for the code on standard error and ends the job.
[[noreturn]] void end_job(int code, const char* call);
/// The same for any other reason.
[[noreturn]] void end_job(const std::string& text);

inline void check_mpi(int code, const char* call) {
  if (code != MPI_SUCCESS) [[unlikely]]
    throw_mpi_error(code, call);
}

inline void require_mpi(int code, const char* call) {
  if (code != MPI_SUCCESS) [[unlikely]]
    end_job(code, call);
}

#define CHECK_MPI(...) ::haloscope::check_mpi((__VA_ARGS__), #__VA_ARGS__)
#define REQUIRE_MPI(...) ::haloscope::require_mpi((__VA_ARGS__), #__VA_ARGS__)

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

/// Called where an MpiError leaves a collective call on this rank. Waits for the other ranks to come here too.
/// @throws Error (exit code 1) with the error's text once all ranks of `comm` have. A job in which some rank has not
///         within patience_s() is ended, with the error's text: such a rank waits for this one.
/// Cost: 2 log2(ranks) empty messages.
[[noreturn]] void fail_together(MPI_Comm comm, const MpiError& error);

/// Runs a collective call. An MpiError on all ranks becomes an Error on all ranks; on some of them it ends the job.
/// Costs nothing where MPI refuses nothing.
/// @param name  of the call, for reports of a rank that waits for others to make it too.
template <class Work>
decltype(auto) collectively(MPI_Comm comm, const char* name, Work&& work) try {
  const NamedCall named(name);
  const ErrorsReturned returned(comm);
  return std::forward<Work>(work)();
} catch (const MpiError& error) {
  fail_together(comm, error);
}

}  // namespace haloscope
