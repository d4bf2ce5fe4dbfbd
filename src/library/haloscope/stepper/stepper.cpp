#include "haloscope/stepper.hpp"

#include <exception>
#include <optional>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/handles.hpp"
#include "haloscope/comm/library_comm.hpp"
#include "haloscope/comm/meeting.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/patience.hpp"
#include "haloscope/comm/running.hpp"
#include "haloscope/comm/shared_failure.hpp"
#include "haloscope/core/stores.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/runner/exchange_request.hpp"
#include "haloscope/runner/failure.hpp"
#include "haloscope/runner/overrides.hpp"
#include "haloscope/stepper/bound_stage.hpp"
#include "haloscope/stepper/counted_series.hpp"
#include "haloscope/stepper/function_sweeper.hpp"
#include "haloscope/stepper/stepper_device.hpp"
#include "haloscope/stepper/stepper_guard.hpp"
#include "haloscope/stepper/stepper_request.hpp"

namespace haloscope {

namespace {

/// Returns views by quantity and slot; fields of one slot have it for all.
Views views_of(const std::vector<FieldRef>& fields, int slots) {
  Views views = haloscope::views_of(fields);
  for (std::vector<SlotView>& of_field : views) of_field.resize(static_cast<std::size_t>(slots), of_field.front());
  return views;
}

}  // namespace

std::vector<Stage> Stepper::stages_of(SweepSpec sweep, const std::vector<FieldRef>& fields) {
  if (sweep.name.empty()) sweep.name = "sweep";
  if (sweep.reads.empty() && sweep.writes.empty())
    for (int q = 0; q < static_cast<int>(fields.size()); ++q) {
      sweep.reads.push_back({q, 1});
      sweep.writes.push_back(q);
    }
  return {Stage{.sweeps = {std::move(sweep)}}};
}

struct Stepper::State {
  App app;
  MemorySpace place;  // of the fields
  Choice choice;
  Candidate candidate;
  FunctionSweeper sweeper;
  Views views;
  RunnerOptions options;
  OwnedComm comm;                            // of collective calls
  std::shared_ptr<LibraryComm> own;          // of messages; all exchanges on the user's communicator share it
  std::unique_ptr<StepperDevice> on_device;  // null: host memory
  std::unique_ptr<StageLoop> loop;
  std::optional<SharedFailure> failure;  // with on_device
  std::unique_ptr<StepperGuard> guard;
  std::unique_ptr<CountedSeries> series;  // of sweeps in place
  std::vector<bool> ready;                // by the number of steps after whole depths: all programs are bound
  bool failed = false;
  bool leaked = false;            // the guard has just thrown
  std::optional<int> exceptions;  // in flight when all ranks had opened it; empty: not yet opened

  State(const Layout& layout, const std::vector<int>& nodes, const std::vector<FieldRef>& fields,
        const Choice& requested, const std::vector<Stage>& described, const StepperOptions& of)
      : app(app_of(fields, requested, described, layout.dims(), of)),
        place(place_of_fields(app.quantities, haloscope::views_of(fields))),
        choice(choice_in(place, choice_for(requested, layout, nodes))),
        candidate(choice, app, layout),
        sweeper(candidate.step, of.strip_bytes),
        views(views_of(fields, candidate.step.slots())) {
    check_request(candidate, fields);
    if (auto device = place.open()) {
      const device::Current current(device.get());
      on_device = std::make_unique<StepperDevice>(std::move(device), views);
    }
  }

  void open(MPI_Comm parent, const std::vector<int>& nodes, const std::vector<FieldRef>& fields,
            const StepperOptions& requested) {
    const bool guards = chosen_guard(parent, requested.guard);
    override_strategy(parent);
    require_same_steps(parent, candidate, fields, nodes, requested.fused, guards);
    bool huge_pages = false;
    agree(parent, [&] {
      check_memory(candidate, rank_in(parent), fields);
      huge_pages = may_use_huge_pages() && !on_device;
    });
    const device::Current current(device());
    CHECK_MPI(MPI_Comm_dup(parent, comm.address()));
    own = LibraryComm::on(parent);
    if (guards)
      guard = std::make_unique<StepperGuard>(comm.get(), candidate, views, fields,
                                             on_device ? &on_device->fields() : nullptr);
    options.timers = false;
    options.yield = more_ranks_than_cores(comm.get(), choice.threads);
    const int rank = rank_in(comm.get());
    if (huge_pages) improve_memory_of(fields, candidate.layout.local_cells(rank));
    const std::int64_t bytes = candidate.layout.owned(rank).volume() * candidate.step.quantities.front().element_bytes;
    StageContext context{comm.get(), *own,    candidate,
                         options,    views,   on_device ? &on_device->fields() : nullptr,
                         sweeper,    nullptr, goes_around_cache(choice.stores, bytes),
                         nodes};
    context.remembers = true;
    loop = std::make_unique<StageLoop>(context, hooks());
    for (const auto& stage : loop->all())
      if (guard) guard->add(*stage);
    if (on_device) share_failures();
    if (choice.schedule->in_place) series = std::make_unique<CountedSeries>(loop->stage(0));
    ready.resize(static_cast<std::size_t>(choice.depth));
    exceptions = std::uncaught_exceptions();
  }

