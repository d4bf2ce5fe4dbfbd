// Programs of the C interface, and the checker.
#include <algorithm>

#include "haloscope/c/bridge.hpp"
#include "haloscope/core/bounds.hpp"
#include "haloscope/core/check.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/stores.hpp"
#include "haloscope/schedule.hpp"

namespace haloscope::c {

static_assert(HS_OP_BARRIER == int(OpKind::barrier) && HS_OP_WAIT == int(OpKind::wait));
static_assert(HS_OP_SWEEP == int(OpKind::sweep) && HS_OP_PROGRESS == int(OpKind::progress));
static_assert(HS_OP_D2H == int(OpKind::d2h) && HS_OP_REDUCED == int(OpKind::reduced));
static_assert(HS_LANE_SWEEP_STREAM == int(Lane::sweep_stream) && HS_LANE_HALO_STREAM == int(Lane::halo_stream));
static_assert(HS_LANE_COMM == int(Lane::comm) && HS_PART_OUTER == int(Part::outer));
static_assert(HS_SERIES_OPENING == int(Series::opening) && HS_SERIES_CLOSING == int(Series::closing));
static_assert(HS_SHARING_DYNAMIC == int(Sharing::dynamic) && HS_SUBSTEPS_BLOCKED == int(Substeps::blocked));

static_assert(HS_STREAM_FROM_BYTES == stream_from_bytes);

namespace {

template <class List>
std::int32_t size32(const List& list) {
  return static_cast<std::int32_t>(list.size());
}

}  // namespace

hs_program flatten(Program&& program) {
  hs_program flat;
  flat.program = std::move(program);
  for (const Op& op : flat.program.ops) {
    flat.ops.push_back({static_cast<int32_t>(op.kind), static_cast<int32_t>(op.lane), op.slot, op.target,
                        size32(flat.after), size32(op.after)});
    flat.after.insert(flat.after.end(), op.after.begin(), op.after.end());
  }
  for (const Sweep& s : flat.program.sweeps)
    flat.sweeps.push_back({to_c(s.region), to_c(s.valid), s.into, s.step, s.levels, static_cast<int32_t>(s.part),
                           to_c(s.twin), to_c(s.whole), s.faces, s.number, s.in_place, 0});
  flat.set_starts.push_back(0);
  for (const auto& set : flat.program.sets) {
    flat.set_messages.insert(flat.set_messages.end(), set.begin(), set.end());
    flat.set_starts.push_back(size32(flat.set_messages));
  }
  flat.copy_set_starts.push_back(0);
  for (const auto& set : flat.program.copy_sets) {
    for (const Copy& copy : set) flat.set_copies.push_back(to_c(copy));
    flat.copy_set_starts.push_back(size32(flat.set_copies));
  }
  flat.ring_starts.push_back(0);
  for (const Ring& ring : flat.program.rings) {
    flat.ring_to_device.push_back(ring.to_device);
    for (const Box& box : ring.boxes) flat.ring_boxes.push_back(to_c(box));
    flat.ring_starts.push_back(size32(flat.ring_boxes));
  }
  return flat;
}

namespace {

/// The number of targets that an operation of this kind has to choose from; -1: it has none, or those of a step.
int targets_of(OpKind kind, const hs_program_data& data) {
  if (kind == OpKind::barrier || kind == OpKind::progress) return -1;
  if (kind == OpKind::reduce || kind == OpKind::reduced) return -1;
  if (kind == OpKind::copy) return data.copy_set_count;
  if (kind == OpKind::gather || kind == OpKind::transfer || kind == OpKind::scatter) return data.ring_count;
  return kind == OpKind::sweep ? data.sweep_count : data.set_count;
}

Op op_from(const hs_program_data& data, int i) {
  const hs_op& from = (&needed(data.ops, "ops"))[i];
  Op op;
  op.kind = enumerator<OpKind>(from.kind, op_kinds, "operation kind");
  op.lane = enumerator<Lane>(from.lane, HS_LANE_HALO_STREAM + 1, "lane");
  op.slot = enumerator<std::uint8_t>(from.slot, data.slots, "slot");
  op.target = from.target;
  if (const int targets = targets_of(op.kind, data); targets >= 0) enumerator<int>(from.target, targets, "target");
  if (from.first_after < 0 || from.after_count < 0 || from.after_count > data.after_count - from.first_after)
    throw UsageError("operation " + std::to_string(i) + " takes its dependencies from outside the list of them");
  for (int k = 0; k < from.after_count; ++k)
    op.after.push_back(
        enumerator<int>((&needed(data.after, "after"))[from.first_after + k], data.op_count, "dependency"));
  return op;
}

Sweep sweep_from(const hs_sweep& from, int slots) {
  Sweep sweep;
  sweep.region = from_c(from.region);
  sweep.valid = from_c(from.valid);
  sweep.into = enumerator<std::uint8_t>(from.into, slots, "slot");
  sweep.step = from.step;
  sweep.levels = from.levels;
  sweep.part = enumerator<Part>(from.part, 3, "part");
  sweep.twin = from_c(from.twin);
  sweep.whole = from_c(from.whole);
  sweep.faces = from.faces != 0;
  sweep.number = from.number;
  sweep.in_place = from.in_place != 0;
  return sweep;
}

/// An array of a caller. @throws UsageError where it is NULL and not empty.
template <class T>
const T* list_of(const T* first, int count, const char* name) {
  return count > 0 ? &needed(first, name) : first;
}

/// @throws UsageError unless starts[0] = 0 and none is smaller than the one before.
void check_starts(const int32_t* starts, int count, const char* name) {
  if (count > 0 && needed(starts, name) != 0) throw UsageError(std::string(name) + " must start at 0");
  for (int i = 0; i < count; ++i)
    if (starts[i + 1] < starts[i]) throw UsageError(std::string(name) + " must not decrease");
}

Program program_from(const hs_program_data& data) {
  Program program;
  program.steps = data.steps;
  program.slots = data.slots;
  program.final_slot = enumerator<int>(data.final_slot, data.slots, "final slot");
  program.comm_thread = data.comm_thread;
  program.sharing = enumerator<Sharing>(data.sharing, 2, "sharing");
  program.device = data.device;
  program.wraps = data.wraps;
  program.signals = data.signals;
  program.block = from_c(data.block);
  for (int i = 0; i < data.op_count; ++i) program.ops.push_back(op_from(data, i));
  const hs_sweep* sweeps = list_of(data.sweeps, data.sweep_count, "sweeps");
  for (int i = 0; i < data.sweep_count; ++i) program.sweeps.push_back(sweep_from(sweeps[i], data.slots));
  check_starts(data.set_starts, data.set_count, "set_starts");
  check_starts(data.copy_set_starts, data.copy_set_count, "copy_set_starts");
  const int messages = data.set_count > 0 ? data.set_starts[data.set_count] : 0;
  const int copies = data.copy_set_count > 0 ? data.copy_set_starts[data.copy_set_count] : 0;
  const int32_t* set_messages = list_of(data.set_messages, messages, "set_messages");
  const hs_copy* set_copies = list_of(data.set_copies, copies, "set_copies");
  for (int i = 0; i < data.set_count; ++i)
    program.sets.emplace_back(set_messages + data.set_starts[i], set_messages + data.set_starts[i + 1]);
  for (int i = 0; i < data.copy_set_count; ++i) {
    auto& set = program.copy_sets.emplace_back();
    for (int k = data.copy_set_starts[i]; k < data.copy_set_starts[i + 1]; ++k) set.push_back(from_c(set_copies[k]));
  }
  check_starts(data.ring_starts, data.ring_count, "ring_starts");
  for (int i = 0; i < data.ring_count; ++i) {
    Ring& ring = program.rings.emplace_back();
    ring.to_device = (&needed(data.ring_to_device, "ring_to_device"))[i];
    for (int k = data.ring_starts[i]; k < data.ring_starts[i + 1]; ++k)
      ring.boxes.push_back(from_c((&needed(data.ring_boxes, "ring_boxes"))[k]));
  }
  return program;
}

hs_schedule_options read(const hs_schedule_options* options) {
  hs_schedule_options defaults;
  hs_schedule_options_init(&defaults);
  return versioned(options, defaults, "hs_schedule_options");
}

ScheduleOptions options_from(const hs_schedule_options& from) {
  if (from.depth < 1 || from.depth > bound.depth.most || from.steps < 1 || from.steps > from.depth)
    throw UsageError("a program of " + std::to_string(from.steps) + " steps at depth " + std::to_string(from.depth) +
                     "; use a depth of 1 to " + std::to_string(static_cast<int>(bound.depth.most)) +
                     " and 1 to depth steps");
  ScheduleOptions options;
  options.depth = from.depth;
  options.steps = from.steps;
  options.substeps = enumerator<Substeps>(from.substeps, 3, "substeps");
  options.tiles = from.tiles;
  options.sharing = enumerator<Sharing>(from.sharing, 2, "sharing");
  options.barrier = from.barrier;
  options.collective_rounds = from.collective_rounds;
  options.series = enumerator<Series>(from.series, 5, "series");
  options.device = from.device;
  options.staged = from.staged;
  options.pack_first = from.pack_first;
  options.walls = from.walls;
  options.last = from.last;
  options.slots = enumerator<int>(from.slots - 1, 2, "number of slots less 1") + 1;
  options.flips = from.flips;
  options.signals = from.signals;
  return options;
}

hs_schedule_options to_c(const ScheduleOptions& o) {
  return {sizeof(hs_schedule_options),
          o.depth,
          o.steps,
          static_cast<int32_t>(o.substeps),
          o.tiles,
          static_cast<int32_t>(o.sharing),
          o.barrier,
          o.collective_rounds,
          static_cast<int32_t>(o.series),
          o.device,
          o.staged,
          o.pack_first,
          o.walls,
          o.last,
          o.slots,
          o.flips,
          o.signals};
}

/// @throws UsageError where the checker would read beyond a plan or a stage.
void check_fit(const Stage& stage, const Plan& plan, const Program& program) {
  for (const auto& set : program.sets)
    for (int m : set) enumerator<int>(m, size32(plan.messages), "message");
  for (const auto& set : program.copy_sets)
    for (const Copy& copy : set) {
      const Box field = plan.allocated(enumerator<int>(copy.quantity, size32(plan.spec.quantities), "quantity"));
      if (!field.contains(copy.to) || !field.contains(copy.from())) throw UsageError("a copy reaches beyond its field");
    }
  for (const Ring& ring : program.rings)
    for (const Box& box : ring.boxes)
      if (!plan.allocated(0).contains(box)) throw UsageError("a ring reaches beyond its field");
  for (const Sweep& sweep : program.sweeps) {
    const SweepSpec& spec = stage.sweeps[static_cast<std::size_t>(
        enumerator<int>(sweep.number, size32(stage.sweeps), "sweep of the stage"))];
    if (sweep.in_place && spec.writes.empty())
      throw UsageError("sweep '" + spec.name + "' writes nothing, and the program carries it out in place");
  }
  for (const Op& op : program.ops) {
    const auto& earlier = stage.awaited;
    if (op.kind == OpKind::reduced && std::find(earlier.begin(), earlier.end(), op.target) != earlier.end()) continue;
    if (op.kind == OpKind::reduce || op.kind == OpKind::reduced)
      enumerator<int>(op.target, size32(stage.reductions), "reduction");
  }
}

/// Numbers in the step of the quantities that a plan moves.
std::vector<int> exchanged(const Step& step, const Plan& plan) {
  std::vector<int> numbers;
  for (const Quantity& moved : plan.spec.quantities) {
    const auto same = [&](const Quantity& q) { return q.name == moved.name; };
    const auto found = std::find_if(step.quantities.begin(), step.quantities.end(), same);
    if (found == step.quantities.end())
      throw UsageError("a plan moves quantity '" + moved.name + "', which the step does not have");
    numbers.push_back(static_cast<int>(found - step.quantities.begin()));
  }
  return numbers;
}

StagePrograms stage_programs(const Step& step, int number, int ranks, const hs_plan* const* plans,
                             const hs_program* const* programs) {
  StagePrograms all{&stage_of(step, number), {}, {}, {}};
  for (int r = 0; r < ranks; ++r) {
    all.plans.push_back(needed(plans[number * ranks + r], "plans").plan);
    all.programs.push_back(needed(programs[number * ranks + r], "programs").program);
    check_fit(*all.stage, all.plans.back(), all.programs.back());
    if (all.plans.back().spec.quantities != all.plans.front().spec.quantities)
      throw UsageError("the plans of ranks 0 and " + std::to_string(r) + " move different fields; make them alike");
  }
  all.exchanged = exchanged(step, all.plans.front());
  return all;
}

}  // namespace

}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

