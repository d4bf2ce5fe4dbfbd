#include "haloscope/stepper.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <set>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/handles.hpp"
#include "haloscope/comm/library_comm.hpp"
#include "haloscope/comm/meeting.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/patience.hpp"
#include "haloscope/comm/running.hpp"
#include "haloscope/comm/same_request.hpp"
#include "haloscope/comm/shared_failure.hpp"
#include "haloscope/core/choice_fields.hpp"
#include "haloscope/core/names.hpp"
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
#include "haloscope/transport/views.hpp"

namespace haloscope {

namespace {

/// The name in error texts of the app that represents the user's sweeps.
const char* const app_name = "stepper";

/// Returns the fields as quantities, with distinct names: arrays of the user all have the same name.
std::vector<Quantity> quantities_of(const std::vector<FieldRef>& fields) {
  std::vector<Quantity> quantities;
  for (const FieldRef& field : fields) {
    Quantity quantity = field.quantity;
    quantity.slots = static_cast<int>(field.slots.size());
    const auto has_name = [&](const Quantity& other) { return other.name == quantity.name; };
    if (std::any_of(quantities.begin(), quantities.end(), has_name))
      quantity.name.append(" ").append(std::to_string(quantities.size()));
    quantities.push_back(quantity);
  }
  return quantities;
}

/// Checks a loop. @throws UsageError for a loop without a stop condition.
void check_loop(const Stage& stage, const StepperOptions& options) {
  if (stage.repeats > 0 && !options.finished && stage.least != stage.most)
    throw UsageError("stage '" + stage.name + "' opens a loop of " + std::to_string(stage.least) + " to " +
                     std::to_string(stage.most) +
                     " times and has no stop condition; set StepperOptions::finished, or least equal to most");
}

/// Checks a sweep in place. @throws UsageError for one that does not work with lines passed on one by one.
void check_in_place(const SweepSpec& sweep, const std::vector<Quantity>& fields) {
  const auto refuse = [&](const std::string& what) {
    throw UsageError("sweep '" + sweep.name + "' is in place " + what);
  };
  for (const Access& read : sweep.reads)
    if (read.layers > 1)
      refuse("and reads " + std::to_string(read.layers) +
             " layers, of which ranks pass on one; read 1, or use two slots");
  for (int q : sweep.writes)
    if (q >= 0 && q < static_cast<int>(fields.size()) && fields[q].slots != 1)
      refuse("and writes field '" + fields[q].name + "', which has two slots; give it one");
}

App app_of(const std::vector<FieldRef>& fields, const Choice& choice, const std::vector<Stage>& stages, int dims,
           const StepperOptions& options) {
  if (fields.empty()) throw UsageError("a Stepper needs at least one field");
  App app;
  app.name = app_name;
  app.dims = dims;
  app.quantities = quantities_of(fields);
  app.stages = stages;
  app.reals = {to_word(choice.real)};
  if (options.fused) app.fused_forms = app.forms;
  app.device_levels = options.fused ? std::max(choice.depth, 1) : 1;
  for (const Stage& stage : stages) {
    check_loop(stage, options);
    for (const SweepSpec& sweep : stage.sweeps)
      if (sweep.in_place) {
        check_in_place(sweep, app.quantities);
        app.plain = sweep.run;  // on one rank it is the loop over the whole grid
      }
  }
  const auto finished = options.finished;
  app.finished = [finished](const Problem&, int stage, std::span<const double> reduced, std::span<const double>) {
    return finished && finished(stage, reduced);
  };
  check_app(app);
  return app;
}

std::string text_of(const GridSpec& grid) {
  std::string around;
  for (int d = 0; d < grid.dims; ++d)
    if (grid.periodic[d]) around += "xyz"[d];
  return sizes_text(grid.cells, grid.dims) + " cells, " + (around.empty() ? "not periodic" : "periodic in " + around);
}

/// Checks grid and ranks, which a choice of best() has; a user's choice may leave them at their defaults.
void check_grid(const Choice& choice, const Layout& layout) {
  const GridSpec &wanted = choice.grid, &grid = layout.grid(), any;
  const std::string remedy = "; call best() for this grid, or leave this field of the choice at its default";
  const bool open = wanted.cells == any.cells && wanted.periodic == any.periodic;
  if (!open && (wanted.cells != grid.cells || wanted.periodic != grid.periodic))
    throw UsageError("the choice is for a grid of " + text_of({grid.dims, wanted.cells, wanted.periodic}) +
                     ", and this one has " + text_of(grid) + remedy);
  if (choice.ranks != layout.size() && !(open && choice.ranks == 1))
    throw UsageError("the choice is for " + std::to_string(choice.ranks) + " ranks, and the grid is on " +
                     std::to_string(layout.size()) + remedy);
  if (choice.process_grid.empty()) return;
  if (const ProcessGrid ranks = process_grid(choice.process_grid, layout.size(), grid); ranks != layout.ranks())
    throw UsageError("the choice is for " + sizes_text(ranks, grid.dims) + " ranks, and the grid is on " +
                     sizes_text(layout.ranks(), grid.dims) + remedy);
}

/// Returns the user's choice with the fields that the grid determines.
Choice choice_for(const Choice& given, const Layout& layout, const std::vector<int>& nodes) {
  check_grid(given, layout);
  Choice choice = given;
  choice.app = app_name;
  choice.form = "";
  choice.set = {};
  choice.grid = layout.grid();
  choice.ranks = layout.size();
  choice.process_grid = "";
  choice.reorder = Reorder::none;
  choice.nodes = static_cast<int>(std::set<int>(nodes.begin(), nodes.end()).size());
  return choice;
}

/// Returns the reason why the choice cannot run on the user's fields, beyond the rules for all choices.
std::string refuse_here(const Candidate& c) {
  const Choice& choice = c.choice;
  const auto grows = [](const Stage& stage) {
    const std::vector<Widths> growth = growths(stage, 1).front();
    return std::any_of(growth.begin(), growth.end(), [](const Widths& w) { return w != Widths{}; });
  };
  if (c.layout.has_holes() && (choice.depth > 1 || std::any_of(c.step.stages.begin(), c.step.stages.end(), grows)))
    return "sweeps beyond the own cells would write into the grid's holes; use depth 1, and stages of one sweep each";
  if (choice.substeps == Substeps::blocked && c.app.fused_forms.empty())
    return "substeps 'blocked' call the sweep for several time steps in one call; set StepperOptions::fused if "
           "it supports that, else use full or shrink";
  if (choice.substeps == Substeps::blocked && c.step.stages.front().sweeps.size() > 1)
    return "substeps 'blocked' fuse one sweep, and the stage has " +
           std::to_string(c.step.stages.front().sweeps.size()) + "; use full or shrink";
  if (choice.schedule->in_place && choice.threads > 1)
    return "a sweep in place depends on the points before, so that one thread computes it; use threads 1 and more "
           "ranks";
  if (choice.temporaries == Temporaries::freed)
    return "temporaries 'freed' need fields of the library, and these are the caller's; use temporaries 'kept'";
  return "";
}

void check_choice(const Candidate& c) {
  std::string reason = refuse_on_device(c);
  if (reason.empty()) reason = refuse_here(c);
  if (reason.empty()) reason = illegal(c);
  if (!reason.empty()) throw UsageError("a Stepper cannot run the choice: " + reason);
}

/// Returns true if some sweep writes a field.
bool is_written(const Step& step, int q) {
  return std::any_of(step.stages.begin(), step.stages.end(), [q](const Stage& stage) {
    return std::any_of(stage.sweeps.begin(), stage.sweeps.end(), [q](const auto& sweep) { return writes(sweep, q); });
  });
}

/// Refuses a field of two slots that no sweep writes: its slots would be read by turns.
void check_slots(const Step& step) {
  for (int q = 0; q < static_cast<int>(step.quantities.size()); ++q)
    if (const Quantity& quantity = step.quantities[q]; quantity.slots == 2 && !is_written(step, q))
      throw UsageError("field '" + quantity.name + "' has two slots and no sweep writes it; give it one slot");
}

void check_room(const Candidate& c, const std::vector<FieldRef>& fields) {
  const std::vector<Widths> needed = room_of(c.step, c.choice.depth);
  for (std::size_t q = 0; q < fields.size(); ++q)
    for (int d = 0; d < c.layout.dims(); ++d)
      if (const int room = std::min(fields[q].low[d], fields[q].high[d]); needed[q][d] > room)
        throw UsageError("field '" + c.step.quantities[q].name + "' has room for " + std::to_string(room) +
                         " ghost layers in " + std::string(1, "xyz"[d]) + ", and depth " +
                         std::to_string(c.choice.depth) + " needs " + std::to_string(needed[q][d]) +
                         "; give it a wider halo or the choice a smaller depth");
}

/// Checks that memory is separate: a sweep may write and read all points that the depth needs of all fields, in both
/// slots. Fields that no sweep writes may be the same array.
void check_memory(const Candidate& c, int rank, const std::vector<FieldRef>& fields) {
  check_cells(fields, c.layout, rank);
  const std::vector<Widths> room = room_of(c.step, c.choice.depth);
  const Box own{{0, 0, 0}, c.layout.local_cells(rank)};
  std::vector<FieldPoints> all;
  for (int q = 0; q < static_cast<int>(fields.size()); ++q) {
    const FieldRef& field = fields[q];
    Widths margin = room[q];
    std::fill(margin.begin() + c.layout.dims(), margin.end(), 0);
    const Box points = grown(points_of(own, own, field.quantity.centring, c.layout.dims()), margin, margin);
    for (int s = 0; s < static_cast<int>(field.slots.size()); ++s) {
      const PointSet set{field.slots[s], points};
      require_memory(set.view, field.quantity.name);
      if (is_addressable(set)) all.push_back({q, s, set});
    }
  }
  const auto stay = [&](const FieldPoints& a, const FieldPoints& b) {
    return !is_written(c.step, a.field) && !is_written(c.step, b.field);
  };
  if (const auto both = find_sharing(all, stay))
    throw UsageError(
        name_sharing(c.step.quantities, *both) +
        " share memory, so that a sweep that writes the one changes the other; use separate memory for each");
}

/// Checks strides: views of SweepArgs::read() and write() are contiguous in x, with whole points from row to row.
void check_rows(const std::vector<FieldRef>& fields, int dims) {
  for (const FieldRef& field : fields)
    for (const SlotView& slot : field.slots) {
      for (int d = 1; d < dims; ++d)
        if (slot.stride[d] % field.quantity.element_bytes != 0)
          throw UsageError("field '" + field.quantity.name + "' has " + std::to_string(slot.stride[d]) +
                           " bytes between points that are neighbours in " + "xyz"[d] +
                           ", and a Stepper's sweeps need a multiple of a point's " +
                           std::to_string(field.quantity.element_bytes) +
                           "; pad rows by whole points, or exchange such fields with an Exchange and sweep yourself");
      if (slot.stride[0] != field.quantity.element_bytes)
        throw UsageError(
            "field '" + field.quantity.name + "' has " + std::to_string(slot.stride[0]) +
            " bytes between points that are neighbours in x, and a Stepper's sweeps need contiguous points (" +
            std::to_string(field.quantity.element_bytes) +
            " bytes); make the contiguous axis x, or exchange such fields with an Exchange and sweep yourself");
    }
}

std::string text_of(const Access& access) {
  return std::to_string(access.quantity) + ":" + std::to_string(access.layers) +
         (access.of ? " of " + std::string(to_word(*access.of)) : "");
}

std::string text_of(const std::vector<Access>& accesses) {
  std::vector<std::string> texts;
  for (const Access& access : accesses) texts.push_back(text_of(access));
  return join(texts, ", ");
}

std::string text_of(const Reduction& r) {
  return r.name + " (" + to_word(r.mode) + " " + to_word(r.op) + " of " + std::to_string(r.numbers) + " " +
         to_word(r.type) + " in " + std::to_string(r.collectives) + " by " + to_word(r.by) + ", sweep " +
         std::to_string(r.sweep) + (r.until.empty() ? "" : ", until " + r.until) +
         (r.last_only ? ", in last steps" : "") + (r.scheme.empty() ? "" : ", " + r.scheme) + ")";
}

std::string text_of(const SweepSpec& sweep) {
  return sweep.name + " (reads " + text_of(sweep.reads) + ", writes " + join_numbers(sweep.writes, ", ") +
         (sweep.box_stencil ? ", box" : "") + (sweep.in_place ? ", in place" : "") + ")";
}

std::string text_of(const Stage& stage) {
  std::string text = stage.name;
  for (const SweepSpec& sweep : stage.sweeps) text += "; sweep " + text_of(sweep);
  for (const Reduction& reduction : stage.reductions) text += "; reduction " + text_of(reduction);
  if (stage.exchange) text += "; exchanges " + text_of(*stage.exchange);
  if (stage.repeats > 0)
    text += "; " + std::to_string(stage.repeats) + " stages " + std::to_string(stage.least) + " to " +
            std::to_string(stage.most) + " times";
  return text;
}

/// Returns the fields of a choice that a Stepper uses, except the cells, which the layout has, and threads. Lists are
/// not JSON here: the destructor of JSON allocates, and ends the program where memory is exhausted.
std::vector<Aspect> aspects_of(const Choice& choice) {
  std::vector<Aspect> aspects;
  for (const ChoiceField& field : choice_fields())
    if (field.name != "threads" && field.is_scalar) aspects.push_back({field.name, field.get(choice).dump()});
  std::string text;
  for (const auto& [stage, strategy] : choice.stage_strategies) text += stage + "=" + to_string(strategy) + ";";
  aspects.push_back({"stage_strategies", text});
  return aspects;
}

/// Checks that all ranks take the same steps; else they would wait for each other in calls that do not match.
/// Collective.
void require_same_steps(MPI_Comm comm, const Candidate& c, const std::vector<FieldRef>& fields,
                        const std::vector<int>& nodes, bool fused, bool guarded) {
  std::vector<Aspect> aspects = aspects_of(c.layout, nodes);
  const std::vector<Aspect> chosen = aspects_of(c.choice);
  aspects.insert(aspects.end(), chosen.begin(), chosen.end());
  std::vector<std::string> names;
  for (const FieldRef& field : fields) names.push_back(field.quantity.name);
  aspects.push_back(fields_of(c.step.quantities));
  std::vector<std::string> stages;
  for (const Stage& stage : c.step.stages) stages.push_back(text_of(stage));
  aspects.push_back({"stages", join(stages, " | ")});
  aspects.push_back({"fused sweeps", fused ? "yes" : "no"});
  aspects.push_back({"guard", guarded ? "on" : "off"});
  require_same(comm, "steps", aspects, names, "give all of them the same grid, fields, choice, stages and options");
}

/// Returns views by quantity and slot; fields of one slot have it for all.
Views views_of(const std::vector<FieldRef>& fields, int slots) {
  Views views;
  for (const FieldRef& field : fields) {
    views.push_back(field.slots);
    views.back().resize(static_cast<std::size_t>(slots), views.back().front());
  }
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

  State(const Layout& layout, const std::vector<int>& nodes, const std::vector<FieldRef>& fields, const Choice& given,
        const std::vector<Stage>& described, const StepperOptions& of)
      : app(app_of(fields, given, described, layout.dims(), of)),
        place(place_of_fields(app.quantities, haloscope::views_of(fields))),
        choice(choice_in(place, choice_for(given, layout, nodes))),
        candidate(choice, app, layout),
        sweeper(candidate.step, of.strip_bytes),
        views(views_of(fields, candidate.step.slots())) {
    check_slots(candidate.step);
    check_rows(fields, layout.dims());
    check_choice(candidate);
    check_room(candidate, fields);
    if (auto device = place.open()) {
      const device::Current current(device.get());
      on_device = std::make_unique<StepperDevice>(std::move(device), views);
    }
  }

  void open(MPI_Comm parent, const std::vector<int>& nodes, const std::vector<FieldRef>& fields,
            const StepperOptions& asked) {
    const bool guards = chosen_guard(parent, asked.guard);
    override_strategy(parent);
    require_same_steps(parent, candidate, fields, nodes, asked.fused, guards);
    agree(parent, [&] { check_memory(candidate, rank_in(parent), fields); });
    const device::Current current(device());
    CHECK_MPI(MPI_Comm_dup(parent, comm.address()));
    own = LibraryComm::on(parent);
    if (guards)
      guard = std::make_unique<StepperGuard>(comm.get(), candidate, views, fields,
                                             on_device ? &on_device->fields() : nullptr);
    options.timers = false;
    options.yield = more_ranks_than_cores(comm.get(), choice.threads);
    const int rank = rank_in(comm.get());
    if (!on_device) improve_memory_of(fields, candidate.layout.local_cells(rank));
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
