#include "haloscope/run/run.hpp"

#include <utility>

#include "haloscope/comm/cores.hpp"
#include "haloscope/error.hpp"
#include "haloscope/kernels/denormals.hpp"
#include "haloscope/schedule.hpp"
#include "haloscope/transport/composite.hpp"

namespace haloscope {

namespace {

const Choice& checked(const Choice& choice) {
  if (auto reason = illegal(choice); !reason.empty()) throw UsageError(reason);
  return choice;
}

/// Gauss-Seidel steps that a rank without neighbours fuses.
constexpr int fused_in_place = 32;

}  // namespace

Simulation::Simulation(MPI_Comm comm, const Choice& choice, const AppParameters& parameters,
                       const SimulationOptions& options)
    : choice_(checked(choice)),
      parameters_(parameters),
      options_(options),
      layout_(make_layout(choice)),
      weights_(kernel_weights(choice, parameters)) {
  int rank = 0, size = 0;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  if (size != choice.ranks)
    throw UsageError("the configuration is for " + std::to_string(choice.ranks) + " ranks but " + std::to_string(size) +
                     " were started");
  const Real real = choice.real == "f32" ? Real::f32 : Real::f64;
  const bool poisson = choice.app == "poisson2d";
  if (!poisson) kernel_ = find_kernel(kernel_form(choice), real, options.isa);
  if (parameters.initial == "gaussian" && !has_exact_solution(choice, parameters))
    throw UsageError("--initial gaussian needs advection3d on a grid periodic in x, y and z; use --initial random");
  plan_ = make_plan(layout_, rank, exchange_spec(choice));

  MPI_Comm_dup(comm, &comm_);
  options_.runner.threads = choice.threads;
  // Streams of back end `host` are threads beside the rank's own.
  options_.runner.yield =
      options_.runner.yield || choice.device == "host" || more_ranks_than_cores(comm_, choice.threads);
  const Strategy strategy = parse_strategy(choice.strategy);
  const std::vector<int> nodes = emulated_nodes(size, choice.nodes, choice.placement);
  allocate(strategy, nodes);
  storage_->set_canaries();
  stream_ = options.stream >= 0 ? options.stream == 1
                                : plan_.allocated(0).volume() * (real == Real::f32 ? 4 : 8) >= stream_from_bytes;
  if (!choice.device.empty())
    fields_ = std::make_unique<DeviceFields>(comm_, choice, weights_, options.device, plan_, *storage_);
  const bool on_device = messages_on_device(choice);
  const Views& views = on_device ? fields_->views() : storage_->views();
  LinkContext context{comm_, &layout_, &plan_, &views, options_.runner.yield};
  context.device = on_device ? device() : nullptr;
  context.threads = choice.threads;
  context.nodes = nodes;
  link_ = open_link(strategy, context);
  const bool pipeline = choice.schedule == "pipeline";
  full_ = bind(pipeline && size == 1 ? fused_in_place : choice.depth);
  if (pipeline) {
    opening_ = bind(1, Series::opening);
    entry_ = bind(1, Series::entry);
    closing_ = bind(1, Series::closing);
  }
  if (poisson) {
    poisson_ = std::make_unique<PoissonSweeps>(choice_, parameters_, layout_, plan_, options.isa, stream_,
                                               full_->program.steps);
    kernel_.isa = poisson_->isa();
  }
  if (kernel_.scratch_bytes && choice.region == "blocked" && !fields_)
    for (int t = 0; t < choice.threads; ++t) {
      std::size_t most = 0;
      for (const Sweep& s : full_->program.sweeps) most = std::max(most, kernel_.scratch_bytes(s.region, choice.depth));
      scratch_.emplace_back(most);
    }
}

/// Fields where the strategy needs them, their pages first touched by the threads that will sweep them.
void Simulation::allocate(const Strategy& strategy, const std::vector<int>& nodes) {
  const Storage::Touch touch = [this](std::span<std::byte> bytes) {
#pragma omp parallel for num_threads(choice_.threads) schedule(static)
    for (std::size_t page = 0; page < bytes.size(); page += 4096) bytes[page] = std::byte{0};
  };
  const int slots = choice_.schedule == "pipeline" ? 1 : 2;
  if (needs_shared_fields(strategy)) options_.memory = MemoryKind::shared;
  if (options_.memory == MemoryKind::shared) {
    const Node node(comm_, nodes);
    storage_ = std::make_unique<Storage>(plan_, slots, touch, shared_by(node));
  } else {
    storage_ = std::make_unique<Storage>(plan_, slots, touch);
  }
}

/// When a step failed, on this rank alone perhaps, others may never answer: what is in flight is given up, not awaited.
Simulation::~Simulation() {
  if (std::uncaught_exceptions() > exceptions_) {
    static_cast<void>(link_.release());
    try {  // work under way still uses what goes now
      if (fields_) fields_->streams().finish();
    } catch (const Error&) {  // the device has failed, so nothing is under way
    }
    return;
  }
  if (fields_) fields_->streams().finish();
  for (auto* bound : {&opening_, &entry_, &closing_, &rest_, &full_}) bound->reset();
  link_.reset();
  MPI_Comm_free(&comm_);
}

std::unique_ptr<Simulation::Bound> Simulation::bind(int steps, Series series) const {
  const AppInfo& app = find_app(choice_.app);
  ScheduleOptions o = schedule_options(choice_);
  o.steps = steps;
  o.tiles = options_.tiles;
  o.barrier = options_.barrier;
  if (choice_.schedule == "pipeline") o.series = series;
  o.pack_first = options_.device.pack_first;
  auto bound = std::make_unique<Bound>();
  bound->program = find_schedule(choice_.schedule).make({app.radius, app.box_stencil}, plan_, o);
  const Views none;  // copies are the device's work where there is one
  bound->comm = std::make_unique<CommOps>(bound->program, o.device ? none : storage_->views(), *link_, comm_,
                                          options_.runner.yield);
  RunnerOptions runner = options_.runner;
  if (fields_) {
    bound->device =
        std::make_unique<DeviceOps>(bound->program, plan_, storage_->views(), fields_->views(),
                                    o.device ? static_cast<DeviceLink*>(link_.get()) : nullptr, fields_->streams(),
                                    fields_->sweeps(), runner.timers, runner.trace_events);
    runner.device = bound->device.get();
    runner.graph = choice_.graph;
  }
  bound->runner = std::make_unique<Runner>(bound->program, *bound->comm,
                                           SweepCall{&Simulation::sweep, const_cast<Simulation*>(this)}, runner);
  return bound;
}

Simulation::Bound& Simulation::remainder(int steps) {
  if (!rest_ || rest_->program.steps != steps) rest_ = bind(steps);
  return *rest_;
}

void Simulation::sweep(void* context, const Sweep& sweep, const Box& box, int slot, int into, int thread) {
  const auto& self = *static_cast<const Simulation*>(context);
  const auto& views = self.storage_->views()[0];
  const FlushToZero mode(self.options_.flush_to_zero);
  if (self.poisson_) return self.poisson_->run(sweep, box, views[slot], views[into], thread);
  SweepArgs args;
  args.in = views[slot].origin;
  args.out = views[into].origin;
  args.row = views[slot].stride[1] / views[slot].stride[0];
  args.plane = views[slot].stride[2] / views[slot].stride[0];
  args.region = box;
  args.weights = self.weights_.data();
  args.stream = self.stream_;
  args.levels = sweep.levels;
  if (sweep.levels == 1) return self.kernel_.sweep(args);
  args.scratch = self.scratch_[thread].data();
  self.kernel_.fused(args);
}

void Simulation::run(std::int64_t steps, bool poison) {
  open(poison);
  for (std::int64_t left = steps; left > 0;) {
    Bound& bound = left >= full_->program.steps ? *full_ : remainder(static_cast<int>(left));
    enter();
    advance(bound, poison);
    left -= bound.program.steps;
  }
  close();
  finish_device();
}

/// A run ends when its steps are done, on a device too.
void Simulation::finish_device() {
  for (Bound* bound : bounds()) bound->runner->finish();
  stale_ = fields_ != nullptr;
}

/// Whoever looks at values looks at host memory.
void Simulation::refresh() const {
  if (!std::exchange(stale_, false)) return;
  messages_on_device(choice_) ? fields_->download(*storage_) : fields_->download(*storage_, full_->program.block);
}

bool Simulation::canaries_alive() const {
  refresh();
  return storage_->canaries_alive();
}

void Simulation::advance(Bound& bound, bool poison) {
  if (poison && !pipelined()) poison_halos(slot_);  // a pipeline's halos may already be in flight
  if (poisson_) poisson_->at_iteration(time_);
  slot_ = bound.runner->run(slot_, time_);
  time_ += bound.program.steps;
}

void Simulation::open(bool poison) {
  if (!pipelined()) return;
  if (poison) poison_halos(slot_);
  opening_->runner->run(slot_, time_);
}

bool Simulation::enter(bool (*stop)(void*), void* context) {
  if (!pipelined()) return true;
  if (stop) return entry_->runner->run_unless(slot_, time_, stop, context);
  entry_->runner->run(slot_, time_);
  return true;
}

void Simulation::step(bool poison) { advance(full_->program.steps == 1 ? *full_ : remainder(1), poison); }

void Simulation::close() {
  if (pipelined()) closing_->runner->run(slot_, time_);
}

void Simulation::step_back() {
  slot_ = 1 - slot_;
  --time_;
}

Simulation::Traffic Simulation::traffic(std::int64_t steps) const {
  const auto sent = [this](const Program& program) {
    Traffic sum;
    for (const Op& op : program.ops)
      if (op.kind == OpKind::send)
        for (int m : program.sets[static_cast<std::size_t>(op.target)]) {
          sum.messages += 1;
          sum.bytes += plan_.messages[static_cast<std::size_t>(m)].bytes;
        }
    return sum;
  };
  const std::int64_t programs = (steps + full_->program.steps - 1) / full_->program.steps;
  Traffic all = sent(full_->program);
  all = {all.messages * programs, all.bytes * programs};
  for (const auto* bound : {&opening_, &entry_, &closing_})
    if (*bound) {
      const Traffic more = sent((*bound)->program);
      all = {all.messages + more.messages, all.bytes + more.bytes};
    }
  return all;
}

std::int64_t Simulation::field_bytes() const {
  return static_cast<std::int64_t>(storage_->bytes(0, 0).size()) * storage_->slots();
}

std::vector<Simulation::Bound*> Simulation::bounds() const {
  std::vector<Bound*> found;
  for (const auto* bound : {&full_, &rest_, &opening_, &entry_, &closing_})
    if (*bound) found.push_back(bound->get());
  return found;
}

void Simulation::reset_timers() {
  for (Bound* bound : bounds()) bound->runner->reset_timers();
}

void Simulation::reset_traces() {
  for (Bound* bound : bounds()) bound->runner->reset_trace();
}

std::vector<const Runner*> Simulation::runners() const {
  std::vector<const Runner*> found;
  for (Bound* bound : bounds()) found.push_back(bound->runner.get());
  return found;
}

std::array<double, timer_count> Simulation::seconds() const {
  std::array<double, timer_count> sum{};
  for (Bound* bound : bounds())
    for (int i = 0; i < timer_count; ++i) sum[i] += bound->runner->seconds()[i];
  return sum;
}

std::int64_t Simulation::swept_points() const {
  std::int64_t points = 0;
  for (const Sweep& s : full_->program.sweeps) points += s.cells() * s.levels;
  return points;
}

}  // namespace haloscope
