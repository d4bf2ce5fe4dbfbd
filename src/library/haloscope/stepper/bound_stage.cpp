#include "haloscope/stepper/bound_stage.hpp"

#include <algorithm>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/patience.hpp"
#include "haloscope/core/denormals.hpp"
#include "haloscope/device/stream_blocker.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/runner/threads.hpp"
#include "haloscope/transport/composite.hpp"

namespace haloscope {

namespace {

/// The number of sweeps in place that a rank without neighbours fuses.
constexpr int fused_in_place = 32;

std::int64_t copied_bytes(const Program& program, const Plan& plan) {
  std::int64_t bytes = 0;
  for (const Op& op : program.ops)
    if (op.kind == OpKind::copy)
      for (const Copy& c : program.copy_sets[op.target])
        bytes += c.to.volume() * plan.spec.quantities[c.quantity].element_bytes;
  return bytes;
}

}  // namespace

Counts& Counts::operator+=(const Counts& other) {
  exchanges += other.exchanges;
  messages += other.messages;
  message_bytes += other.message_bytes;
  copied_bytes += other.copied_bytes;
  swept_points += other.swept_points;
  reductions += other.reductions;
  return *this;
}

BoundStage::BoundStage(const StageContext& context, int number)
    : context_(context),
      number_(number),
      plan_(make_plan(context.candidate.layout, rank_in(context.comm), exchange_spec(context.candidate, number))),
      tags_(std::make_unique<LinkTags>(context.own, plan_, context.candidate.step.slots())),
      scratch_(static_cast<std::size_t>(context.candidate.choice.threads)) {
  tags_->open([this] { open(); });
  const Candidate& c = context_.candidate;
  const int size = ranks_in(context_.comm);
  partials_.resize(stage().sweeps.size());
  for (const Reduction& reduction : stage().reductions) {
    auto& partials = partials_[reduction.sweep];
    if (!partials) partials = std::make_unique<Partials>(c.choice.threads);
    const MPI_Comm own = reduce_comms_.emplace_back(duplicate(context_.comm)).get();
    Reduction mine = reduction;
    if (size == 1) mine.mode = ReduceMode::blocking;
    reducers_.push_back(std::make_unique<Reducer>(mine, *partials, own, context_.options.yield));
  }
  const bool pipelined = c.choice.schedule->in_place;
  const bool fuses = c.app.open || !c.app.fused_forms.empty();  // functions of a user fuse if declared so
  whole_ = &bound({pipelined && size == 1 && fuses ? fused_in_place : c.choice.depth, false,
                   pipelined ? Series::body : Series::whole});
}

void BoundStage::open() {
  const Candidate& c = context_.candidate;
  const bool on_device = messages_on_device(c.choice);
  const Views& fields = on_device ? context_.device->views() : context_.views;
  for (int q : exchanged(c, number_)) views_.push_back(fields[q]);
  for (const Quantity& q : c.step.quantities) centrings_.push_back(q.centring);
  const int slots = c.step.slots();
  for (std::size_t s = 0; s < stage().sweeps.size(); ++s) {
    in_.emplace_back(slots);
    out_.emplace_back(slots);
    for (int slot = 0; slot < slots; ++slot)
      for (int q = 0; q < static_cast<int>(context_.views.size()); ++q) {
        const auto earlier = stage().sweeps.begin() + static_cast<std::ptrdiff_t>(s);
        const bool written =
            std::any_of(stage().sweeps.begin(), earlier, [&](const auto& one) { return writes(one, q); });
        const auto& own = fields[q];
        in_[s][slot].push_back(own[written ? (slot + 1) % slots : slot]);
        out_[s][slot].push_back(own[slot]);
      }
  }
  const LinkContext link{.comm = context_.own.comm(),
                         .layout = &c.layout,
                         .plan = &plan_,
                         .views = &views_,
                         .yield = context_.options.yield,
                         .threads = c.choice.threads,
                         .nodes = context_.nodes,
                         .device = on_device ? &context_.device->device() : nullptr,
                         .remembers = context_.remembers,
                         .tags = tags()};
  link_ = open_link(c.strategy(number_), link);
}

BoundStage::~BoundStage() {
  bounds_.clear();
  const bool abandoned = link_ == nullptr;
  link_.reset();
  if (!abandoned) return;  // else other ranks may never answer
  for (auto& reducer : reducers_) static_cast<void>(reducer.release());
  for (OwnedComm& comm : reduce_comms_) comm.release();
}

BoundStage::Bound& BoundStage::bound(const Key& key) {
  for (auto& known : bounds_)
    if (known->key == key) return *known;
  bounds_.push_back(bind(key));
  return *bounds_.back();
}

std::unique_ptr<BoundStage::Bound> BoundStage::bind(const Key& key) {
  const Choice& choice = context_.candidate.choice;
  ScheduleOptions o = schedule_options(context_.candidate, number_);
  o.steps = key.steps;
  o.series = key.series;
  o.last = key.last;
  auto bound = std::make_unique<Bound>();
  bound->key = key;
  bound->stage = this;
  bound->program = choice.schedule->make(stage(), plan_, o);
  const Program& program = bound->program;
  bound->gathers.assign(stage().sweeps.size(), false);
  for (const Op& op : program.ops)
    if (op.kind == OpKind::reduce) bound->gathers[stage().reductions[op.target].sweep] = true;
  place_numbers(*bound);
  if (!o.device) make_scratch(program);
  bound->once = count(program);
  const Views none;  // with a device, it makes the copies
  bound->comm = std::make_unique<CommOps>(program, o.device ? none : views_, *link_, context_.comm,
                                          context_.options.yield, "stage '" + stage().name + "'");
  RunnerOptions runner = context_.options;
  runner.threads = choice.threads;
  runner.piece = choice.piece;
  runner.reduce = {&BoundStage::start_reduction, &BoundStage::wait_reduction, this};
  if (context_.device) {
    bind_device(*bound, o.device);
    runner.device = bound->device.get();
    runner.graph = choice.capture;
  }
  bound->runner = std::make_unique<Runner>(program, *bound->comm, SweepCall{&BoundStage::sweep, bound.get()}, runner);
  return bound;
}

/// Allocates memory that sweeps of the host need in addition to the fields.
void BoundStage::make_scratch(const Program& program) {
  for (const Sweep& sweep : program.sweeps)
    for (Memory& scratch : scratch_)
      if (const std::size_t bytes = context_.sweeper.scratch_bytes(sweep.region, sweep.levels); bytes > scratch.size())
        scratch = Memory(bytes);
}

void BoundStage::bind_device(Bound& bound, bool on_device) {
  DeviceFields& fields = *context_.device;
  const DevicePassCall pass =
      fields.sweeps().by_sweeper() ? DevicePassCall{&BoundStage::pass, &bound} : DevicePassCall{};
  bound.device =
      std::make_unique<DeviceOps>(bound.program, plan_, context_.views, on_device ? views_ : fields.views(),
                                  on_device ? static_cast<DeviceLink*>(link_.get()) : nullptr, fields.streams(),
                                  fields.sweeps(), context_.options.timers, context_.options.trace_events, pass);
  for (const Sweep& sweep : bound.program.sweeps) {
    bound.device_numbers.emplace_back();
    if (!pass.run || !gathers(bound, sweep)) continue;
    const Partials& partials = *partials_[sweep.number];
    const bool launched = static_cast<bool>(stage().sweeps[sweep.number].launch);
    const Box points = launched ? sweep.region : grown(sweep.region, {1, 1, 1}, {1, 1, 1});
    const std::size_t place = bound.device_numbers.size() - 1;
    bound.device_numbers.back() = std::make_unique<DeviceNumbers>(
        fields.device(), partials.ops(), points,
        launched ? &cell_memory(place, sizeof(double) * partials.ops().size() * points.volume()) : nullptr);
  }
}

/// Returns memory for the numbers of the cells of a program's sweep, for reductions. Programs run sequentially, so
/// all share it.
const device::Buffer& BoundStage::cell_memory(std::size_t place, std::size_t bytes) {
  while (cell_memory_.size() <= place) cell_memory_.emplace_back();
  device::Buffer& cells = cell_memory_[place];
  if (cells.size() < bytes) {
    context_.device->streams().finish();
    cells = device::Buffer();
    cells = device::Buffer(context_.device->device(), device::Space::device, bytes);
  }
  return cells;
}

/// Assigns places to numbers. Where threads take pieces dynamically, sums are stored by the layer at which a piece
/// begins: pieces are always the same, their threads are not.
void BoundStage::place_numbers(Bound& bound) {
  const Program& program = bound.program;
  bound.places.assign(program.sweeps.size(), -1);
  if (!program.comm_thread && context_.candidate.choice.piece == 0) return;
  for (std::size_t number = 0; number < partials_.size(); ++number) {
    const auto sums = [&](const Reduction& r) { return r.sweep == static_cast<int>(number) && r.op == ReduceOp::sum; };
    if (!bound.gathers[number] || std::none_of(stage().reductions.begin(), stage().reductions.end(), sums)) continue;
    std::int64_t places = 0;
    for (std::size_t s = 0; s < program.sweeps.size(); ++s) {
      const Sweep& sweep = program.sweeps[s];
      if (sweep.number != static_cast<int>(number)) continue;
      bound.places[s] = static_cast<int>(places);
      places += std::max({sweep.region.extent(0), sweep.region.extent(1), sweep.region.extent(2)});
    }
    partials_[number]->reserve(static_cast<int>(places));
  }
}

/// Returns true if a sweep gathers numbers; only sweeps of a program's last step do.
bool BoundStage::gathers(const Bound& bound, const Sweep& sweep) const {
  return bound.gathers[sweep.number] && sweep.step + sweep.levels == bound.program.steps;
}

/// Returns the place where a part of a sweep gathers its numbers; null: it gathers none.
double* BoundStage::numbers_of(const Bound& bound, const Sweep& sweep, const Box& box, int thread) const {
  const auto number = static_cast<std::size_t>(sweep.number);
  if (!gathers(bound, sweep)) return nullptr;
  int place = bound.places[&sweep - bound.program.sweeps.data()];
  if (place < 0) return partials_[number]->of(thread);
  for (int d = 0; d < 3; ++d) place += static_cast<int>(box.lo[d] - sweep.region.lo[d]);
  return partials_[number]->of(place);
}

int BoundStage::execute(Bound& bound, int slot, std::int64_t time) {
  time_ = time;
  executed_ = &bound;
  ++bound.executions;
  return bound.runner->run(slot, time);
}

void BoundStage::bind_for(std::int64_t steps) {
  const Key whole = whole_->key;
  const bool gathers = reductions() > 0;
  if (whole.series == Series::whole) {
    const auto rest = static_cast<int>(steps % whole.steps);
    bound({rest > 0 ? rest : whole.steps, gathers, Series::whole});
    return;
  }
  for (const Series part : {Series::opening, Series::entry}) bound({1, false, part});
  bound({1, gathers, gathers ? Series::body : Series::closing});
}

int BoundStage::run(int slot, std::int64_t time, int steps, bool last) {
  Bound& one = !last && steps == whole_->key.steps ? *whole_ : bound({steps, last, whole_->key.series});
  return execute(one, slot, time);
}

int BoundStage::run(int slot, std::int64_t time, Series series, bool last) {
  return execute(bound({1, last, series}), slot, time);
}

bool BoundStage::enter(int slot, std::int64_t time, bool (*stop)(void* context), void* context) {
  Bound& entry = bound({1, false, Series::entry});
  time_ = time;
  if (!entry.runner->run_unless(slot, time, stop, context)) return false;
  ++entry.executions;
  return true;
}

void BoundStage::finish() {
  for (auto& one : bounds_) one->runner->finish();
}

SweepArgs BoundStage::sweep_args(int number, int slot, int into) const {
  const Candidate& c = context_.candidate;
  SweepArgs args;
  args.problem = &c.problem;
  args.stage = number_;
  args.sweep = number;
  args.first = c.layout.owned(plan_.rank).lo;
  args.in = in_[number][slot].data();
  args.out = out_[number][into].data();
  args.centrings = centrings_.data();
  args.dims = plan_.dims;
  args.scalars = context_.scalars;
  args.stream = context_.stream;
  args.threads = c.choice.threads;
  return args;
}

void BoundStage::sweep(void* context, const Sweep& sweep, const Box& box, int slot, int into, int thread) {
  const Bound& bound = *static_cast<const Bound*>(context);
  BoundStage& self = *bound.stage;
  const FlushToZero mode(self.context_.candidate.choice.ftz);
  SweepArgs args = self.sweep_args(sweep.number, slot, into);
  args.step = self.time_ + sweep.step;
  args.region = box;
  args.whole = sweep.whole;
  args.levels = sweep.levels;
  args.thread = thread;
  args.scratch = self.scratch_[thread].data();
  args.reduced = self.numbers_of(bound, sweep, box, thread);
  self.context_.sweeper.sweep(args);
}

void BoundStage::pass(void* context, const Sweep& sweep, int slot, int into, device::Stream& stream) {
  const Bound& bound = *static_cast<const Bound*>(context);
  BoundStage& self = *bound.stage;
  if (sweep.region.empty()) return;
  DeviceNumbers* const numbers = bound.device_numbers[&sweep - bound.program.sweeps.data()].get();
  device::Pass pass{stream, self.context_.device->sweeps().passes, numbers ? numbers->places() : device::PassNumbers{}};
  SweepArgs args = self.sweep_args(sweep.number, slot, into);
  args.step = self.time_ + sweep.step;
  args.region = sweep.region;
  args.whole = sweep.whole;
  args.levels = sweep.levels;
  args.device = &pass;
  args.device_stream = stream.native();
  if (numbers) args.numbers = numbers->cells();
  self.context_.sweeper.sweep(args);
  if (args.numbers) numbers->gather(stream);
  if (args.numbers || (numbers && pass.launched)) numbers->fetch(stream);
}

/// Moves the numbers of a sweep's passes to the places of reductions. The runner has waited for the passes.
void BoundStage::take_device_numbers(int sweep) {
  for (std::size_t s = 0; s < executed_->device_numbers.size(); ++s)
    if (DeviceNumbers* const numbers = executed_->device_numbers[s].get();
        numbers && executed_->program.sweeps[s].number == sweep)
      numbers->take(partials_[sweep]->of(0));
}

void BoundStage::sweep_alone(int number, int slot) {
  const Candidate& c = context_.candidate;
  const int slots = c.step.slots(), threads = c.choice.threads;
  const SweepSpec& spec = stage().sweeps[number];
  const Box own = plan_.own_cells();
  on_threads(threads, [&](int thread) {
    const FlushToZero mode(c.choice.ftz);
    SweepArgs args = sweep_args(number, slot, flips(c.step, number_) ? (slot + 1) % slots : slot);
    args.region = spec.in_place ? own : part_of(own, {thread, threads});
    args.whole = own;
    args.thread = thread;
    args.scratch = scratch_[thread].data();
    if (!args.region.empty()) context_.sweeper.sweep(args);
  });
}

double BoundStage::seconds_on_device(int number, int slot) {
  device::Device& device = context_.device->device();
  device::Stream& stream = *context_.device->streams().streams[0];
  const auto begin = device.event(), end = device.event();
  const device::StreamBlocker hold(device);
  hold.on(stream);
  stream.record(*begin);
  for (const Sweep& sweep : whole_->program.sweeps)
    if (sweep.number == number) pass(whole_, sweep, slot, slot, stream);
  stream.record(*end);
  end->wait();
  return device.seconds(*begin, *end);
}

std::pair<const BoundStage*, std::size_t> BoundStage::place_of(int number) const {
  if (number >= 0) return {this, static_cast<std::size_t>(number)};
  const BoundStage& before = *context_.stages->at(static_cast<std::size_t>(number_ - 1));
  return before.place_of(number + before.reductions());
}

Reducer& BoundStage::reducer(int number) {
  const auto [stage, place] = place_of(number);
  return *stage->reducers_[place];
}

const Reduction& BoundStage::reduction(int number) const {
  const auto [stage, place] = place_of(number);
  return stage->stage().reductions[place];
}

void BoundStage::start_reduction(void* context, int reduction) {
  auto& self = *static_cast<BoundStage*>(context);
  if (self.contribute_) return self.contribute_(self.contribute_context_, reduction);
  self.take_device_numbers(self.reduction(reduction).sweep);
  self.reducer(reduction).start();
}

void BoundStage::wait_reduction(void* context, int reduction) {
  static_cast<BoundStage*>(context)->reducer(reduction).wait();
}

void BoundStage::await_reductions() {
  for (auto& reducer : reducers_) reducer->wait();
}

void BoundStage::drop_reductions() {
  for (auto& reducer : reducers_) reducer->drop();
}

void BoundStage::divert_reductions(void (*contribute)(void*, int), void* context) {
  contribute_ = contribute;
  contribute_context_ = context;
}

std::vector<Runner*> BoundStage::runners() const {
  std::vector<Runner*> found;
  for (const auto& one : bounds_) found.push_back(one->runner.get());
  return found;
}

std::vector<std::pair<const Runner*, std::int64_t>> BoundStage::executed() const {
  std::vector<std::pair<const Runner*, std::int64_t>> found;
  for (const auto& one : bounds_) found.emplace_back(one->runner.get(), one->executions);
  return found;
}

Counts BoundStage::count(const Program& program) const {
  Counts counts;
  bool exchanges = false;
  for (const Op& op : program.ops) {
    exchanges |= op.kind == OpKind::post || op.kind == OpKind::copy;
    if (op.kind == OpKind::reduce) counts.reductions += stage().reductions[op.target].calls();
    if (op.kind != OpKind::send) continue;
    for (int m : program.sets[op.target]) {
      counts.messages += 1;
      counts.message_bytes += plan_.messages[m].bytes;
    }
  }
  counts.exchanges = exchanges;
  counts.copied_bytes = copied_bytes(program, plan_);
  for (const Sweep& s : program.sweeps) counts.swept_points += s.cells() * s.levels;
  return counts;
}

Counts BoundStage::counts() const {
  Counts sum;
  for (const auto& one : bounds_) {
    Counts all;
    for (auto member : {&Counts::exchanges, &Counts::messages, &Counts::message_bytes, &Counts::copied_bytes,
                        &Counts::swept_points, &Counts::reductions})
      all.*member = one->once.*member * one->executions;
    sum += all;
  }
  return sum;
}

std::int64_t BoundStage::executions() const {
  std::int64_t sum = 0;
  for (const auto& one : bounds_)
    if (one->key.series == Series::whole || one->key.series == Series::body) sum += one->executions;
  return sum;
}

void BoundStage::reset_counts() {
  for (auto& one : bounds_) one->executions = 0;
}

}  // namespace haloscope