void hs_schedule_options_init(hs_schedule_options* options) {
  if (options) *options = to_c(ScheduleOptions{});
}

hs_status hs_schedule_options_of(const hs_choice* choice, int32_t stage, hs_schedule_options* options) {
  return guarded([&] {
    Choice c = needed(choice, "choice").choice;
    if (const std::string reason = illegal(c); !reason.empty()) throw UsageError(reason);
    c.reorder = Reorder::none;  // takes time to find, and does not matter here
    const Candidate candidate(c);
    stage_of(candidate.step, stage);
    needed(options, "options") = to_c(schedule_options(candidate, stage));
  });
}

hs_status hs_program_create(const char* schedule, const hs_step* step, int32_t stage, const hs_plan* plan,
                            const hs_schedule_options* options, hs_program** program) {
  return guarded([&] {
    const ScheduleOptions o = options_from(read(options));
    const Schedule& found = find_schedule(text(schedule));
    const Stage& s = stage_of(needed(step, "step").step, stage);
    const Plan& p = needed(plan, "plan").plan;
    needed(program, "program") = keep(new hs_program(flatten(found.make(s, p, o))));
  });
}

hs_status hs_program_create_exchange(const hs_plan* plan, int32_t barrier, hs_program** program) {
  return guarded([&] {
    needed(program, "program") = keep(new hs_program(flatten(exchange_program(needed(plan, "plan").plan, barrier))));
  });
}

