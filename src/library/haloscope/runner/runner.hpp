// The runner: executes programs. One control thread walks the main lane and drives the comm lane (fork-join), or one
// thread runs the whole comm lane while the others already compute (Program::comm_thread).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "haloscope/runner/comm_ops.hpp"
#include "haloscope/runner/device_ops.hpp"
#include "haloscope/runner/status.hpp"
#include "haloscope/runner/trace.hpp"

namespace haloscope {

/// The kinds of time that timers distinguish. `rest` is the time outside of all operations.
enum class Timer : std::uint8_t {
  pack,
  send,
  wait,
  unpack,
  copy,
  inner,
  outer,
  compute,
  desync,
  rest,
  d2h,
  h2d,
  reduce
};
inline constexpr int timer_count = 13;
const char* to_string(Timer timer);

/// Applies a stencil: `box` is (part of) `sweep.region`, slots are absolute, `thread` in [0, threads).
struct SweepCall {
  void (*run)(void* context, const Sweep& sweep, const Box& box, int slot, int into, int thread) = nullptr;
  void* context = nullptr;
};

/// Runs the reductions of a stage, by their numbers.
struct ReduceCall {
  void (*start)(void* context, int reduction) = nullptr;
  void (*wait)(void* context, int reduction) = nullptr;
  void* context = nullptr;
};

/// A fault or delay injected for tests: called before every operation.
struct Injection {
  void (*before)(void* context, const Op& op, std::int64_t step) = nullptr;
  void* context = nullptr;
};

/// Reads counters of events on the control thread, before and after every timed operation.
struct EventReader {
  std::size_t count = 0;
  void (*read)(void* context, double* into) = nullptr;
  void* context = nullptr;
};

struct RunnerOptions {
  int threads = 1;
  int piece = 0;  ///< layers of a sweep that a thread takes at a time; 0: even shares, or as the program specifies
  bool timers = true;
  bool yield = false;            ///< more threads or ranks than cores: yield the core while waiting
  RankStatus* status = nullptr;  ///< receives the current operation
  DeviceOps* device = nullptr;   ///< programs with operations on a device: enqueues them
  bool graph = false;            ///< programs with only device operations: capture an execution, launch it whole
  ReduceCall reduce = {};        ///< programs with reductions: runs them
  Injection injection = {};
  EventReader events = {};       ///< with timers: further counters of each operation
  std::size_t trace_events = 0;  ///< maximum number of trace events; later ones are dropped
};

class Runner {
 public:
  /// Local. `program` and `comm` must outlive the runner. Nothing allocates after construction.
  Runner(const Program& program, CommOps& comm, const SweepCall& sweep, const RunnerOptions& options);

  /// Executes the program once. @param slot current slot (absolute). @param step number of its first time step.
  /// @return the slot that holds the result. Messages and bytes are exactly the plan's. Work on a device may still be
  /// in flight; later executions come after it.
  int run(int slot, std::int64_t step);
  /// Executes a program of communication alone, never blocking in an operation; polls `stop` while it waits and gives
  /// up as soon as that returns true. An abandoned operation has had no effect. @return true if the program finished.
  bool run_unless(int slot, std::int64_t step, bool (*stop)(void* context), void* context);

  /// Waits for the device; its operations' seconds are then in the timers.
  void finish();
  /// Returns seconds per timer since the last reset, on the control thread; for a device's operations by the device's
  /// clock.
  const std::array<double, timer_count>& seconds() const { return seconds_; }
  /// The same by operation of the program, with waits separate from the completion of sends, for example.
  const std::vector<double>& op_seconds() const { return op_seconds_; }
  /// Returns the counts of an operation since the last reset, one for each counter of the reader; only of the control
  /// thread.
  std::span<const double> op_events(std::size_t op) const {
    return {op_events_.data() + op * options_.events.count, options_.events.count};
  }
  void reset_timers();
  const std::vector<TraceEvent>& trace() const { return trace_; }
  void reset_trace() { trace_.clear(); }
  const Program& program() const { return program_; }

 private:
  struct Chunks {  // progress of the team in one operation (comm_thread)
    std::atomic<std::int64_t> next{0}, finished{0};
  };
  void run_fork_join();
  void run_with_device();
  std::string describe_wait() const;
  void run_graph();
  void capture();
  void enqueue(int index);
  bool ready_on_host(const Op& op) const;
  bool ready_for_stream(const Op& op) const;
  bool try_comm();
  bool try_main();
  void run_comm_thread();
  void team_member(int thread);
  void comm_until(int op);
  void advance_comm();
  bool all_done_before(const Op& op) const;
  void sweep_alone(int index);
  void run_main(int index);
  void sweep_chunks(int index, int thread);
  void call_sweep(const Op& op, const Box& box, int thread);
  void wait_for(const std::vector<std::int32_t>& ops) const;
  void read_events(std::vector<double>& into);
  bool done(int op) const { return done_[op].load(std::memory_order_acquire) == run_; }
  void set_done(int op) { done_[op].store(run_, std::memory_order_release); }
  int absolute(int slot) const { return (base_ + slot) % program_.slots; }
  template <class F>
  void timed(int index, F f);

  const Program& program_;
  CommOps& comm_;
  SweepCall sweep_;
  RunnerOptions options_;
  std::vector<int> main_ops_, comm_ops_;
  std::array<std::vector<int>, stream_count> stream_ops_;
  std::vector<Timer> timer_of_;
  std::unique_ptr<std::atomic<std::int64_t>[]> done_;  // number of the run in which the operation finished last
  std::unique_ptr<Chunks[]> chunks_;
  std::array<double, timer_count> seconds_{};
  std::vector<double> op_seconds_, op_events_, events_then_, events_now_;
  std::vector<TraceEvent> trace_;
  std::int64_t run_ = 0, step_ = 0;
  std::size_t next_comm_ = 0, next_main_ = 0;
  int last_post_ = -1;                   // operation
  int trying_ = -1;                      // device: the comm operation last tried ...
  double main_s_ = 0, main_then_s_ = 0;  // seconds of the main lane: so far, at the first try
  double trying_since_ = 0;              // ... and since when
  int base_ = 0;
};

}  // namespace haloscope
