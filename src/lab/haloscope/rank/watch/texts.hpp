// Texts of all ranks on rank 0, such as the names of their nodes.
#pragma once

#include <mpi.h>

#include <limits>
#include <string>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"

namespace haloscope {

/// Returns the name of this rank's node, as MPI reports it. Local.
inline std::string host_name() {
  char name[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  REQUIRE_MPI(MPI_Get_processor_name(name, &length));
  return {name, static_cast<std::size_t>(length)};
}

/// Hands the texts of all ranks to `take` on rank 0, in rank order, one at a time.
template <class Take>
void for_each_text(MPI_Comm comm, const std::string& mine, Take take) {
  constexpr int tag = 2;
  if (mine.size() > std::numeric_limits<int>::max())
    throw Error(Exit::failed,
                "a text of " + std::to_string(mine.size()) + " bytes is too long for a message; record fewer events");
  if (rank_in(comm) != 0) {
    REQUIRE_MPI(MPI_Send(mine.data(), static_cast<int>(mine.size()), MPI_CHAR, 0, tag, comm));
    return;
  }
  take(0, mine);
  for (int r = 1; r < ranks_in(comm); ++r) {
    MPI_Status status;
    REQUIRE_MPI(MPI_Probe(r, tag, comm, &status));
    int length = 0;
    REQUIRE_MPI(MPI_Get_count(&status, MPI_CHAR, &length));
    std::string text(static_cast<std::size_t>(length), '\0');
    REQUIRE_MPI(MPI_Recv(text.data(), length, MPI_CHAR, r, tag, comm, MPI_STATUS_IGNORE));
    take(r, text);
  }
}

}  // namespace haloscope
