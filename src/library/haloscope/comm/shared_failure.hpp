// Failures that ranks share: a rank that cannot continue sends the reason to its peers, whose long waits check for
// it.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "haloscope/core/spin.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

/// Another rank cannot continue, so that this one would wait for it indefinitely. what() is the reason that the first
/// failed rank sent.
struct PeerFailure : Error {
  explicit PeerFailure(const std::string& reason) : Error(Exit::failed, reason) {}
};

/// The failure of an exchange or a Stepper on a device. Every rank that receives it passes it on, so that it reaches
/// all ranks that a chain of peers connects to the first.
class SharedFailure {
 public:
  /// Local. @param tag tag that no other messages between these ranks use. @param peers peers of this rank, without
  /// itself.
  SharedFailure(MPI_Comm comm, int tag, std::vector<int> peers);
  ~SharedFailure();
  SharedFailure(const SharedFailure&) = delete;
  SharedFailure& operator=(const SharedFailure&) = delete;

  /// Sends the reason to all peers, the first time; reasons of peers are not received after that. Local; allocates
  /// nothing.
  void send(const char* reason);
  /// Checks all objects of this process that have not sent a reason: a peer's device may have failed in another
  /// exchange than the one that this rank waits in. Local.
  /// @throws PeerFailure where a peer has sent a reason, each time.
  /// Cost: an MPI_Iprobe for each object.
  static void look();
  /// Receives messages of peers that this rank did not wait for: MPI may refuse to free a communicator with messages.
  /// No other message may be in flight on it. Local.
  static void receive_the_rest(MPI_Comm comm);

 private:
  MPI_Comm comm_;
  int tag_;
  std::vector<int> peers_;
  std::string reason_;  // that a peer has sent
  struct Letter;
  std::unique_ptr<Letter> letter_;  // to the peers
};

/// Makes long waits of this thread check for failures of peers, and end with a PeerFailure, for its lifetime. Waits
/// of settle.hpp and together.hpp poll then.
class FailureWatch {
 public:
  /// @param watches  false: nothing changes.
  explicit FailureWatch(bool watches = true)
      : before_(std::exchange(look_for_failures, watches ? &SharedFailure::look : look_for_failures)) {}
  ~FailureWatch() { look_for_failures = before_; }
  FailureWatch(const FailureWatch&) = delete;
  FailureWatch& operator=(const FailureWatch&) = delete;

 private:
  void (*before_)();
};

}  // namespace haloscope
