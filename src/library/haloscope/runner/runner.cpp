#include "haloscope/runner/runner.hpp"

#include <algorithm>

#include "haloscope/comm/long_wait.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/mpi_progress.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/core/spin.hpp"
#include "haloscope/runner/threads.hpp"

namespace haloscope {

namespace {

Timer timer_for(const Program& program, const Op& op) {
  switch (op.kind) {
    case OpKind::barrier:
      return Timer::desync;
    case OpKind::post:
    case OpKind::send:
      return Timer::send;
    case OpKind::copy:
      return Timer::copy;
    case OpKind::pack:
    case OpKind::gather:
      return Timer::pack;
    case OpKind::wait:
    case OpKind::complete:
      return Timer::wait;
    case OpKind::unpack:
    case OpKind::scatter:
      return Timer::unpack;
    case OpKind::sweep: {
      const Part part = program.sweeps[op.target].part;
      return part == Part::inner ? Timer::inner : part == Part::outer ? Timer::outer : Timer::compute;
    }
    case OpKind::transfer:
      return program.rings[op.target].to_device ? Timer::h2d : Timer::d2h;
    case OpKind::d2h:
      return Timer::d2h;
    case OpKind::h2d:
      return Timer::h2d;
    case OpKind::reduce:
    case OpKind::reduced:
      return Timer::reduce;
    case OpKind::progress:
      break;
  }
  return Timer::rest;
}

}  // namespace

const char* to_string(Timer timer) {
  static const char* const names[] = {"pack",    "send",   "wait", "unpack", "copy", "inner", "outer",
                                      "compute", "desync", "rest", "d2h",    "h2d",  "reduce"};
  return names[static_cast<int>(timer)];
}

Runner::Runner(const Program& program, CommOps& comm, const SweepCall& sweep, const RunnerOptions& options)
    : program_(program),
      comm_(comm),
      sweep_(sweep),
      options_(options),
      done_(new std::atomic<std::int64_t>[program.ops.size()]),
      chunks_(new Chunks[program.ops.size()]) {
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Lane lane = program.ops[i].lane;
    (on_device(lane)      ? stream_ops_[stream_of(lane)]
     : lane == Lane::comm ? comm_ops_
                          : main_ops_)
        .push_back(static_cast<int>(i));
    if (program.ops[i].kind == OpKind::post) last_post_ = static_cast<int>(i);
    timer_of_.push_back(timer_for(program, program.ops[i]));
    done_[i].store(0);
  }
  op_seconds_.assign(program.ops.size(), 0);
  op_events_.assign(program.ops.size() * options.events.count, 0);
  events_then_.resize(options.events.count);
  events_now_.resize(options.events.count);
  trace_.reserve(options.trace_events);
}

void Runner::reset_timers() {
  seconds_.fill(0);
  std::fill(op_seconds_.begin(), op_seconds_.end(), 0.0);
  std::fill(op_events_.begin(), op_events_.end(), 0.0);
}

void Runner::read_events(std::vector<double>& into) {
  if (options_.events.read) options_.events.read(options_.events.context, into.data());
}

template <class F>
void Runner::timed(int index, F f) {
  const Op& op = program_.ops[index];
  if (options_.status) options_.status->set(static_cast<std::int32_t>(op.kind), comm_.awaited(op, absolute(op.slot)));
  if (options_.injection.before) options_.injection.before(options_.injection.context, op, step_);
  if (!options_.timers) return static_cast<void>(f());
  read_events(events_then_);
  const double begin = now_s();
  f();
  const double end = now_s();
  read_events(events_now_);
  for (std::size_t i = 0; i < events_now_.size(); ++i)
    op_events_[static_cast<std::size_t>(index) * events_now_.size() + i] += events_now_[i] - events_then_[i];
  seconds_[static_cast<int>(timer_of_[index])] += end - begin;
  op_seconds_[index] += end - begin;
  if (trace_.size() < options_.trace_events) trace_.push_back({index, run_, step_, begin, end});
}

