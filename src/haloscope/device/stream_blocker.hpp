// Work that keeps a stream busy, for measuring what is given to it meanwhile.
#pragma once

#include "haloscope/device/device.hpp"

namespace haloscope::device {

/// A stream without work does each piece as it comes, and the time between two events on it is the host's: it holds the
/// gap before the work is handed over. Behind a Hold the work is all there when its turn comes.
class StreamBlocker {
 public:
  /// @param seconds  how long; by default longer than the host takes to hand over a few pieces of work.
  explicit StreamBlocker(Device& device, double seconds = 5e-5);
  /// Gives it to a stream. One at a time.
  void on(Stream& stream) const;

 private:
  Device& device_;
  Buffer words_, told_;
  ExchangeLaunch launch_;
};

}  // namespace haloscope::device
