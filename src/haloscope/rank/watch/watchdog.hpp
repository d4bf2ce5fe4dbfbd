// The watchdog: a thread of each rank that ends the run when the rank makes no progress, and says where it stands.
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
  /// @param seconds  limit; 0: the larger of 10 s and 20 x the median step set by `median_step`.
  Watchdog(const StatusBoard& board, RankStatus& mine, int rank, double seconds);
  ~Watchdog();
  void median_step(double seconds) { median_step_.store(seconds); }
  /// What else to say of a rank that is stuck; called by the watchdog's thread. Null: nothing.
  void explain(std::function<std::string()> say);

 private:
  void watch();
  double limit() const;
  std::int64_t all_heartbeats() const;
  int blamed() const;
  std::string said() const;
  void report_and_exit(double stuck_s) const;

  const StatusBoard& board_;
  RankStatus& mine_;
  int rank_;
  double seconds_;
  std::atomic<double> median_step_{0};
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
