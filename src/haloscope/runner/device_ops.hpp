// The operations of one program that run on a device, bound to streams and memory: everything prepared per slot.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "haloscope/core/program.hpp"
#include "haloscope/device/device.hpp"
#include "haloscope/field/view.hpp"
#include "haloscope/runner/device_rings.hpp"
#include "haloscope/transport/transport.hpp"

namespace haloscope {

/// The kernels of an app and what they are launched with, but for slots and regions.
struct DeviceSweeps {
  device::SweepFunction one = nullptr;    ///< one time step
  device::SweepFunction fused = nullptr;  ///< several; null where there is no such kernel
  device::SweepLaunch base;               ///< weights and block shape
};

/// A device with the streams that programs run on. All programs of a simulation share it.
struct DeviceStreams {
  explicit DeviceStreams(device::Device& owner);
  /// Later work of every stream starts after all present work of all of them.
  void meet();
  void finish();

  device::Device& device;
  std::array<std::unique_ptr<device::Stream>, stream_count> streams;

 private:
  std::array<std::unique_ptr<device::Event>, stream_count> ends_;
};

class DeviceOps {
 public:
  /// Local; puts the program's copies for every slot into device memory. Everything given must outlive this object.
  /// @param host   the fields in host memory, for the cells around a device's block.
  /// @param views  the fields in device memory. @param timers  take the time of every operation.
  /// @param link   null where messages are the host's business.
  DeviceOps(const Program& program, const Plan& plan, const Views& host, const Views& views, DeviceLink* link,
            DeviceStreams& streams, const DeviceSweeps& sweeps, bool timers);

  /// A new execution of the program begins.
  void begin();
  /// Give an operation to its stream, after the operations of the other stream that it waits for. Never waits.
  void enqueue(int index, int slot, int into);
  /// Run an operation of the host's lanes that hands cells to the device or takes them.
  void on_host(const Op& op, int slot);
  /// Whether an operation enqueued in this execution has finished.
  bool reached(int index) { return end(index).reached(); }
  /// The execution is enqueued as a whole: what comes later starts after it.
  void end() { streams_.meet(); }
  /// Wait until all executions have finished.
  void finish();
  /// Seconds that each operation of the program took in the executions that have finished, by the device's clock, and
  /// forget them. Waits for executions begun more than a few ago.
  void collect(std::vector<double>& op_seconds);

 private:
  /// Executions whose events are not read yet: so many may be in flight before the host waits for the oldest.
  static constexpr int in_flight = 4;
  struct Marks {
    std::unique_ptr<device::Event> begin, end;
  };
  device::Event& end(int index) { return *marks_[set_][static_cast<std::size_t>(index)].end; }
  void compile_copies(const Views& views);
  void launch(const Op& op, int slot, int into, device::Stream& stream);
  void sweep(const Sweep& sweep, int slot, int into, device::Stream& stream);
  void harvest(int set);

  const Program& program_;
  const Plan& plan_;
  const Views& views_;
  DeviceLink* link_;
  DeviceStreams& streams_;
  DeviceSweeps sweeps_;
  DeviceRings rings_;
  bool timers_;
  device::Buffer pieces_;
  std::vector<std::vector<std::vector<device::CopyLaunch>>> copies_;  // [copy set][slot][stage]
  std::array<std::vector<Marks>, in_flight> marks_;
  std::array<bool, in_flight> used_{};
  std::vector<double> seconds_;
  int set_ = in_flight - 1;
};

}  // namespace haloscope
