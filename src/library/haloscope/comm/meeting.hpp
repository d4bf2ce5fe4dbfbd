// Barriers by messages, which ranks may abandon.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/extend/agree.hpp"

namespace haloscope {

/// A dissemination barrier. Collective; a rank that gives up leaves no trace in MPI's collective calls.
/// @param carrier   the communicator of its messages. @param rank_of returns the number in it of a rank of `comm`.
/// @param tag       tag that no other messages use.
/// @param mine      data of this rank; equally many bytes on all ranks. @param theirs buffer of the same size.
/// @param complete  bool(MPI_Request&): completes a request; false: gives up.
/// @return true if all ranks have come, with the same bytes.
/// Cost: 2 log2(ranks) messages.
template <class RankOf, class Complete>
bool meet_by_messages(MPI_Comm comm, MPI_Comm carrier, RankOf rank_of, int tag, std::span<const std::byte> mine,
                      std::byte* theirs, Complete complete) {
  const int bytes = static_cast<int>(mine.size()), rank = rank_in(comm), size = ranks_in(comm);
  for (int far = 1; far < size; far *= 2) {
    const int from = rank_of((rank - far % size + size) % size), to = rank_of((rank + far) % size);
    MPI_Request in, out;
    CHECK_MPI(MPI_Irecv(theirs, bytes, MPI_BYTE, from, tag, carrier, &in));
    CHECK_MPI(MPI_Isend(mine.data(), bytes, MPI_BYTE, to, tag, carrier, &out));
    if (!complete(in) || !complete(out) || !std::equal(mine.begin(), mine.end(), theirs)) return false;
  }
  return true;
}

/// Waits until all ranks have reached the end of their joint work; the wait is reported, see ReportedWait.
/// Collective.
/// Allocates nothing, except for a report.
/// @param name  returns the name of the ending object, such as "exchange of u".
/// @throws PeerFailure within a FailureWatch.
void meet_at_end(MPI_Comm comm, int tag, bool yield, const std::function<std::string()>& name);

}  // namespace haloscope