int Runner::run(int slot, std::int64_t step) {
  const MpiProgress progress(comm_.comm());
  base_ = slot;
  step_ = step;
  ++run_;
  next_comm_ = 0;
  if (options_.status) options_.status->step.store(step, std::memory_order_relaxed);
  const double begin = options_.timers ? now_s() : 0;
  double accounted = 0;
  for (double s : seconds_) accounted -= s;
  if (program_.device)
    run_with_device();
  else if (program_.comm_thread && options_.threads > 1)
    run_comm_thread();
  else
    run_fork_join();
  if (options_.timers) {
    for (double s : seconds_) accounted += s;
    seconds_[static_cast<int>(Timer::rest)] += now_s() - begin - accounted;
  }
  return absolute(program_.final_slot);
}

bool Runner::run_unless(int slot, std::int64_t step, bool (*stop)(void*), void* context) {
  const MpiProgress progress(comm_.comm());
  base_ = slot;
  step_ = step;
  ++run_;
  for (next_comm_ = 0; next_comm_ < comm_ops_.size(); ++next_comm_) {
    const int index = comm_ops_[next_comm_];
    const Op& op = program_.ops[index];
    bool finished = false;
    timed(index, [&] {
      Spin spin(options_.yield);
      while (!(finished = comm_.try_run(op, absolute(op.slot))) && !stop(context)) spin.again();
    });
    if (!finished) return false;
    set_done(index);
  }
  return true;
}

// ---- fork-join: one control thread, sweeps and packing shared by the team -------------------------------------------

void Runner::run_fork_join() {
  for (int index : main_ops_) {
    const Op& op = program_.ops[index];
    for (std::int32_t before : op.after)
      if (!done(before)) comm_until(before);
    if (op.kind == OpKind::progress)
      advance_comm();
    else
      timed(index, [&] { run_main(index); });
    set_done(index);
  }
  while (next_comm_ < comm_ops_.size()) comm_until(comm_ops_[next_comm_]);
}

void Runner::comm_until(int op) {
  while (!done(op) && next_comm_ < comm_ops_.size()) {
    const int index = comm_ops_[next_comm_++];
    const Op& next = program_.ops[index];
    timed(index, [&] { comm_.run(next, absolute(next.slot), options_.threads); });
    set_done(index);
  }
}

bool Runner::all_done_before(const Op& op) const {
  return std::all_of(op.after.begin(), op.after.end(), [this](std::int32_t before) { return done(before); });
}

void Runner::advance_comm() {
  while (next_comm_ < comm_ops_.size()) {
    const int index = comm_ops_[next_comm_];
    const Op& op = program_.ops[index];
    if (!all_done_before(op)) return;
    bool finished = false;
    timed(index, [&] { finished = comm_.try_run(op, absolute(op.slot), options_.threads); });
    if (!finished) return;
    set_done(index);
    ++next_comm_;
  }
}

void Runner::call_sweep(const Op& op, const Box& box, int thread) {
  const Sweep& sweep = program_.sweeps[op.target];
  sweep_.run(sweep_.context, sweep, box, absolute(op.slot), absolute(sweep.into), thread);
}

/// Runs an operation of the main lane on the control thread: a sweep that the team shares, or a reduction.
void Runner::run_main(int index) {
  const Op& op = program_.ops[index];
  const ReduceCall& reduce = options_.reduce;
  if (op.kind == OpKind::reduce) return reduce.start(reduce.context, op.target);
  if (op.kind == OpKind::reduced) return reduce.wait(reduce.context, op.target);
  sweep_alone(index);
}

void Runner::sweep_alone(int index) {
  const Op& op = program_.ops[index];
  const Sweep& sweep = program_.sweeps[op.target];
  const Box& region = sweep.region;
  const int threads = options_.threads;
  const bool in_place = sweep.in_place;  // the kernel divides it among the team: its threads depend on each other
  if (threads == 1 || (region.volume() < shared_sweep_cells && !in_place)) return call_sweep(op, region, 0);
  if (options_.piece > 0 && !in_place) {
    chunks_[index].next.store(0, std::memory_order_relaxed);
    chunks_[index].finished.store(0, std::memory_order_relaxed);
    on_threads(threads, [&](int thread) { sweep_chunks(index, thread); });
    return;
  }
  on_threads(threads, [&](int thread) {
    const Box part = in_place ? region : part_of(region, {thread, threads});
    if (!part.empty()) call_sweep(op, part, thread);
  });
}