  StageLoop::Hooks hooks() {
    StageLoop::Hooks all;
    if (guard) {
      all.before = [this](BoundStage& stage, std::int64_t) { guard->poison_halos(stage, loop->at.slot); };
      all.after = [this](BoundStage& stage) { check_written(stage); };
    }
    if (app.finished)
      all.finished = [this](int stage, std::span<const double> reduced) {
        return app.finished(candidate.problem, stage, reduced, {});
      };
    return all;
  }

  void share_failures() {
    std::vector<const Plan*> plans;
    for (const auto& stage : loop->all()) plans.push_back(&stage->plan());
    failure.emplace(own->comm(), tags().failure(), ranks_to_warn(own->comm(), plans));
  }

  void improve_memory_of(const std::vector<FieldRef>& fields, const Index& cells) const {
    const Box own{{0, 0, 0}, cells};
    for (const FieldRef& field : fields) {
      const Box points = points_of(own, own, field.quantity.centring, candidate.layout.dims());
      for (const SlotView& view : field.slots) improve_memory(view, grown(points, field.low, field.high));
    }
  }

  void override_strategy(MPI_Comm parent) {
    const Strategy strategy = strategy_for(place, chosen_strategy(parent, choice.strategy));
    if (strategy == choice.strategy) return;
    choice.stage_strategies.clear();
    choice.strategy = strategy;
    check_choice(candidate);
  }
  /// Returns the tags of the first stage: the Stepper uses the tags of failures and of the end, since no link does.
  const MessageTags& tags() const { return loop->stage(0).tags(); }
  device::Device* device() const { return on_device ? on_device->device() : nullptr; }

  /// After a step failed, perhaps on this rank alone, other ranks may never answer: messages in flight are abandoned.
  /// A refused opening has none, and all ranks end it together (see fail_together()).
  ~State() {
    const bool unwinds = exceptions && std::uncaught_exceptions() > *exceptions;
    if (unwinds && !failed && failure) fail_in_step("an exception of the program");
    const bool abandons = failed || unwinds || (exceptions && !may_close());
    if (loop && abandons)
      for (auto& stage : loop->all()) stage->abandon();
    if (on_device) on_device->settle();
    if (abandons) static_cast<void>(comm.release());
  }

  /// Returns true if all ranks have come here, so that none sends the reason of a failure on a communicator that was
  /// freed; false: a rank has failed.
  bool may_close() {
    if (!failure) return true;
    try {
      const FailureWatch watch;
      meet_at_end(own->comm(), tags().ending(), options.yield, [] { return std::string("Stepper"); });
      return true;
    } catch (const PeerFailure& error) {
      failure->send(error.what());
      return false;
    } catch (const std::exception& error) {
      end_job(error.what());
    }
  }

  /// @param before  null: the host waits for the device.
  void run_on_device(std::int64_t steps, DeviceStream after, const DeviceStream* before) {
    const device::Current current(device());
    on_device->begin(after);
    run(steps);
    before != nullptr ? on_device->end(*before) : on_device->finish();
  }
  /// Runs steps. Steps after one that failed fail, too. On devices, steps of the other ranks that would wait for this
  /// one fail with the same reason.
  /// @throws Error that names this rank, its peers, and the failed work.
  template <class Steps>
  void try_steps(Steps steps) {
    if (failed) throw Error(Exit::failed, "an earlier step of this Stepper failed on this rank; make a new one");
    const FailureWatch watch(failure.has_value());
    try {
      steps();
    } catch (const MpiError& error) {
      end_job(error.what());
    } catch (const PeerFailure& error) {
      fail(error.what());
      throw Error(error.exit_code(), name_step(error.what()));
    } catch (const Error& error) {
      if (std::exchange(leaked, false)) throw;
      fail_in_step(error.what());
      throw Error(error.exit_code(), name_step(error.what()));
    } catch (const std::exception& error) {
      fail_in_step(error.what());
      throw;
    } catch (...) {
      fail_in_step("an exception that is not a std::exception");
      throw;
    }
  }
  std::string name_step(const std::string& reason) const {
    return name_failure(comm.get(), loop->stage(0).plan(), "step " + std::to_string(loop->at.time), reason);
  }
  /// Other ranks receive the step and the ranks too, where memory for such a text is available.
  void fail_in_step(const char* reason) {
    std::string text;
    try {
      text = name_step(reason);
    } catch (const std::bad_alloc&) {
    }
    fail(text.empty() ? reason : text.c_str());
  }
  /// Lets streams and kernels of a device that wait for peers go on, so that memory can be freed.
  /// @param reason  text that other ranks receive.
  void fail(const char* reason) {
    failed = true;
    if (!failure) return;
    failure->send(reason);
    for (auto& stage : loop->all()) stage->stop();
  }

