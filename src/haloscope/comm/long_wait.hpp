// Waits of the host for what a device and its peers do: they last as long as it takes, and are reported while they do.
#pragma once

#include <utility>

#include "haloscope/comm/patience.hpp"
#include "haloscope/core/spin.hpp"

namespace haloscope {

/// A wait that polls, with a text of its own for reports. Others of this thread do not report meanwhile.
class LongWait {
 public:
  /// @param yield  more ranks than cores: give the core away while waiting.
  explicit LongWait(bool yield) : spin_(yield), outer_(std::exchange(current_wait, nullptr)) {}
  ~LongWait() { current_wait = outer_; }
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;
  /// Rests between two looks, see look().
  template <class Describe>
  void again(Describe describe) {
    constexpr int looks_per_clock = 64;
    spin_.again();
    if (++looks_ % looks_per_clock == 0) look(describe);
  }
  /// Reports each time that patience_s() have passed.
  /// @param describe  returns who waits for what, as it stands now.
  template <class Describe>
  void look(Describe describe) {
    report_due(clock_, describe);
  }

  /// What it waits for next is something else.
  void found() { clock_.reset(); }

 private:
  Spin spin_;
  WatchedWait* outer_;
  unsigned looks_ = 0;
  ReportClock clock_;
};

}  // namespace haloscope
