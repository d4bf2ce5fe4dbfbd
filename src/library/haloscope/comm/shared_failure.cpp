#include "haloscope/comm/shared_failure.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>

#include "haloscope/comm/mpi_call.hpp"

namespace haloscope {
namespace {

/// Maximum bytes of a reason: MPI sends this number without waiting for the receiver, which may never receive it.
constexpr std::size_t longest_reason = 1000;

/// Receives a message that MPI_Iprobe() may find; allocates nothing. @return its text, in `place`; empty: no message.
std::string_view receive_text(MPI_Comm comm, int tag, std::array<char, longest_reason>& place) {
  int there = 0, bytes = 0;
  MPI_Status status;
  REQUIRE_MPI(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &there, &status));
  if (!there) return {};
  REQUIRE_MPI(MPI_Get_count(&status, MPI_CHAR, &bytes));
  if (bytes < 0 || bytes > static_cast<int>(longest_reason)) return {};  // not a reason
  REQUIRE_MPI(MPI_Recv(place.data(), bytes, MPI_CHAR, status.MPI_SOURCE, status.MPI_TAG, comm, MPI_STATUS_IGNORE));
  return {place.data(), static_cast<std::size_t>(bytes)};
}

/// Objects that have not sent a reason.
struct Open {
  std::mutex mutex;
  std::vector<SharedFailure*> all;
};

/// Returns the open objects. They are never destroyed: exchanges may outlive static objects. Where no device works,
/// the first call comes from a wait, and must not allocate.
Open& open_ones() {
  alignas(Open) static std::array<std::byte, sizeof(Open)> place;
  static Open& open = *new (place.data()) Open;
  return open;
}

/// Lets MPI send the messages: they leave its queues while it is called, and this rank may not call it again.
void push(std::vector<MPI_Request>& requests) {
  constexpr int polls = 1000;
  int done = 0;
  for (int poll = 0; poll < polls && !done; ++poll)
    REQUIRE_MPI(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE));
  for (MPI_Request& request : requests)
    if (request != MPI_REQUEST_NULL) REQUIRE_MPI(MPI_Request_free(&request));
}

}  // namespace

/// A message with a reason, allocated before a failure, which may be exhausted memory.
struct SharedFailure::Letter {
  std::array<char, longest_reason> text;
  std::vector<MPI_Request> requests;
};

SharedFailure::SharedFailure(MPI_Comm comm, int tag, std::vector<int> peers)
    : comm_(comm),
      tag_(tag),
      peers_(std::move(peers)),
      letter_(new Letter{{}, std::vector<MPI_Request>(peers_.size())}) {
  const std::lock_guard lock(open_ones().mutex);
  open_ones().all.push_back(this);
}

SharedFailure::~SharedFailure() {
  const std::lock_guard lock(open_ones().mutex);
  std::erase(open_ones().all, this);
}

void SharedFailure::send(const char* reason) {
  const std::lock_guard lock(open_ones().mutex);
  if (std::erase(open_ones().all, this) == 0) return;
  Letter& letter = *letter_.release();  // MPI may read it until the program ends
  const std::size_t bytes = std::min(std::strlen(reason), longest_reason);
  std::copy_n(reason, bytes, letter.text.begin());
  for (std::size_t i = 0; i < peers_.size(); ++i)
    REQUIRE_MPI(
        MPI_Isend(letter.text.data(), static_cast<int>(bytes), MPI_CHAR, peers_[i], tag_, comm_, &letter.requests[i]));
  push(letter.requests);
}

void SharedFailure::receive_the_rest(MPI_Comm comm) {
  std::array<char, longest_reason> place;
  while (!receive_text(comm, MPI_ANY_TAG, place).empty()) continue;
}

void SharedFailure::look() {
  const std::lock_guard lock(open_ones().mutex);
  std::array<char, longest_reason> place;
  for (SharedFailure* const one : open_ones().all) {
    if (one->reason_.empty()) one->reason_ = receive_text(one->comm_, one->tag_, place);
    if (!one->reason_.empty()) throw PeerFailure(one->reason_);
  }
}

}  // namespace haloscope
