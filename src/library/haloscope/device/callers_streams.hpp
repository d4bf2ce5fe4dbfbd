// Streams of imitated devices that callers of the library have made, and the default stream of each device.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "haloscope/device/host_stream.hpp"

namespace haloscope::device::host {

/// The streams of one device. Waits between these streams are enqueued on them as work, so no call waits.
class CallersStreams {
 public:
  static CallersStreams& of(int device);

  DeviceStream make();
  /// Finishes its work. @return true if make() had returned it for this device.
  bool free(DeviceStream stream);

  /// As Device::record() and wait(). The default stream comes after the work that all others already have, and before
  /// their later work.
  void record(DeviceStream stream, HostEvent& event);
  void wait(DeviceStream stream, HostEvent& event);

  /// Enqueues work on any stream, also on one of the library; the default stream's work is ordered as above.
  void enqueue(DeviceStream stream, HostStream::Work work);
  /// Waits on the calling thread until a stream's work is done.
  void finish(DeviceStream stream);

 private:
  HostStream& at(DeviceStream stream);
  void gather();
  void scatter();

  std::mutex mutex_;
  std::unique_ptr<HostStream> default_;  // from the first call for it on
  std::vector<std::unique_ptr<HostStream>> made_;
};

}  // namespace haloscope::device::host
