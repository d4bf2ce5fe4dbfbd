// The operations of one program that run on a device, bound to streams and memory: everything prepared per slot.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "haloscope/device/device.hpp"
#include "haloscope/extend/program.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/runner/device_rings.hpp"
#include "haloscope/runner/trace.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

/// The kernels of an app and their launch arguments except slots and regions.
struct DeviceSweeps {
  device::SweepFunction one = nullptr;    ///< one time step
  device::SweepFunction fused = nullptr;  ///< several; null where no such kernel exists
  device::SweepFunction faces = nullptr;  ///< one, of boundary faces that read halos from messages
  device::PassFunction passes = nullptr;  ///< of several quantities, launched by the app's sweeper
  device::SweepLaunch base;               ///< weights and block shape

  /// Returns true if the app's sweeper launches sweeps, and the functions above are null.
  bool by_sweeper() const { return one == nullptr; }
  device::SweepLaunch launch(const SlotView& from, const SlotView& into, const Box& region) const;
  /// Makes one launch. @param levels time steps that it computes. @param wrap see SweepLaunch.
  void run(device::Stream& stream, const SlotView& from, const SlotView& into, const Box& region, int levels,
           const Index& wrap = {0, 0, 0}) const;
};

/// A device with the streams that programs run on. All programs of a Run share it.
struct DeviceStreams {
  explicit DeviceStreams(device::Device& owner);
  /// Makes later work of every stream start after all present work of all streams.
  void meet();
  /// Makes later work of the other streams start after present work of the first, and vice versa.
  void fork();
  void join();
  /// Makes the host wait for all work of all streams. @throws Error where the device is lost, once no work is in
  /// flight.
  void finish();
  /// Sets the origin of times to now; no work is in flight. A device reports seconds between events in single
  /// precision, and two clocks drift: the origin of a trace must be close.
  void move_origin();
  /// Returns the time of this process's clock at which the device reached an event, in seconds.
  double time_of(device::Event& event) const { return origin_s_ + device.seconds(*origin_, event); }

  device::Device& device;
  std::array<std::unique_ptr<device::Stream>, stream_count> streams;

 private:
  std::unique_ptr<device::Event> origin_;
  double origin_s_ = 0;
  std::array<std::unique_ptr<device::Event>, stream_count> ends_;
};

/// The launch of sweeps over several quantities by the app's sweeper.
struct DevicePassCall {
  void (*run)(void* context, const Sweep& sweep, int slot, int into, device::Stream& stream) = nullptr;
  void* context = nullptr;
};

class DeviceOps {
 public:
  /// Local; puts the program's copies for every slot into device memory. All arguments must outlive this object.
  /// @param host   the fields in host memory, for the cells around a device's block.
  /// @param views  exchanged fields, in the order of the plan's quantities, in device memory.
  /// @param pass   null where sweeps are launched by `sweeps`. @param timers measure the time of every operation.
  /// @param trace_events  maximum number of events stored until collect().
  /// @param link   null where the host moves messages.
  DeviceOps(const Program& program, const Plan& plan, const Views& host, const Views& views, DeviceLink* link,
            DeviceStreams& streams, const DeviceSweeps& sweeps, bool timers, std::size_t trace_events = 0,
            const DevicePassCall& pass = {});

  /// Begins an execution of the program. @param number, step for its trace events.
  void begin(std::int64_t number, std::int64_t step);
  /// Enqueues an operation on its stream, after the operations of the other stream that it waits for. Never waits.
  void enqueue(int index, int slot, int into);
  /// Runs an operation of the host's lanes that copies cells to or from the device.
  void on_host(const Op& op, int slot);
  /// Returns true if an operation enqueued in this execution has finished. @throws Error where the device is lost.
  bool reached(int index);
  /// Makes the host wait until it has finished.
  void await(int index);
  /// Returns true if the stream itself waits for `before`, an operation of the host that `op` needs.
  bool stream_awaits(const Op& op, const Op& before) const {
    return link_ != nullptr && link_->tells_by_words() && op.kind == OpKind::h2d && before.kind == OpKind::wait &&
           op.target == before.target;
  }
  /// Returns the end of an operation.
  device::Event& end(int index) { return *marks_[set_][index].end; }
  /// Ends an execution, all of which is enqueued: later work starts after it.
  void end();
  /// Captures a program that runs on the device alone as one piece of work, which costs the host one call instead of
  /// several per operation. Work enqueued between these two calls is not run but recorded, for executions that begin
  /// with `slot`.
  void begin_capture();
  void end_capture(int slot);
  /// Discards a recording that has failed at any point: the streams are as before, and the execution does not count.
  void drop_capture();
  /// Runs a recording. @return true if one exists; it is then in flight. Its seconds count as the first sweep's.
  bool replay(int slot);
  /// Waits until all executions have finished.
  void finish();
  /// Returns the seconds of each operation of the program in the executions that have finished, by the device's
  /// clock, and their events as long as `trace` has room; resets both.
  void collect(std::vector<double>& op_seconds, std::vector<TraceEvent>& trace);

 private:
  /// Maximum number of executions with unread events in flight, before the host waits for the oldest.
  static constexpr int in_flight = 4;
  struct Marks {
    std::unique_ptr<device::Event> begin, end;
  };
  struct Execution {
    std::int64_t number = 0, step = 0;
  };
  Ids ids_of(const Op& op) const { return program_.sets[op.target]; }
  bool packed_by_sweeps(const Op& op) const;
  void compile_copies(const Views& views);
  void compile_faces();
  void launch(const Op& op, int slot, int into, device::Stream& stream);
  void sweep(const Sweep& sweep, int slot, int into, device::Stream& stream);
  void sweep_faces(const Sweep& sweep, int slot, int into, device::Stream& stream);
  void harvest(int set);
  void harvest(const Marks& marks, std::size_t op, const Execution& execution);

  const Program& program_;
  const Plan& plan_;
  const Views& views_;
  DeviceLink* link_;
  DeviceStreams& streams_;
  DeviceSweeps sweeps_;
  DevicePassCall pass_;
  DeviceRings rings_;
  bool timers_;
  device::PieceList pieces_;
  std::vector<std::vector<std::vector<device::CopyLaunch>>> copies_;  // [copy set][slot][stage]
  device::Buffer faces_;  // a FaceTable per slot, of programs whose sweeps pack
  int packed_ = -1;       // slot whose messages such sweeps have packed; -1 between runs, since fields may change
  std::array<std::vector<Marks>, in_flight> marks_;
  std::array<bool, in_flight> used_{};
  std::map<int, std::unique_ptr<device::Graph>> graphs_;  // by the first slot of an execution
  bool capturing_ = false;
  std::size_t whole_ = 0;  // the operation whose events represent a whole execution
  std::array<Execution, in_flight> executions_;
  std::vector<int> slots_;  // slots of the operations in the latest execution
  unsigned looks_ = 0;      // reads of words without effect
  std::vector<double> seconds_;
  std::vector<TraceEvent> events_;  // with room for a trace; later ones are dropped
  int set_ = in_flight - 1;
};

}  // namespace haloscope
