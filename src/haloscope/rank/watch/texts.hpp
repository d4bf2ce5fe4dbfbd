// Texts of all ranks on rank 0.
#pragma once

#include <mpi.h>

#include <limits>
#include <string>

#include "haloscope/error.hpp"

namespace haloscope {

/// A separate communicator, so that no message here matches one of a transport.
class OwnComm {
 public:
  explicit OwnComm(MPI_Comm comm) { MPI_Comm_dup(comm, &comm_); }
  ~OwnComm() { MPI_Comm_free(&comm_); }
  OwnComm(const OwnComm&) = delete;
  OwnComm& operator=(const OwnComm&) = delete;
  MPI_Comm get() const { return comm_; }
  int rank() const { return (MPI_Comm_rank(comm_, &number_), number_); }
  int size() const { return (MPI_Comm_size(comm_, &number_), number_); }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  mutable int number_ = 0;
};

/// Hands the texts of all ranks to `take` on rank 0, in rank order, one at a time.
template <class Take>
void for_each_text(const OwnComm& comm, const std::string& mine, Take take) {
  constexpr int tag = 2;
  if (mine.size() > std::numeric_limits<int>::max())
    throw Error(Exit::failed,
                "a text of " + std::to_string(mine.size()) + " bytes is too long for a message; record fewer events");
  if (comm.rank() != 0) {
    MPI_Send(mine.data(), static_cast<int>(mine.size()), MPI_CHAR, 0, tag, comm.get());
    return;
  }
  take(0, mine);
  for (int r = 1; r < comm.size(); ++r) {
    MPI_Status status;
    MPI_Probe(r, tag, comm.get(), &status);
    int length = 0;
    MPI_Get_count(&status, MPI_CHAR, &length);
    std::string text(static_cast<std::size_t>(length), '\0');
    MPI_Recv(text.data(), length, MPI_CHAR, r, tag, comm.get(), MPI_STATUS_IGNORE);
    take(r, text);
  }
}

}  // namespace haloscope
