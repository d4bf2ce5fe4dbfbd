#include "haloscope/rank/measure/run.hpp"

#include <algorithm>
#include <utility>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/library_comm.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/patience.hpp"
#include "haloscope/core/stores.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/topology.hpp"
#include "haloscope/rank/measure/pipeline.hpp"
#include "haloscope/stepper/function_sweeper.hpp"

namespace haloscope {

namespace {

const Choice& checked(const Choice& choice) {
  if (auto reason = illegal(choice); !reason.empty()) throw UsageError(reason);
  return choice;
}

/// Returns a plan of all quantities with room for the widest halo that any stage fills or computes, and for a margin.
Plan points_of_all(const Candidate& c, int rank, int margin) {
  ExchangeSpec all;
  all.quantities = c.step.quantities;
  all.widths.resize(all.quantities.size());
  const std::vector<Widths> room = room_of(c.step, c.choice.depth);
  for (std::size_t q = 0; q < room.size(); ++q)
    for (int d = 0; d < c.layout.dims(); ++d) all.widths[q].low[d] = all.widths[q].high[d] = room[q][d];
  Plan points = make_plan(c.layout, rank, all);
  for (ExchangeSpec::Sides& sides : points.spec.widths)
    for (int d = 0; d < c.layout.dims(); ++d) sides.low[d] += margin, sides.high[d] += margin;
  return points;
}

/// Returns the sites of the ranks, if the choice depends on them. Collective.
Sites sites_for(MPI_Comm comm, const Choice& choice) {
  if (const int size = ranks_in(comm); size != choice.ranks)
    throw UsageError("the configuration is for " + std::to_string(choice.ranks) + " ranks but " + std::to_string(size) +
                     " were started");
  if (choice.reorder == Reorder::none) return {};
  return sites_of(comm, emulated_nodes(choice.ranks, choice.nodes, choice.placement));
}

}  // namespace

Run::Run(MPI_Comm comm, const Choice& choice, const RunnerOptions& options, std::size_t hatch_bytes, int margin)
    : choice_(checked(choice)), candidate_(choice_, sites_for(comm, choice_)), options_(options), margin_(margin) {
  CHECK_MPI(MPI_Comm_rank(comm, &rank_));
  points_ = points_of_all(candidate_, rank_, margin_);
  const Index first = candidate_.layout.owned(rank_).lo;
  const KernelContext opening{candidate_.problem, candidate_.step, first, points_.cells, choice.isa, choice.threads};
  sweeper_ = candidate_.app.open ? candidate_.app.open(opening) : std::make_unique<FunctionSweeper>(candidate_.step);

  CHECK_MPI(MPI_Comm_dup(comm, comm_.address()));
  const bool on_cpu = !choice.device.empty() && device::find_backend(choice.device).on_cpu;
  options_.yield = options_.yield || on_cpu || more_ranks_than_cores(comm_.get(), choice.threads);
  const std::vector<int> nodes = emulated_nodes(choice.ranks, choice.nodes, choice.placement);
  allocate(nodes, hatch_bytes);
  lives_ = lifetimes_of(candidate_.step, candidate_.problem.grid.periodic);
  if (choice.temporaries == Temporaries::freed)
    temporaries_ = std::make_unique<FreedTemporaries>(lives_, *storage_, choice.threads);
  if (storage_) storage_->set_canaries();
  bind_stages(nodes);
}

/// Allocates fields where the choice and the strategies need them: on a device only, on both sides, or in host
/// memory.
void Run::allocate(const std::vector<int>& nodes, std::size_t hatch_bytes) {
  memory_ = choice_.memory;
  for (int stage = 0; stage < static_cast<int>(candidate_.step.stages.size()); ++stage)
    if (needs_shared_fields(candidate_.strategy(stage))) memory_ = MemoryKind::shared;
  std::vector<int> slots;
  for (const Quantity& q : candidate_.step.quantities) slots.push_back(q.slots);
  const bool on_device_alone = messages_on_device(choice_);
  if (!on_device_alone) allocate_here(nodes, slots);
  if (!choice_.device.empty())
    fields_ = std::make_unique<DeviceFields>(
        comm_.get(), candidate_, points_, on_device_alone ? Arrangement(points_, slots, true) : storage_->arrangement(),
        hatch_bytes);
  if (on_device_alone) views_ = fields_->views();
}

/// Allocates in host memory; the threads that will sweep pages write them first.
void Run::allocate_here(const std::vector<int>& nodes, const std::vector<int>& slots) {
  const Storage::Touch touch = [this](std::span<std::byte> bytes) {
#pragma omp parallel for num_threads(choice_.threads) schedule(static)
    for (std::size_t page = 0; page < bytes.size(); page += 4096) bytes[page] = std::byte{0};
  };
  const Allocator allocator = memory_ == MemoryKind::shared ? shared_by(node_of(comm_.get(), nodes)) : Allocator{};
  storage_ = std::make_unique<Storage>(points_, slots, touch, allocator, !choice_.device.empty());
  views_ = storage_->views();
  for (auto& views : views_) views.resize(static_cast<std::size_t>(candidate_.step.slots()), views.front());
}

void Run::bind_stages(const std::vector<int>& nodes) {
  const bool stream =
      goes_around_cache(choice_.stores, points_.allocated(0).volume() * points_.spec.quantities.front().element_bytes);
  scalars_.resize(candidate_.app.scalars.size());
  own_ = LibraryComm::on(comm_.get());
  const StageContext context{comm_.get(),   *own_,     candidate_,      options_, views_,
                             fields_.get(), *sweeper_, scalars_.data(), stream,   nodes};
  StageLoop::Hooks hooks;
  hooks.before = [this](BoundStage& stage, std::int64_t iteration) {
    update_scalars(stage.number(), iteration);
    if (poisons_) poison_->write(stage.number(), loop_->at.slot);
  };
  if (temporaries_) {
    hooks.open_group = [this](const StageGroup& group) { temporaries_->allocate_for(group); };
    hooks.close_group = [this](const StageGroup& group) { temporaries_->free_after(group); };
  }
  if (candidate_.app.finished)
    hooks.finished = [this](int stage, std::span<const double> reduced) {
      return candidate_.app.finished(candidate_.problem, stage, reduced, scalars_);
    };
  loop_ = std::make_unique<StageLoop>(context, std::move(hooks), !scalars_.empty());
  if (choice_.schedule->in_place) pipeline_ = std::make_unique<Pipeline>(*this);
}

/// After a step failed, perhaps on this rank alone, other ranks may never answer: messages in flight are abandoned.
Run::~Run() {
  if (std::uncaught_exceptions() > exceptions_) {
    for (auto& stage : loop_->all()) stage->abandon();
    static_cast<void>(comm_.release());
    // Work in flight still uses memory that is about to be freed.
    if (fields_) device::call_even_if_lost([this] { fields_->streams().finish(); });
    return;
  }
  if (fields_) fields_->streams().finish();
  pipeline_.reset();
  loop_.reset();
}

void Run::update_scalars(int stage, std::int64_t iteration) {
  if (!candidate_.app.update) return;
  candidate_.app.update(candidate_.problem, {stage, time(), iteration, loop_->collect_numbers()}, scalars_);
}

bool Run::ends_early() const { return candidate_.app.ends_early && candidate_.app.ends_early(candidate_.problem); }

Progress Run::advance(std::int64_t steps, bool poison) {
  poisons_ = poison;
  if (poison && !poison_) add_poison();
  loop_->forget_numbers();
  if (fields_ && options_.trace_events > 0) fields_->streams().move_origin();
  const Progress progress = pipeline_ ? pipeline_->advance(steps) : loop_->run(steps, ends_early());
  finish_device();
  loop_->collect_numbers();
  return progress;
}

void Run::sweep_alone(int stage, int sweep) { this->stage(stage).sweep_alone(sweep, loop_->at.slot); }

double Run::seconds_on_device(int stage, int sweep) {
  return this->stage(stage).seconds_on_device(sweep, loop_->at.slot);
}

/// Waits until all steps are done, on a device too.
void Run::finish_device() {
  for (auto& stage : loop_->all()) stage->finish();
  stale_ = fields_ && storage_;
}

/// Copies the device's block to the host if it is newer: where the host has fields, reads use them.
void Run::refresh() const {
  if (std::exchange(stale_, false)) fields_->download(*storage_, program().block);
}

bool Run::canaries_alive() const {
  return (!storage_ || storage_->canaries_alive()) && (!fields_ || fields_->canaries_alive());
}

std::span<const double> Run::reduced(int stage, int reduction) const {
  return this->stage(stage).reducer(reduction).numbers();
}

void Run::reset_timers() {
  for (auto& stage : loop_->all())
    for (Runner* runner : stage->runners()) runner->reset_timers();
  if (temporaries_) temporaries_->reset_timers();
}

void Run::reset_traces() {
  for (auto& stage : loop_->all()) {
    stage->reset_counts();
    for (Runner* runner : stage->runners()) runner->reset_trace();
  }
  if (temporaries_) temporaries_->reset_counts();
}

std::vector<const Runner*> Run::runners() const {
  std::vector<const Runner*> found;
  for (const auto& stage : loop_->all())
    for (const Runner* runner : stage->runners()) found.push_back(runner);
  return found;
}

std::array<double, timer_count> Run::seconds() const {
  std::array<double, timer_count> sum{};
  for (const Runner* runner : runners())
    for (int i = 0; i < timer_count; ++i) sum[i] += runner->seconds()[i];
  return sum;
}

/// Returns the maximum of resident bytes; memory of a device is always resident.
std::int64_t Run::most_resident() const {
  if (!storage_) return static_cast<std::int64_t>(round_up(arrangement().bytes(), small_page));
  return std::max(resident_bytes(storage_->all()), temporaries_ ? temporaries_->most_resident() : 0);
}

Counts Run::counts() const {
  Counts sum;
  for (const auto& stage : loop_->all()) sum += stage->counts();
  return sum;
}

std::string Run::transport_report() const {
  std::string text;
  for (const auto& stage : loop_->all())
    if (const std::string report = stage->link().report(); !report.empty())
      text += (text.empty() ? "" : "; ") + (stages() > 1 ? stage->stage().name + ": " : "") + report;
  return text;
}

}  // namespace haloscope
