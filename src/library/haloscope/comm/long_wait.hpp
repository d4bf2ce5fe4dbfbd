// Waits of the host for a device and its peers, without a time limit, and with reports while they last.
#pragma once

#include <utility>

#include "haloscope/comm/patience.hpp"
#include "haloscope/core/spin.hpp"

namespace haloscope {

/// A wait that polls, with its text for reports. Other waits of this thread do not report during it.
class LongWait {
 public:
  /// @param yield  more ranks than cores: yield the core while waiting.
  explicit LongWait(bool yield) : spin_(yield), outer_(std::exchange(current_wait, nullptr)) {}
  ~LongWait() { current_wait = outer_; }
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;
  /// Pauses between two polls, see look().
  template <class Describe>
  void again(Describe describe) {
    constexpr int looks_per_clock = 64;
    spin_.again();
    if (++looks_ % looks_per_clock == 0) look(describe);
  }
  /// Reports each time that patience_s() have passed.
  /// @param describe  returns the current state: the waiting rank and the missing event.
  template <class Describe>
  void look(Describe describe) {
    report_due(clock_, describe);
  }

  /// Resets the clock: the awaited event has happened, and the wait goes on for the next one.
  void found() { clock_.reset(); }

 private:
  Spin spin_;
  WatchedWait* outer_;
  unsigned looks_ = 0;
  ReportClock clock_;
};

}  // namespace haloscope