  /// Binds programs before the first step of a run that needs new ones: where memory is exhausted, no rank waits for
  /// one that has failed. A device shares its failures.
  void bind_programs(std::int64_t steps) {
    const auto place = static_cast<std::size_t>(steps % choice.depth);
    if (on_device || failed || ready[place]) return;
    collectively(comm.get(), "programs of a Stepper", [&] {
      agree(comm.get(), [&] {
        for (auto& stage : loop->all()) stage->bind_for(steps);
      });
    });
    ready[place] = true;
  }

  void run(std::int64_t steps) {
    loop->forget_numbers();
    series ? run_in_place(steps) : static_cast<void>(loop->run(steps));
  }

  /// Checks written points; the guard finds a stale halo on all ranks. The steps are then undone: reductions in
  /// flight end without numbers, and the Stepper has its previous slot and time, so that it may go on.
  void check_written(const BoundStage& stage) {
    try {
      guard->check_written(stage, loop->at.slot);
    } catch (const UsageError&) {
      loop->take_back();
      leaked = true;
      throw;
    }
  }

  void run_in_place(std::int64_t steps) {
    BoundStage& stage = loop->stage(0);
    loop->begin_round();
    if (guard) guard->poison_halos(stage, loop->at.slot);
    series->advance(loop->at, steps);
    if (guard) check_written(stage);
  }
};

Stepper::Stepper(MPI_Comm comm, const Layout& layout, const std::vector<int>& nodes,
                 const std::vector<FieldRef>& fields, const Choice& choice, const std::vector<Stage>& stages,
                 const StepperOptions& options) {
  collectively(comm, "a Stepper", [&] {
    std::unique_ptr<State> opened;  // freed within the call if opening fails
    agree(comm, [&] { opened = std::make_unique<State>(layout, nodes, fields, choice, stages, options); });
    opened->open(comm, nodes, fields, options);
    state_ = std::move(opened);
  });
}

Stepper::~Stepper() {
  if (state_ && mpi_has_ended()) static_cast<void>(state_.release());
}
Stepper::Stepper(Stepper&&) noexcept = default;
Stepper& Stepper::operator=(Stepper&& other) noexcept {
  Stepper(std::move(other)).state_.swap(state_);
  return *this;
}

Stepper::State& Stepper::state(const char* call) const {
  if (!state_)
    throw UsageError(std::string(call) + "() was called on a Stepper that was moved to another one; call that one's");
  return *state_;
}

namespace {
void require_steps(std::int64_t steps) {
  if (steps < 0) throw UsageError("run() got " + std::to_string(steps) + " time steps; pass 0 or more");
}
}  // namespace

int Stepper::run(std::int64_t steps) {
  State& of = state("run");
  require_running("run");
  require_steps(steps);
  if (steps == 0) return slot();
  of.bind_programs(steps);
  of.try_steps([&] { of.on_device ? of.run_on_device(steps, {}, nullptr) : of.run(steps); });
  return slot();
}

int Stepper::run(std::int64_t steps, DeviceStream stream) {
  State& of = state("run");
  require_running("run");
  require_device(of.place, "run");
  require_steps(steps);
  if (steps > 0) of.try_steps([&] { of.run_on_device(steps, stream, &stream); });
  return slot();
}

int Stepper::slot() const { return state("slot").loop->at.slot; }
std::int64_t Stepper::time() const { return state("time").loop->at.time; }

std::span<const double> Stepper::reduced(int reduction, int stage) const {
  const StageLoop& loop = *state("reduced").loop;
  if (stage < 0 || stage >= loop.stages() || reduction < 0 || reduction >= loop.stage(stage).reductions())
    throw UsageError("reduction " + std::to_string(reduction) + " of stage " + std::to_string(stage) +
                     " does not exist; both are counted from 0");
  return loop.stage(stage).reducer(reduction).numbers();
}

std::string Stepper::report() const {
  const State& of = state("report");
  const Choice& choice = of.choice;
  std::string text = "schedule " + choice.schedule->name + ", depth " + std::to_string(choice.depth);
  if (choice.depth > 1) text += " " + to_word(choice.substeps);
  if (choice.threads > 1) text += ", " + std::to_string(choice.threads) + " threads";
  for (const auto& stage : of.loop->all())
    text += "; " + (of.loop->stages() > 1 ? stage->stage().name + ": " : "") +
            describe_exchange(of.candidate.strategy(stage->number()), stage->plan(), stage->link());
  if (of.on_device) text += "; in " + to_string(of.place);
  return text;
}

}  // namespace haloscope
