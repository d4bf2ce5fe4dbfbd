#include "haloscope/comm/shared_failure.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>

#include "haloscope/comm/mpi_call.hpp"

namespace haloscope {
namespace {

/// Bytes of a reason: MPI sends so few without waiting for the receiver, which may have no reason to look.
constexpr std::size_t longest_reason = 1000;

/// @return the text of a message that MPI_Iprobe() may find; empty: there is none.
std::string received_text(MPI_Comm comm, int tag) {
  int there = 0, bytes = 0;
  MPI_Status status;
  REQUIRE_MPI(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &there, &status));
  if (!there) return "";
  REQUIRE_MPI(MPI_Get_count(&status, MPI_CHAR, &bytes));
  if (bytes < 0 || bytes > static_cast<int>(longest_reason)) return "";  // not a reason
  std::string text(static_cast<std::size_t>(bytes), ' ');
  REQUIRE_MPI(MPI_Recv(text.data(), bytes, MPI_CHAR, status.MPI_SOURCE, status.MPI_TAG, comm, MPI_STATUS_IGNORE));
  return text;
}

/// Objects that have sent nothing.
struct Open {
  std::mutex mutex;
  std::vector<SharedFailure*> all;
};

/// Never destroyed: exchanges may outlive static objects. A wait is the first to ask for it where no device works, and must need
/// no memory.
Open& open_ones() {
  alignas(Open) static std::array<std::byte, sizeof(Open)> place;
  static Open& open = *new (place.data()) Open;
  return open;
}

/// Messages leave MPI's queues while it is called; this rank may not call it again.
void push(std::vector<MPI_Request>& requests) {
  constexpr int polls = 1000;
  int done = 0;
  for (int poll = 0; poll < polls && !done; ++poll)
    REQUIRE_MPI(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE));
  for (MPI_Request& request : requests)
    if (request != MPI_REQUEST_NULL) REQUIRE_MPI(MPI_Request_free(&request));
}

}  // namespace

SharedFailure::SharedFailure(MPI_Comm comm, int tag, std::vector<int> peers)
    : comm_(comm), tag_(tag), peers_(std::move(peers)) {
  const std::lock_guard lock(open_ones().mutex);
  open_ones().all.push_back(this);
}

SharedFailure::~SharedFailure() {
  const std::lock_guard lock(open_ones().mutex);
  std::erase(open_ones().all, this);
}

void SharedFailure::send(const std::string& reason) {
  const std::lock_guard lock(open_ones().mutex);
  if (std::erase(open_ones().all, this) == 0) return;
  const auto* const text =
      new std::string(reason.substr(0, longest_reason));  // MPI may read it as long as the program runs
  std::vector<MPI_Request> requests(peers_.size());
  for (std::size_t i = 0; i < peers_.size(); ++i)
    REQUIRE_MPI(
        MPI_Isend(text->data(), static_cast<int>(text->size()), MPI_CHAR, peers_[i], tag_, comm_, &requests[i]));
  push(requests);
}

void SharedFailure::receive_the_rest(MPI_Comm comm) {
  while (!received_text(comm, MPI_ANY_TAG).empty()) continue;
}

void SharedFailure::look() {
  const std::lock_guard lock(open_ones().mutex);
  for (SharedFailure* const one : open_ones().all) {
    if (one->reason_.empty()) one->reason_ = received_text(one->comm_, one->tag_);
    if (!one->reason_.empty()) throw PeerFailure(one->reason_);
  }
}

}  // namespace haloscope
