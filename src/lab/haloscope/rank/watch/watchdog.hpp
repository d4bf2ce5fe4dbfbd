// The watchdog: a thread of each rank that reports the rank's operation if it makes no progress, and ends the run on
// request.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "haloscope/runner/status.hpp"

namespace haloscope {

class Watchdog {
 public:
  /// @param seconds  without progress that end the run; 0: none do, each HALOSCOPE_PATIENCE seconds are reported.
  Watchdog(const StatusBoard& board, RankStatus& mine, int rank, double seconds);
  ~Watchdog();
  /// Sets a function that returns further text on a stuck rank; called by the watchdog's thread. Null: none.
  void explain(std::function<std::string()> say);

 private:
  void watch();
  std::int64_t all_heartbeats() const;
  int blamed() const;
  std::string explanation() const;
  /// @param stuck  as "made no progress".
  void report(const std::string& stuck, double stuck_s) const;
  [[noreturn]] void end_run() const;

  const StatusBoard& board_;
  RankStatus& mine_;
  int rank_;
  double seconds_;
  std::atomic<bool> stop_{false};
  mutable std::mutex saying_;
  std::function<std::string()> say_;
  std::thread thread_;
};

/// An explanation, as long as this lives.
class WatchdogHint {
 public:
  WatchdogHint(Watchdog* watchdog, std::function<std::string()> say) : watchdog_(watchdog) {
    if (watchdog_ != nullptr) watchdog_->explain(std::move(say));
  }
  ~WatchdogHint() {
    if (watchdog_ != nullptr) watchdog_->explain(nullptr);
  }
  WatchdogHint(const WatchdogHint&) = delete;
  WatchdogHint& operator=(const WatchdogHint&) = delete;

 private:
  Watchdog* watchdog_;
};

}  // namespace haloscope
