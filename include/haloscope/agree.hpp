// Errors that all ranks learn of: nobody waits for a rank that has refused.
#pragma once

#include "haloscope/cxx20.hpp"

#include <cstdint>
#include <string>

#include "haloscope/error.hpp"
#include "haloscope/which_mpi.hpp"

namespace haloscope {

/// Throws what `exit` says: UsageError, UnavailableError, Error.
[[noreturn]] void fail(Exit exit, const std::string& message);

/// agree() with a plain function and its argument, which needs no memory.
void agree_on(MPI_Comm comm, void (*work)(const void* context), const void* context);

/// Carry out local work on every rank of `comm`. If it throws on any of them, all throw: a rank whose own work failed
/// its own error, the others that of the first such rank, with its number. Where their collective calls make different
/// things, as a grid and an exchange, all throw a UsageError about that.
/// Collective; cost: one reduction to all.
template <class Work>
void agree(MPI_Comm comm, const Work& work) {
  agree_on(
      comm, [](const void* of) { (*static_cast<const Work*>(of))(); }, &work);
}

/// The number of this process among the ranks of `comm`, and how many they are. Local. @throws Error where MPI refuses.
int rank_in(MPI_Comm comm);
int ranks_in(MPI_Comm comm);

/// Whether all ranks of `comm` have the same number. Collective; cost: one reduction to all.
bool same_everywhere(MPI_Comm comm, std::uint64_t number);

}  // namespace haloscope
