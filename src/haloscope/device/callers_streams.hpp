// Streams of imitated devices that callers of the library have made, and the default stream of each device.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "haloscope/device/host_stream.hpp"

namespace haloscope::device::host {

/// Of one device. Waits between these streams are put into them as work, so no call waits.
class CallersStreams {
 public:
  static CallersStreams& of(int device);

  DeviceStream make();
  /// Finishes its work. @return whether make() had returned it for this device.
  bool free(DeviceStream stream);

  /// As Device::record() and wait(). The default stream comes after all the others have been given, and before what
  /// they are given next.
  void record(DeviceStream stream, HostEvent& event);
  void wait(DeviceStream stream, HostEvent& event);

  /// Work for a stream, be it one of the library; that of the default stream is ordered as above.
  void enqueue(DeviceStream stream, HostStream::Work work);
  /// The calling thread waits until a stream's work is done.
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
