// Errors shared by all ranks, so that no rank waits for one that has refused.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <cstdint>
#include <string>

#include "haloscope/error.hpp"
#include "haloscope/extend/which_mpi.hpp"

namespace haloscope {

/// Throws the exception of `exit`: UsageError, UnavailableError or Error.
[[noreturn]] void fail(Exit exit, const std::string& message);

/// The same as agree(), with a plain function and its argument; allocates no memory.
void agree_on(MPI_Comm comm, void (*work)(const void* context), const void* context);

/// Runs local work on every rank of `comm`. If the work throws on any rank, all ranks throw: a rank whose own work
/// failed throws its own error, the others throw the error of the first such rank, with its number. Where ranks open
/// different objects, such as a grid and an exchange, all ranks throw a UsageError that reports this.
/// Collective; cost: one reduction to all.
template <class Work>
void agree(MPI_Comm comm, const Work& work) {
  agree_on(
      comm, [](const void* of) { (*static_cast<const Work*>(of))(); }, &work);
}

/// Returns the rank of this process in `comm`, and the number of ranks. Local. @throws Error where MPI refuses.
int rank_in(MPI_Comm comm);
int ranks_in(MPI_Comm comm);

/// Returns true if all ranks of `comm` pass the same number. Collective; cost: one reduction to all.
bool same_everywhere(MPI_Comm comm, std::uint64_t number);

}  // namespace haloscope