// ---- device: one thread feeds the streams and drives the comm lane, whichever can proceed -------------------------

/// Returns true if the host may run an operation. Messages of a kernel that signals are sent while it runs: their
/// link finds the ready ones.
bool Runner::ready_on_host(const Op& op) const {
  return std::all_of(op.after.begin(), op.after.end(), [&](std::int32_t before) {
    const Op& earlier = program_.ops[before];
    return done(before) &&
           (!on_device(earlier.lane) || program_.starts_within(op, earlier) || options_.device->reached(before));
  });
}

/// Returns true if an operation may be enqueued: once all operations of the host that it needs are done, or once the
/// stream itself waits for them: for messages, whose receives must have been posted.
bool Runner::ready_for_stream(const Op& op) const {
  return std::all_of(op.after.begin(), op.after.end(), [&](std::int32_t before) {
    return done(before) ||
           (options_.device->stream_awaits(op, program_.ops[before]) && (last_post_ < 0 || done(last_post_)));
  });
}

/// Enqueues an operation of a device, which then counts as done: the streams order these operations among themselves.
void Runner::enqueue(int index) {
  const Op& op = program_.ops[index];
  if (options_.status) options_.status->set(static_cast<std::int32_t>(op.kind));
  if (options_.injection.before) options_.injection.before(options_.injection.context, op, step_);
  const int into = op.kind == OpKind::sweep ? program_.sweeps[op.target].into : 0;
  options_.device->enqueue(index, absolute(op.slot), absolute(into));
  set_done(index);
}

/// Runs the next operation of the comm lane, if it need not wait. Its time counts from the first try, less the time
/// of the main lane since then.
bool Runner::try_comm() {
  const int index = comm_ops_[next_comm_];
  const Op& op = program_.ops[index];
  if (!ready_on_host(op)) return false;
  if (trying_ != index) {
    trying_ = index;
    if (options_.status) options_.status->set(static_cast<std::int32_t>(op.kind), comm_.awaited(op, absolute(op.slot)));
    if (options_.injection.before) options_.injection.before(options_.injection.context, op, step_);
    trying_since_ = now_s();
    main_then_s_ = main_s_;
  }
  if (op.kind == OpKind::barrier)
    comm_.run(op, absolute(op.slot));
  else if (!comm_.try_run(op, absolute(op.slot)))
    return false;
  trying_ = -1;
  const double end = now_s(), spent = end - trying_since_ - (main_s_ - main_then_s_);
  seconds_[static_cast<int>(timer_of_[index])] += spent;
  op_seconds_[index] += spent;
  if (trace_.size() < options_.trace_events) trace_.push_back({index, run_, step_, trying_since_, end});
  set_done(index);
  ++next_comm_;
  return true;
}

/// Runs the next operation of the main lane to its end, if it need not wait.
bool Runner::try_main() {
  const int index = main_ops_[next_main_];
  const Op& op = program_.ops[index];
  if (!ready_on_host(op)) return false;
  const double begin = now_s();
  const bool ring = op.kind == OpKind::gather || op.kind == OpKind::scatter || op.kind == OpKind::transfer;
  timed(index, [&] { ring ? options_.device->on_host(op, absolute(op.slot)) : run_main(index); });
  main_s_ += now_s() - begin;
  set_done(index);
  ++next_main_;
  return true;
}

/// Captures an execution; a single rank has no messages.
void Runner::capture() {
  try {
    options_.device->begin_capture();
    for (std::size_t i = 0; i < program_.ops.size(); ++i)
      if (on_device(program_.ops[i].lane)) enqueue(static_cast<int>(i));
    options_.device->end_capture(base_);
  } catch (...) {
    options_.device->drop_capture();
    throw;
  }
}

void Runner::run_graph() {
  DeviceOps& device = *options_.device;
  device.begin(run_, step_);
  if (!device.replay(base_)) {
    capture();
    device.replay(base_);
  }
  device.end();
}

std::string Runner::describe_wait() const {
  if (next_comm_ == comm_ops_.size()) return "its device is at work";
  const Op& op = program_.ops[comm_ops_[next_comm_]];
  const int peer = comm_.awaited(op, absolute(op.slot));
  return std::string("operation '") + to_string(op.kind) + "' of step " + std::to_string(step_) +
         (peer >= 0 ? " exchanges messages with " + name_rank(comm_.comm(), peer) : " waits for its device");
}

