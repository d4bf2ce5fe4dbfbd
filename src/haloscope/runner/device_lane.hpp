// What a device does for an exchange: the operations of its program on a stream, between those that a caller's streams
// hold.
#pragma once

#include <memory>

#include "haloscope/runner/device_ops.hpp"

namespace haloscope {

class DeviceLane {
 public:
  /// Local. `program`, `plan` and `views` must outlive it.
  DeviceLane(device::Device& device, const Program& program, const Plan& plan, const Views& views);
  /// Its streams end their work, which uses what is about to go.
  ~DeviceLane() {
    device::call_even_if_lost([this] { streams_.finish(); });
  }
  DeviceLane(const DeviceLane&) = delete;
  DeviceLane& operator=(const DeviceLane&) = delete;
  /// Operations go to this link from here on; puts the program's copies into device memory.
  void bind(DeviceLink& link);

  /// An exchange begins: its work comes after what a caller's stream has been given.
  void begin(DeviceStream after);
  void enqueue(int op, int slot);
  /// Whether an operation of the host finds done what it needs of the device.
  bool ready(const Op& op);
  void await(const Op& op);
  /// Whether an operation of the device may be given to its stream once the host's up to, not including, `next` are
  /// done.
  bool may_enqueue(const Op& op, std::size_t next) const;
  /// Whether all that was enqueued is done.
  bool reached() { return end().reached(); }
  void finish();
  /// A caller's stream goes on when all is done; the host does not wait.
  void finish(DeviceStream before);

 private:
  /// Of the exchange's last operation; where it has none, of the work that the caller's stream had been given before.
  device::Event& end() { return last_ >= 0 ? ops_->end(last_) : *given_; }
  /// The device's operations that one of the host has to wait for.
  template <class F>
  void each_needed(const Op& op, F f) const;

  const Program& program_;
  const Plan& plan_;
  const Views& views_;
  DeviceStreams streams_;
  std::unique_ptr<device::Event> given_;  // by the caller's stream
  std::unique_ptr<DeviceOps> ops_;
  int last_ = -1;  // operation of this exchange; they are in order
  std::int64_t exchanges_ = 0;
};

}  // namespace haloscope
