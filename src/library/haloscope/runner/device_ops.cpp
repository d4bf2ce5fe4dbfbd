#include "haloscope/runner/device_ops.hpp"

#include <algorithm>
#include <exception>

#include "haloscope/core/clock.hpp"
#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/core/spin.hpp"
#include "haloscope/error.hpp"
#include "haloscope/pack/overlap.hpp"
#include "haloscope/pack/region_copy.hpp"
#include "haloscope/runner/face_table.hpp"

namespace haloscope {

device::SweepLaunch DeviceSweeps::launch(const SlotView& from, const SlotView& into, const Box& region) const {
  device::SweepLaunch launch = base;
  launch.in = from.origin;
  launch.out = into.origin;
  launch.row = from.stride[1] / from.stride[0];
  launch.plane = from.stride[2] / from.stride[0];
  launch.region = region;
  return launch;
}

void DeviceSweeps::run(device::Stream& stream, const SlotView& from, const SlotView& into, const Box& region,
                       int levels, const Index& wrap) const {
  device::SweepLaunch launch = this->launch(from, into, region);
  launch.levels = levels;
  launch.wrap = wrap;
  (levels == 1 ? one : fused)(stream, launch);
}

DeviceStreams::DeviceStreams(device::Device& owner) : device(owner) {
  streams[stream_of(Lane::sweep_stream)] = owner.stream();
  streams[stream_of(Lane::halo_stream)] = owner.stream(true);
  for (auto& end : ends_) end = owner.event(false);
  origin_ = owner.event();
  move_origin();
}

void DeviceStreams::move_origin() {
  streams[0]->record(*origin_);
  origin_->wait();
  origin_s_ = now_s();
}

void DeviceStreams::meet() {
  for (int s = 0; s < stream_count; ++s) streams[s]->record(*ends_[s]);
  for (int s = 0; s < stream_count; ++s)
    for (int other = 0; other < stream_count; ++other)
      if (other != s) streams[s]->wait(*ends_[other]);
}

void DeviceStreams::fork() {
  streams[0]->record(*ends_[0]);
  for (int s = 1; s < stream_count; ++s) streams[s]->wait(*ends_[0]);
}

void DeviceStreams::join() {
  for (int s = 1; s < stream_count; ++s) {
    streams[s]->record(*ends_[s]);
    streams[0]->wait(*ends_[s]);
  }
}

/// Waits for all streams. Where a device is lost, each stream reports it only once its work in flight has ended.
void DeviceStreams::finish() {
  std::exception_ptr lost;
  for (auto& stream : streams) {
    try {
      stream->finish();
    } catch (const Error&) {
      if (!lost) lost = std::current_exception();
    }
  }
  if (lost) std::rethrow_exception(lost);
}

DeviceOps::DeviceOps(const Program& program, const Plan& plan, const Views& host, const Views& views, DeviceLink* link,
                     DeviceStreams& streams, const DeviceSweeps& sweeps, bool timers, std::size_t trace_events,
                     const DevicePassCall& pass)
    : program_(program),
      plan_(plan),
      views_(views),
      link_(link),
      streams_(streams),
      sweeps_(sweeps),
      pass_(pass),
      rings_(program, host, views, streams.device),
      timers_(timers),
      slots_(program.ops.size(), 0),
      seconds_(program.ops.size(), 0.0) {
  compile_copies(views);
  if (program.packs_in_sweeps()) compile_faces();
  events_.reserve(trace_events);
  const auto sweep =
      std::find_if(program.ops.begin(), program.ops.end(), [](const Op& op) { return op.kind == OpKind::sweep; });
  whole_ = static_cast<std::size_t>(sweep - program.ops.begin());
  for (auto& set : marks_)
    for (const Op& op : program.ops)
      set.push_back(on_device(op.lane) ? Marks{streams.device.event(timers), streams.device.event(timers)} : Marks{});
}

/// Compiles copies. Copies of a set that depend on each other (a corner that an earlier copy has brought) go into
/// sequential launches.
void DeviceOps::compile_copies(const Views& views) {
  struct Range {
    std::size_t set, slot, first, end;
    bool stores;
  };
  std::vector<device::CopyLaunch::Piece> all;
  std::vector<Range> ranges;
  if (!std::any_of(program_.ops.begin(), program_.ops.end(),
                   [](const Op& op) { return op.kind == OpKind::copy && on_device(op.lane); }))
    return;
  for (std::size_t set = 0; set < program_.copy_sets.size(); ++set)
    for (std::size_t slot = 0; slot < views.front().size(); ++slot) {
      std::vector<BlockCopy> stage;
      const auto flush = [&] {
        const std::size_t first = all.size();
        device::cut_copies(stage, all);
        const bool stores =
            std::any_of(stage.begin(), stage.end(), [](const BlockCopy& c) { return c.store != Store::replace; });
        if (!stage.empty()) ranges.push_back({set, slot, first, all.size(), stores});
        stage.clear();
      };
      for (const Copy& c : program_.copy_sets[set]) {
        const BlockCopy copy = block_of(views, static_cast<int>(slot), c);
        if (std::any_of(stage.begin(), stage.end(), [&](const BlockCopy& b) { return depend(b, copy); })) flush();
        stage.push_back(copy);
      }
      flush();
    }
  pieces_ = device::PieceList(streams_.device, all);
  copies_.assign(program_.copy_sets.size(), std::vector<std::vector<device::CopyLaunch>>(views.front().size()));
  for (const Range& r : ranges) {
    copies_[r.set][r.slot].push_back(pieces_.range(static_cast<int>(r.first), static_cast<int>(r.end)));
    copies_[r.set][r.slot].back().stores = r.stores;
  }
}

void DeviceOps::compile_faces() {
  std::vector<device::FaceTable> tables;
  for (std::size_t slot = 0; slot < views_[0].size(); ++slot)
    tables.push_back(
        face_table(plan_, views_[0][slot].stride[0], [&](int id) { return link_->place(id, static_cast<int>(slot)); }));
  faces_ = device::copied_to(streams_.device, tables.data(), tables.size() * sizeof(device::FaceTable));
}

void DeviceOps::begin(std::int64_t number, std::int64_t step) {
  set_ = (set_ + 1) % in_flight;
  used_[set_] = true;
  executions_[set_] = {number, step};
}

/// Reads the old times of the next execution's events while the device works on this one.
void DeviceOps::end() {
  streams_.meet();
  if (const int next = (set_ + 1) % in_flight; used_[next]) harvest(next);
}

void DeviceOps::enqueue(int index, int slot, int into) {
  const Op& op = program_.ops[index];
  const int own = stream_of(op.lane);
  device::Stream& stream = *streams_.streams[own];
  for (std::int32_t before : op.after)
    if (const Lane lane = program_.ops[before].lane; on_device(lane) && stream_of(lane) != own)
      stream.wait(end(before));
  slots_[index] = slot;
  if (op.kind == OpKind::h2d) link_->await_on(stream, ids_of(op), slot);
  const Marks& marks = marks_[set_][index];
  if (timers_ && !capturing_) stream.record(*marks.begin);
  launch(op, slot, into, stream);
  stream.record(*marks.end);
}

/// Returns true if an operation is done. Where the stream writes a word, the host reads that: an event costs a call
/// of the driver. Only the event shows that the device is lost.
bool DeviceOps::reached(int index) {
  constexpr unsigned words_per_event = 256;  // reads
  const Op& op = program_.ops[index];
  if (op.kind != OpKind::d2h || !link_->tells_by_words()) return end(index).reached();
  if (link_->is_on_host(ids_of(op), slots_[index])) return true;
  return ++looks_ % words_per_event == 0 && end(index).reached();
}

void DeviceOps::await(int index) {
  const Op& op = program_.ops[index];
  if (op.kind != OpKind::d2h || !link_->tells_by_words()) return end(index).wait();
  for (Spin spin(false); !reached(index);) spin.again();
}

void DeviceOps::begin_capture() {
  streams_.streams[0]->begin_capture();
  streams_.fork();
  capturing_ = true;
}

void DeviceOps::end_capture(int slot) {
  capturing_ = false;
  streams_.join();
  graphs_[slot] = streams_.streams[0]->end_capture();
}

void DeviceOps::drop_capture() {
  capturing_ = false;
  used_[set_] = false;
  device::call_even_if_lost([this] { streams_.join(); });
  device::call_even_if_lost([this] { (void)streams_.streams[0]->end_capture(); });
}

bool DeviceOps::replay(int slot) {
  const auto found = graphs_.find(slot);
  if (found == graphs_.end()) return false;
  const Marks& marks = marks_[set_][whole_];
  device::Stream& stream = *streams_.streams[0];
  stream.record(*marks.begin);
  found->second->launch();
  stream.record(*marks.end);
  return true;
}

void DeviceOps::launch(const Op& op, int slot, int into, device::Stream& stream) {
  switch (op.kind) {
    case OpKind::copy:
      for (const auto& stage : copies_[op.target][slot]) streams_.device.kernels().copy(stream, stage);
      break;
    case OpKind::pack:
      return packed_ == slot && packed_by_sweeps(op) ? void() : link_->pack_on(stream, ids_of(op), slot);
    case OpKind::unpack:
      return link_->unpack_on(stream, ids_of(op), slot);
    case OpKind::d2h:
      return link_->to_host(stream, ids_of(op), slot);
    case OpKind::h2d:
      return link_->to_device(stream, ids_of(op), slot);
    case OpKind::gather:
      return rings_.gather_on(stream, op.target, slot);
    case OpKind::transfer:
      return rings_.transfer_on(stream, op.target, slot);
    case OpKind::scatter:
      return rings_.scatter_on(stream, op.target, slot);
    case OpKind::sweep:
      return sweep(program_.sweeps[op.target], slot, into, stream);
    default:
      break;  // host lanes
  }
}

/// Returns true if sweeps of faces pack all messages of a set.
bool DeviceOps::packed_by_sweeps(const Op& op) const {
  const Ids ids = ids_of(op);
  return std::all_of(ids.begin(), ids.end(),
                     [&](int id) { return holds_own_cells(plan_, plan_.messages[static_cast<std::size_t>(id)]); });
}

void DeviceOps::on_host(const Op& op, int slot) {
  op.kind == OpKind::gather ? rings_.gather(op.target, slot) : rings_.scatter(op.target, slot);
}

void DeviceOps::sweep(const Sweep& sweep, int slot, int into, device::Stream& stream) {
  if (pass_.run != nullptr) return pass_.run(pass_.context, sweep, slot, into, stream);
  if (sweep.faces) return sweep_faces(sweep, slot, into, stream);
  Index wrap{0, 0, 0};
  for (int d = 0; d < plan_.dims && program_.wraps; ++d)
    if (plan_.own_neighbour[d]) wrap[d] = plan_.cells[d];
  const auto& slots = views_[0];
  sweeps_.run(stream, slots[slot], slots[into], sweep.region, sweep.levels, wrap);
}

void DeviceOps::sweep_faces(const Sweep& sweep, int slot, int into, device::Stream& stream) {
  const auto* tables = reinterpret_cast<const device::FaceTable*>(faces_.data());
  device::SweepLaunch launch = sweeps_.launch(views_[0][slot], views_[0][into], sweep.region);
  launch.twin = sweep.twin;
  launch.arrived = tables + slot;
  launch.leaving = tables + into;
  sweeps_.faces(stream, launch);
  link_->taken_on(stream, slot);
  packed_ = into;
}

void DeviceOps::harvest(int set) {
  for (std::size_t i = 0; i < program_.ops.size(); ++i)
    if (const Marks& marks = marks_[set][i]; marks.end && (graphs_.empty() || i == whole_))
      harvest(marks, i, executions_[set]);
  used_[set] = false;
}

void DeviceOps::harvest(const Marks& marks, std::size_t op, const Execution& execution) {
  marks.end->wait();
  if (!timers_) return;
  seconds_[op] += streams_.device.seconds(*marks.begin, *marks.end);
  if (events_.size() < events_.capacity())
    events_.push_back({static_cast<std::int32_t>(op), execution.number, execution.step, streams_.time_of(*marks.begin),
                       streams_.time_of(*marks.end)});
}

void DeviceOps::finish() {
  streams_.finish();
  packed_ = -1;
  for (int set = 0; set < in_flight; ++set)
    if (used_[set]) harvest(set);
}

void DeviceOps::collect(std::vector<double>& op_seconds, std::vector<TraceEvent>& trace) {
  for (const TraceEvent& event : events_)
    if (trace.size() < trace.capacity()) trace.push_back(event);
  events_.clear();
  for (std::size_t i = 0; i < seconds_.size(); ++i) op_seconds[i] += seconds_[i];
  std::fill(seconds_.begin(), seconds_.end(), 0.0);
}

}  // namespace haloscope
