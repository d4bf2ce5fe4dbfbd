// The watchdog: a thread of each rank that ends the run when the rank makes no progress, and says where it stands.
#pragma once

#include <atomic>
#include <thread>

#include "haloscope/runner/status.hpp"

namespace haloscope {

class Watchdog {
 public:
  /// @param seconds  limit; 0: the larger of 10 s and 20 x the median step set by `median_step`.
  Watchdog(const StatusBoard& board, RankStatus& mine, int rank, double seconds);
  ~Watchdog();
  void median_step(double seconds) { median_step_.store(seconds); }

 private:
  void watch();
  double limit() const;
  std::int64_t all_heartbeats() const;
  int blamed() const;
  void report_and_exit(double stuck_s) const;

  const StatusBoard& board_;
  RankStatus& mine_;
  int rank_;
  double seconds_;
  std::atomic<double> median_step_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace haloscope
