#include "haloscope/stepper/stepper_request.hpp"

#include <algorithm>
#include <set>

#include "haloscope/comm/same_request.hpp"
#include "haloscope/core/choice_fields.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/runner/exchange_request.hpp"
#include "haloscope/stepper/stepper_device.hpp"
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
  const auto refuse = [&](const std::string& fault) {
    throw UsageError("sweep '" + sweep.name + "' is in place " + fault);
  };
  for (const Access& read : sweep.reads)
    if (read.layers > 1)
      refuse("and reads " + std::to_string(read.layers) +
             " layers, of which ranks pass on one; read 1, or use two slots");
  for (int q : sweep.writes)
    if (q >= 0 && q < static_cast<int>(fields.size()) && fields[q].slots != 1)
      refuse("and writes field '" + fields[q].name + "', which has two slots; give it one");
}

std::string text_of(const GridSpec& grid) {
  std::string around;
  for (int d = 0; d < grid.dims; ++d)
    if (grid.periodic[d]) around += "xyz"[d];
  return sizes_text(grid.cells, grid.dims) + " cells, " + (around.empty() ? "not periodic" : "periodic in " + around);
}

/// Checks grid and ranks, which a choice of best() has; a user's choice may leave them at their defaults.
void check_grid(const Choice& choice, const Layout& layout) {
  if (layout.has_several_blocks())
    throw UsageError("a Stepper needs a grid of one block a rank, and here ranks have several; use an Exchange");
  if (layout.grid().meets_itself()) throw UsageError("a Stepper needs a grid without a fold or seams; use an Exchange");
  if (layout.blocks() != layout.size())
    throw UsageError("a Stepper needs cells on every rank, and " + std::to_string(layout.size() - layout.blocks()) +
                     " of the grid's " + std::to_string(layout.size()) +
                     " ranks own none; split the grid over all ranks of a communicator");
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

/// Adds the fields of a choice that a Stepper uses, except the cells, which the layout has, and threads. Lists are
/// not JSON here: the destructor of JSON allocates, and ends the program where memory is exhausted.
void add_aspects(std::vector<Aspect>& aspects, const Choice& choice) {
  for (const ChoiceField& field : choice_fields())
    if (field.name != "threads" && field.is_scalar) aspects.push_back({field.name, field.get(choice).dump()});
  std::string text;
  for (const auto& [stage, strategy] : choice.stage_strategies) text += stage + "=" + to_string(strategy) + ";";
  aspects.push_back({"stage_strategies", text});
}

}  // namespace

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

Choice choice_for(const Choice& requested, const Layout& layout, const std::vector<int>& nodes) {
  check_grid(requested, layout);
  Choice choice = requested;
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

void check_choice(const Candidate& c) {
  std::string reason = refuse_on_device(c);
  if (reason.empty()) reason = refuse_here(c);
  if (reason.empty()) reason = illegal(c);
  if (!reason.empty()) throw UsageError("a Stepper cannot run the choice: " + reason);
}

void check_request(const Candidate& c, const std::vector<FieldRef>& fields) {
  check_slots(c.step);
  check_rows(fields, c.layout.dims());
  check_choice(c);
  check_room(c, fields);
}

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

void require_same_steps(MPI_Comm comm, const Candidate& c, const std::vector<FieldRef>& fields,
                        const std::vector<int>& nodes, bool fused, bool guarded) {
  std::vector<Aspect> aspects = aspects_of(c.layout, nodes);
  add_aspects(aspects, c.choice);
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

}  // namespace haloscope