void Runner::run_with_device() {
  if (options_.graph) return run_graph();
  options_.device->begin(run_, step_);
  next_main_ = 0;
  std::array<std::size_t, stream_count> next{};
  const auto enqueue_next = [&](int s) {
    if (next[s] == stream_ops_[s].size() || !ready_for_stream(program_.ops[stream_ops_[s][next[s]]])) return false;
    enqueue(stream_ops_[s][next[s]++]);
    return true;
  };
  LongWait wait(options_.yield);
  while (next_comm_ < comm_ops_.size() || next_main_ < main_ops_.size() || next[0] < stream_ops_[0].size() ||
         next[1] < stream_ops_[1].size()) {
    const bool moved = enqueue_next(0) || enqueue_next(1) || (next_comm_ < comm_ops_.size() && try_comm()) ||
                       (next_main_ < main_ops_.size() && try_main());
    moved ? wait.found() : wait.again([this] { return describe_wait(); });
  }
  options_.device->end();
}

void Runner::finish() {
  if (!program_.device) return;
  options_.device->finish();
  std::vector<double> spent(program_.ops.size(), 0.0);
  options_.device->collect(spent, trace_);
  for (std::size_t i = 0; i < spent.size(); ++i) {
    op_seconds_[i] += spent[i];
    if (on_device(program_.ops[i].lane)) seconds_[static_cast<int>(timer_of_[i])] += spent[i];
  }
}

// ---- comm thread: thread 0 runs the comm lane, then joins ----------------------------------------------------------

void Runner::run_comm_thread() {
  for (int index : main_ops_) {
    chunks_[index].next.store(0, std::memory_order_relaxed);
    chunks_[index].finished.store(0, std::memory_order_relaxed);
  }
  on_threads(options_.threads, [&](int thread) { team_member(thread); });
}

void Runner::team_member(int thread) {
  if (thread == 0)
    for (int index : comm_ops_) {
      const Op& op = program_.ops[index];
      wait_for(op.after);
      timed(index, [&] { comm_.run(op, absolute(op.slot)); });
      set_done(index);
    }
  for (int index : main_ops_) {
    const Op& op = program_.ops[index];
    wait_for(op.after);
    if (op.kind != OpKind::sweep) {
      if (thread > 0) continue;
      if (op.kind != OpKind::progress) timed(index, [&] { run_main(index); });
      set_done(index);
    } else if (thread == 0)
      timed(index, [&] { sweep_chunks(index, thread); });
    else
      sweep_chunks(index, thread);
  }
}

/// Takes pieces of one sweep until none is left: layers along the cut dimension, fewer per piece as work runs out
/// (guided) or a fixed number (dynamic, or RunnerOptions::piece).
void Runner::sweep_chunks(int index, int thread) {
  const Op& op = program_.ops[index];
  const Box& region = program_.sweeps[op.target].region;
  const int threads = options_.threads;
  const int d = cut_dimension(region, 2 * threads);
  const std::int64_t layers = region.extent(d);
  const std::int64_t smallest = std::max<std::int64_t>(1, layers / (16 * threads));
  Chunks& chunks = chunks_[index];
  for (;;) {
    std::int64_t begin = chunks.next.load(std::memory_order_relaxed), size;
    do {
      if (begin >= layers) break;
      size = options_.piece > 0                    ? options_.piece
             : program_.sharing == Sharing::guided ? std::max(smallest, (layers - begin) / (2 * threads))
                                                   : smallest;
      size = std::min(size, layers - begin);
    } while (!chunks.next.compare_exchange_weak(begin, begin + size, std::memory_order_relaxed));
    if (begin >= layers) break;
    Box piece = region;
    piece.lo[d] = region.lo[d] + begin;
    piece.hi[d] = piece.lo[d] + size;
    call_sweep(op, piece, thread);
    if (chunks.finished.fetch_add(size, std::memory_order_acq_rel) + size == layers) set_done(index);
  }
}

void Runner::wait_for(const std::vector<std::int32_t>& ops) const {
  Spin spin(options_.yield);
  for (std::int32_t op : ops)
    while (!done(op)) spin.again();
}

}  // namespace haloscope
