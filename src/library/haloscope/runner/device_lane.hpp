// The device lane of an exchange: the operations of its program on a stream, between the work of a caller's streams.
#pragma once

#include <memory>

#include "haloscope/runner/device_ops.hpp"

namespace haloscope {

class DeviceLane {
 public:
  /// Local. `program`, `plan` and `views` must outlive it.
  DeviceLane(device::Device& device, const Program& program, const Plan& plan, const Views& views);
  /// Waits for its streams, whose work uses memory that is freed next.
  ~DeviceLane() {
    device::call_even_if_lost([this] { streams_.finish(); });
  }
  DeviceLane(const DeviceLane&) = delete;
  DeviceLane& operator=(const DeviceLane&) = delete;
  /// Binds operations to a link from now on; puts the program's copies into device memory.
  void bind(DeviceLink& link);

  /// Begins an exchange: its work comes after the work already enqueued on a caller's stream.
  void begin(DeviceStream after);
  void enqueue(int op, int slot);
  /// Returns true if the device's operations that an operation of the host needs are done.
  bool ready(const Op& op);
  void await(const Op& op);
  /// Returns true if an operation of the device may be enqueued once the host's operations up to, not including,
  /// `next` are done.
  bool may_enqueue(const Op& op, std::size_t next) const;
  /// Returns true if all enqueued work is done.
  bool reached() { return end().reached(); }
  void finish();
  /// Makes a caller's stream wait until all is done; the host does not wait.
  void finish(DeviceStream before);

 private:
  /// Returns the end of the exchange's last operation; where it has none, of the work enqueued on the caller's stream
  /// before.
  device::Event& end() { return last_ >= 0 ? ops_->end(last_) : *enqueued_; }
  /// Calls `f` for the device's operations that an operation of the host has to wait for.
  template <class F>
  void each_needed(const Op& op, F f) const;

  const Program& program_;
  const Plan& plan_;
  const Views& views_;
  DeviceStreams streams_;
  std::unique_ptr<device::Event> enqueued_;  // work enqueued on the caller's stream
  std::unique_ptr<DeviceOps> ops_;
  int last_ = -1;  // last operation of this exchange; operations are in order
  std::int64_t exchanges_ = 0;
};

}  // namespace haloscope
