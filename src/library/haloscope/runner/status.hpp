// The status board: the current operation of each rank, readable from outside while it hangs or after it died.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace haloscope {

/// The state of a rank that executes no operation. Operations use their OpKind number.
enum class Phase : std::int32_t { setup = 100, verify = 101, idle = 102, done = 103 };

/// One rank's 64-byte place on the board. Only that rank writes it, any process may read it.
struct alignas(64) RankStatus {
  std::atomic<std::int32_t> pid{0};
  std::atomic<std::int32_t> phase{static_cast<std::int32_t>(Phase::setup)};
  std::atomic<std::int64_t> step{0};
  std::atomic<std::int64_t> order{0};         ///< number of the configuration in its launch
  std::atomic<std::int32_t> waiting_for{-1};  ///< a rank whose message it waits for, -1: none
  std::atomic<std::int32_t> pad{0};
  std::atomic<std::int64_t> heartbeat{0};  ///< grows with every operation

  void set(std::int32_t new_phase, std::int32_t peer = -1) {
    phase.store(new_phase, std::memory_order_relaxed);
    waiting_for.store(peer, std::memory_order_relaxed);
    heartbeat.store(heartbeat.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void set(Phase new_phase) { set(static_cast<std::int32_t>(new_phase)); }
};
static_assert(sizeof(RankStatus) == 64);

/// The board of all ranks of a run: a small file mapped by every rank of one node, or private memory without a file.
class StatusBoard {
 public:
  /// @param path  file to share, "" for private memory; @param ranks  size of the run; @param rank  this rank.
  /// @throws Error when the file cannot be made or mapped.
  StatusBoard(const std::string& path, int ranks, int rank);
  ~StatusBoard();
  StatusBoard(const StatusBoard&) = delete;
  StatusBoard& operator=(const StatusBoard&) = delete;

  RankStatus& mine() { return slots_[rank_]; }
  const RankStatus& of(int rank) const { return slots_[rank]; }
  int ranks() const { return ranks_; }
  /// Returns true if other ranks' places are filled (a shared file).
  bool shared() const { return shared_; }

 private:
  int ranks_, rank_;
  bool shared_;
  void* mapping_ = nullptr;
  std::size_t bytes_ = 0;
  RankStatus* slots_ = nullptr;
};

/// Returns the name of a phase number for users: an operation, or setup, verify, idle, done.
std::string phase_name(std::int32_t phase);

}  // namespace haloscope
