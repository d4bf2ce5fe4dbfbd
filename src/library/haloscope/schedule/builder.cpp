#include "haloscope/schedule/builder.hpp"

#include <algorithm>

#include "haloscope/core/plan_rounds.hpp"

namespace haloscope {

ProgramBuilder::ProgramBuilder(const Stage& stage, const Plan& plan, const ScheduleOptions& options)
    : stage_(stage), plan_(plan), options_(options), growths_(growths(stage, options.depth)) {
  program_.steps = options.steps;
  program_.slots = options.slots;
  program_.device = options.device;
  program_.signals = options.signals;
}

/// Returns the lane of an operation. Where the fields are on a device, all operations that access a field are work
/// for the device.
Lane ProgramBuilder::lane(OpKind kind) const {
  if (kind == OpKind::sweep) return options_.device ? Lane::sweep_stream : Lane::main;
  const bool moves = kind == OpKind::copy || kind == OpKind::pack || kind == OpKind::d2h || kind == OpKind::h2d ||
                     kind == OpKind::unpack;
  return options_.device && moves ? Lane::halo_stream : Lane::comm;
}

int ProgramBuilder::add(OpKind kind, Lane lane, int slot, int target, std::vector<int> after) {
  std::erase(after, -1);
  program_.ops.push_back(
      {kind, lane, static_cast<std::uint8_t>(slot), target, std::vector<std::int32_t>(after.begin(), after.end())});
  return static_cast<int>(program_.ops.size()) - 1;
}

int ProgramBuilder::add_copies(std::vector<Copy> copies) {
  std::erase_if(copies, [](const Copy& c) { return c.to.empty(); });
  if (copies.empty()) return -1;
  program_.copy_sets.push_back(std::move(copies));
  return add(OpKind::copy, lane(OpKind::copy), 0, static_cast<int>(program_.copy_sets.size()) - 1);
}

/// Returns true if any rank may have a message in this round; equal on all ranks.
bool ProgramBuilder::active(int round) const {
  if (plan_.spec.pattern == Pattern::direct) return true;
  int left = place_of(plan_, round).step;
  for (int d : plan_.spec.order) {
    if (d >= plan_.dims || left-- > 0) continue;
    return plan_.split[d];  // next to holes, ranks without neighbours take part too
  }
  return true;  // a reverse plan's round of planes
}

int ProgramBuilder::add_messages(OpKind kind, int round, bool out) {
  std::vector<int> ids;
  for (int m = 0; m < static_cast<int>(plan_.messages.size()); ++m)
    if (plan_.messages[m].out == out && (round < 0 || plan_.messages[m].round == round)) ids.push_back(m);
  const bool collective = options_.collective_rounds && round >= 0 && active(round);
  if (ids.empty() && plan_.spec.pattern == Pattern::ordered && !collective) return -1;
  const auto known = std::find(program_.sets.begin(), program_.sets.end(), ids);
  const int set = static_cast<int>(known - program_.sets.begin());
  if (known == program_.sets.end()) program_.sets.push_back(ids);
  // Messages pass from lane to lane: from the packing stream to the sender, and from the receiver to the unpacking
  // stream.
  const Lane here = lane(kind);
  if (kind == OpKind::post || kind == OpKind::complete) return add(kind, here, 0, set);
  // Where packing signals, sending waits only for the start of packing, even if later work is enqueued on the stream.
  const int before = kind == OpKind::send && options_.signals ? last_pack_ : last_message_op_;
  const bool crosses = before >= 0 && program_.ops[before].lane != here;
  last_message_op_ = add(kind, here, 0, set, {crosses ? before : -1});
  if (kind == OpKind::pack) last_pack_ = last_message_op_;
  return last_message_op_;
}

int ProgramBuilder::sweep(const Sweep& sweep, int slot, std::vector<int> after) {
  program_.sweeps.push_back(sweep);
  const Lane where = options_.device && sweep.part == Part::outer ? Lane::halo_stream : lane(OpKind::sweep);
  return add(OpKind::sweep, where, slot, static_cast<int>(program_.sweeps.size()) - 1, std::move(after));
}

int ProgramBuilder::sweep_on(Lane lane, const Box& box, Part part, std::vector<int> after) {
  if (box.empty()) return -1;
  program_.sweeps.push_back({.region = box, .valid = box, .part = part, .whole = region()});
  return add(OpKind::sweep, lane, 0, static_cast<int>(program_.sweeps.size()) - 1, std::move(after));
}

int ProgramBuilder::give_ring(bool to_device, const std::vector<Box>& boxes) {
  program_.rings.push_back({to_device, boxes});
  const int target = static_cast<int>(program_.rings.size()) - 1;
  const int gathered = add(OpKind::gather, to_device ? Lane::main : Lane::halo_stream, 0, target, {});
  return add(OpKind::transfer, Lane::halo_stream, 0, target, {gathered});
}

int ProgramBuilder::take_ring(int transfer) {
  const int target = program_.ops[transfer].target;
  const bool to_device = program_.rings[target].to_device;
  return add(OpKind::scatter, to_device ? Lane::halo_stream : Lane::main, 0, target, {transfer});
}

int ProgramBuilder::progress(std::vector<int> after) {
  return add(OpKind::progress, Lane::main, 0, -1, std::move(after));
}

Box ProgramBuilder::grown_to_neighbours(const Widths& layers) const {
  Box box;
  for (int d = 0; d < 3; ++d) {
    box.lo[d] = d < plan_.dims && plan_.has_neighbour[d][0] ? -layers[d] : 0;
    box.hi[d] = plan_.cells[d] + (d < plan_.dims && plan_.has_neighbour[d][1] ? layers[d] : 0);
    if (box.hi[d] < box.lo[d]) box.hi[d] = box.lo[d];
  }
  return box;
}

/// Returns the layers at the rank's edges that messages are sent from and that the first sweep overwrites: layers of
/// quantities that it reads only at the written point.
Widths ProgramBuilder::overwritten() const {
  Widths layers{};
  const SweepSpec& first = stage_.sweeps.front();
  for (const Access& access : first.reads) {
    if (access.layers > 0 || std::find(first.writes.begin(), first.writes.end(), access.quantity) == first.writes.end())
      continue;
    int exchanged = 0;
    for (const Access& moved : stage_.exchange.value_or(std::vector<Access>{}))
      if (moved.quantity == access.quantity) exchanged = moved.layers;
    for (int d = 0; d < plan_.dims; ++d) {
      const int sent = std::max(exchanged, growths_[0][0][d] + access.reach[d]);
      const bool shared_plane = std::any_of(plan_.spec.quantities.begin(), plan_.spec.quantities.end(),
                                            [&](const Quantity& q) { return staggered(q.centring, d) > 0; });
      if (sent > 0) layers[d] = std::max(layers[d], sent + shared_plane);
    }
  }
  return layers;
}

Box ProgramBuilder::interior(int levels) const {
  const Widths sent = overwritten();
  Widths reach{-sent[0], -sent[1], -sent[2]};
  for (const Access& access : stage_.sweeps.front().reads)
    for (int d = 0; d < 3; ++d) reach[d] = std::min(reach[d], -levels * access.reach[d]);
  Box box = grown_to_neighbours(reach);
  for (int d = 0; d < plan_.dims; ++d)
    if (plan_.own_neighbour[d]) {
      box.lo[d] = 0;
      box.hi[d] = plan_.cells[d];
    }
  return box;
}

Box ProgramBuilder::valid(int step, int sweep) const {
  const int unused = options_.substeps == Substeps::full ? 0 : options_.depth - options_.steps;
  return grown_to_neighbours(growths_[step + unused][sweep]);
}

/// Returns true if the sweep gathers numbers of a reduction; only own cells contribute.
bool ProgramBuilder::gathers(int step, int sweep) const {
  return step + 1 == options_.steps &&
         std::any_of(stage_.reductions.begin(), stage_.reductions.end(),
                     [&](const Reduction& r) { return r.sweep == sweep && (options_.last || !r.last_only); });
}

Box ProgramBuilder::region(int step, int sweep) const {
  if (gathers(step, sweep)) return grown_to_neighbours({});
  return options_.substeps == Substeps::full ? grown_to_neighbours(growths_[0][sweep]) : valid(step, sweep);
}

int ProgramBuilder::first_sweep(const Box& box, Part part, std::vector<int> after) {
  if (box.empty()) return -1;
  if (part != Part::inner && overwritten() != Widths{}) after.push_back(complete_);
  const int levels = blocked() ? options_.steps : 1;
  return sweep({.region = box,
                .valid = blocked() ? box : intersect(box, valid()),
                .into = static_cast<std::uint8_t>(next_slot(0)),
                .levels = levels,
                .part = part,
                .whole = blocked() ? grown_to_neighbours({}) : region()},
               0, std::move(after));
}

std::vector<Box> ProgramBuilder::shell(const Box& inner) const {
  return subtract(blocked() ? grown_to_neighbours({}) : region(), inner);
}

void ProgramBuilder::later_sweeps(std::vector<int> after, const ExchangeOps& exchange) {
  program_.final_slot = next_slot(0);
  if (blocked()) return;
  const int sweeps = static_cast<int>(stage_.sweeps.size());
  for (int step = 0, slot = 0; step < options_.steps; ++step, slot = next_slot(slot)) {
    for (int number = step == 0 ? 1 : 0; number < sweeps; ++number) {
      after.push_back(exchange.complete);  // exchanged cells may be written from here on
      const Box box = region(step, number);
      after = {sweep({.region = box,
                      .valid = intersect(box, valid(step, number)),
                      .into = static_cast<std::uint8_t>(next_slot(slot)),
                      .step = step,
                      .number = number,
                      .whole = box},
                     slot, after)};
    }
    program_.final_slot = next_slot(slot);
  }
}

/// Adds the operations of reductions. Each reduction begins after the sweeps that gather its numbers. The wait for a
/// nonblocking one comes after all sweeps, of this stage or a later one, the wait for a deferred one just before this
/// step's numbers replace the previous step's. A rank that waits for all others' numbers moves no messages, so its
/// own are sent before.
void ProgramBuilder::add_reductions() {
  std::vector<int> sweeps;
  for (int i = 0; i < static_cast<int>(program_.ops.size()); ++i)
    if (program_.ops[i].kind == OpKind::sweep) sweeps.push_back(i);
  const auto count = static_cast<int>(stage_.reductions.size());
  for (int r = 0; r < count; ++r) {
    const Reduction& reduction = stage_.reductions[r];
    if (reduction.last_only && !options_.last) continue;
    std::vector<int> gathering;
    for (int op : sweeps) {
      const Sweep& s = program_.sweeps[program_.ops[op].target];
      if (s.number == reduction.sweep && s.step + s.levels == options_.steps) gathering.push_back(op);
    }
    std::vector<int> before = gathering;
    if (reduction.mode != ReduceMode::nonblocking) before.push_back(all_sent_);
    if (reduction.mode == ReduceMode::deferred) before = {add(OpKind::reduced, Lane::main, 0, r, before)};
    const int started = add(OpKind::reduce, Lane::main, 0, r, before);
    if (reduction.mode == ReduceMode::nonblocking && reduction.until.empty()) await_reduction(r, sweeps, started);
  }
  for (int r : stage_.awaited) await_reduction(r, sweeps, -1);
}

void ProgramBuilder::await_reduction(int reduction, std::vector<int> after, int started) {
  after.push_back(started);
  after.push_back(all_sent_);
  add(OpKind::reduced, Lane::main, 0, reduction, std::move(after));
}

Program ProgramBuilder::take() {
  add_reductions();
  return std::move(program_);
}

}  // namespace haloscope
