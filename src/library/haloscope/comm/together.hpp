// Waits for all ranks to make a collective call, reported while some of them are late.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <memory>

#include "haloscope/comm/mpi_call.hpp"

namespace haloscope {

/// Completes a nonblocking collective call of set-up by polling. A rank that still waits for the others after
/// patience_s() reports it, see ReportedWait.
/// @throws MpiError where MPI refuses.
/// @throws also PeerFailure within a FailureWatch: the request is then still in flight, and its memory must stay.
void meet_in(MPI_Request& request);

/// Waits at a barrier, before a collective call of set-up that waits inside MPI. Collective. @throws as meet_in().
void meet_before(MPI_Comm comm);

/// Makes a collective call on a few numbers, in place. @param start begins the call, from their address and a
/// request.
/// @throws as meet_in(); MPI may still use the memory then, which stays, and the next call uses new memory. Allocates
/// only then, and in the first call of a thread.
template <class Number, std::size_t count, class Start>
void call_together(std::array<Number, count>& numbers, Start start) {
  using Numbers = std::array<Number, count>;
  static thread_local std::unique_ptr<Numbers> idle;  // null: a call is in flight
  if (!idle) idle = std::make_unique<Numbers>();
  *idle = numbers;
  MPI_Request request;
  start(idle->data(), &request);
  Numbers* const used = idle.release();
  meet_in(request);
  idle.reset(used);
  numbers = *used;
}

/// Makes a reduction to all.
template <class Number, std::size_t count>
void reduce_together(MPI_Comm comm, std::array<Number, count>& numbers, MPI_Datatype type, MPI_Op op) {
  call_together(numbers, [&](Number* at, MPI_Request* request) {
    CHECK_MPI(MPI_Iallreduce(MPI_IN_PLACE, at, static_cast<int>(count), type, op, comm, request));
  });
}

}  // namespace haloscope
