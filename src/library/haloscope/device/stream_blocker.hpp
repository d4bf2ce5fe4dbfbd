// Work that keeps a stream busy, for measurements of work that is enqueued meanwhile.
#pragma once

#include "haloscope/device/device.hpp"

namespace haloscope::device {

/// A stream without work runs each piece as it comes, and the time between two events on it is the host's: it includes
/// the gap before the work is enqueued. Behind a StreamBlocker all the work is enqueued when its turn comes.
class StreamBlocker {
 public:
  /// @param seconds  its duration; by default longer than the host takes to enqueue a few pieces of work.
  explicit StreamBlocker(Device& device, double seconds = 5e-5);
  /// Enqueues it on a stream. One at a time.
  void on(Stream& stream) const;

 private:
  Device& device_;
  Buffer words_, relayed_;
  ExchangeLaunch launch_;
};

}  // namespace haloscope::device