hs_status hs_program_create_from(const hs_program_data* data, hs_program** program) {
  return guarded(
      [&] { needed(program, "program") = keep(new hs_program(flatten(program_from(needed(data, "data"))))); });
}

hs_status hs_program_free(hs_program* program) { return release(program, "program"); }

hs_status hs_program_get(const hs_program* program, hs_program_data* data) {
  return guarded([&] {
    const hs_program& p = needed(program, "program");
    needed(data, "data") = {p.program.steps,
                            p.program.slots,
                            p.program.final_slot,
                            p.program.comm_thread,
                            static_cast<int32_t>(p.program.sharing),
                            p.program.device,
                            p.program.wraps,
                            size32(p.ops),
                            size32(p.after),
                            size32(p.sweeps),
                            size32(p.program.sets),
                            size32(p.program.copy_sets),
                            p.ops.data(),
                            p.after.data(),
                            p.sweeps.data(),
                            p.set_starts.data(),
                            p.set_messages.data(),
                            p.copy_set_starts.data(),
                            p.set_copies.data(),
                            to_c(p.program.block),
                            size32(p.program.rings),
                            p.program.signals,
                            p.ring_to_device.data(),
                            p.ring_starts.data(),
                            p.ring_boxes.data()};
  });
}

hs_status hs_check(const hs_layout* layout, const hs_step* step, int32_t stages, const hs_plan* const* plans,
                   const hs_program* const* programs, const char** finding) {
  return guarded([&] {
    const Layout& l = needed(layout, "layout").layout;
    const Step& s = needed(step, "step").step;
    if (stages != size32(s.stages))
      throw UsageError("programs of " + std::to_string(stages) + " stages for a step of " +
                       std::to_string(s.stages.size()) + "; give those of all stages");
    needed(plans, "plans");
    needed(programs, "programs");
    std::vector<StagePrograms> all;
    for (int stage = 0; stage < stages; ++stage) all.push_back(stage_programs(s, stage, l.size(), plans, programs));
    thread_local std::string result;
    result = check_step(l, s, all);
    needed(finding, "finding") = result.c_str();
  });
}
