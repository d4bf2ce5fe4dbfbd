#include <algorithm>

#include "haloscope/extend/candidate.hpp"
#include "haloscope/extend/schedule.hpp"

namespace haloscope {

namespace {

/// The pipeline's programs of one rank. Blocks of whole lines lie in a sequence; a rank has at most four messages,
/// each a line: to and from the rank before (`up`) and the rank behind (`down`).
class Pipeline {
 public:
  Pipeline(const Stage& stage, const Plan& plan, const ScheduleOptions& options)
      : stage_(stage), plan_(plan), options_(options), line_dimension_(plan.dims - 1) {
    program_.slots = 1;
    program_.final_slot = 0;
    const auto set_of = [&](bool out, bool to_low) {
      for (std::size_t m = 0; m < plan.messages.size(); ++m)
        if (plan.messages[m].out == out && (plan.messages[m].peer < plan.rank) == to_low) {
          program_.sets.push_back({static_cast<int>(m)});
          return static_cast<int>(program_.sets.size()) - 1;
        }
      return -1;
    };
    from_before_ = set_of(false, true);
    to_before_ = set_of(true, true);
    from_behind_ = set_of(false, false);
    to_behind_ = set_of(true, false);
  }

  /// Runs a whole exchange: the first step needs the line behind at its start. The line before is updated in each
  /// step, so its next receive starts here; the receive of the line behind stays in flight.
  void opening() {
    comm(OpKind::post, from_before_);
    comm(OpKind::post, from_behind_);
    send(to_before_);
    send(to_behind_);
    receive(from_before_);
    comm(OpKind::post, from_before_);
  }

  void entry() { comm(OpKind::wait, from_before_); }

  /// Runs step `step` after its entry: the first own line, which the rank before waits for, is finished and sent
  /// early; the last own line needs the line behind in its state after the previous step. Receives for the next step
  /// start as soon as the last reader of a halo has finished.
  void body(int step, int levels) {
    const Box all = plan_.own_cells();
    const std::int64_t lines = all.extent(line_dimension_);
    const std::int64_t first = from_before_ >= 0 && lines > 1 ? 1 : 0;  // lines of the three parts
    const std::int64_t last = from_behind_ >= 0 || lines == 1 ? 1 : 0;
    comm(OpKind::unpack, from_before_);
    comm(OpKind::complete, to_before_);
    if (first) {
      sweep(part(0, 1), step, levels, Part::outer);
      next_line_before();
      progress();
    }
    middle(first, lines - last, step, levels);
    receive(from_behind_);
    comm(OpKind::complete, to_behind_);
    if (last) sweep(part(lines - 1, lines), step, levels, lines > 1 ? Part::outer : Part::full);
    if (!first) next_line_before();
    comm(OpKind::post, from_behind_);
    send(to_behind_);
  }

  void reduce(bool last) {
    for (std::size_t r = 0; r < stage_.reductions.size(); ++r)
      if (!stage_.reductions[r].last_only || last) main(OpKind::reduce, static_cast<int>(r), true);
  }

  /// Ends the last step: its numbers are reduced when no line is in flight, since a rank that waits for all others
  /// moves no lines.
  void last_step_ends() {
    closing();
    reduce(true);
  }

  /// Completes the receive of a line that no step will send: it gets the line of the last step once more.
  void closing() {
    comm(OpKind::complete, to_behind_);
    send(to_behind_);
    receive(from_before_);
    receive(from_behind_);
    comm(OpKind::complete, to_before_);
    comm(OpKind::complete, to_behind_);
  }

  Program take(int steps) {
    program_.steps = steps;
    return std::move(program_);
  }

 private:
  Box part(std::int64_t from, std::int64_t to) const {
    Box box = plan_.own_cells();
    box.lo[line_dimension_] = from;
    box.hi[line_dimension_] = to;
    return box;
  }

  int add(OpKind kind, Lane lane, int target, std::vector<std::int32_t> after) {
    std::erase(after, -1);
    program_.ops.push_back({kind, lane, 0, target, std::move(after)});
    return static_cast<int>(program_.ops.size()) - 1;
  }
  /// Appends to the comm lane, which runs in order; operations that expose cells to messages also follow the sweep
  /// before them.
  void comm(OpKind kind, int set) {
    if (set < 0) return;
    const bool exposes = kind == OpKind::post || kind == OpKind::pack;
    last_comm_ = add(kind, Lane::comm, set, {exposes ? last_main_ : -1});
  }
  void main(OpKind kind, int target, bool after_comm) {
    last_main_ = add(kind, Lane::main, target, {last_main_, after_comm ? last_comm_ : -1});
  }
  void send(int set) {
    comm(OpKind::pack, set);
    comm(OpKind::send, set);
  }
  void receive(int set) {
    comm(OpKind::wait, set);
    comm(OpKind::unpack, set);
  }
  void next_line_before() {
    comm(OpKind::post, from_before_);
    send(to_before_);
  }
  void progress() { main(OpKind::progress, -1, false); }
  void sweep(const Box& box, int step, int levels, Part part) {
    program_.sweeps.push_back({.region = box,
                               .valid = box,
                               .into = 0,
                               .step = step,
                               .levels = levels,
                               .part = part,
                               .in_place = true,
                               .whole = plan_.own_cells()});
    main(OpKind::sweep, static_cast<int>(program_.sweeps.size()) - 1, part != Part::inner);
  }
  /// Sweeps the middle in tiles, with the transport's progress between them: a long line moves only if both ends
  /// progress.
  void middle(std::int64_t from, std::int64_t to, int step, int levels) {
    constexpr std::int64_t shortest = 64;  // lines of a tile
    const bool alone = plan_.messages.empty();
    const std::int64_t max_tiles = std::max<std::int64_t>(1, (to - from) / shortest);
    const std::int64_t tiles = alone ? 1 : std::clamp<std::int64_t>(options_.tiles, 1, max_tiles);
    for (std::int64_t t = 0; t < tiles && from < to; ++t) {
      sweep(part(from + (to - from) * t / tiles, from + (to - from) * (t + 1) / tiles), step, levels,
            alone ? Part::full : Part::inner);
      if (!alone) progress();
    }
  }

  const Stage& stage_;
  const Plan& plan_;
  const ScheduleOptions& options_;
  int line_dimension_;
  int from_before_, to_before_, from_behind_, to_behind_;  // message sets, -1 where no such rank exists
  int last_comm_ = -1, last_main_ = -1;                    // operations
  Program program_;
};

}  // namespace

/// Runs Gauss-Seidel in the order of the sequential sweep, with ranks in different steps at one time (Schroeter 2021,
/// 4.3). A rank without neighbours fuses its `steps` steps into one sweep.
static Program make_pipeline(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  Pipeline pipeline(stage, plan, options);
  const bool alone = plan.messages.empty();
  switch (options.series) {
    case Series::opening:
      pipeline.opening();
      return pipeline.take(0);
    case Series::entry:
      pipeline.entry();
      return pipeline.take(0);
    case Series::body:
      pipeline.body(0, alone ? options.steps : 1);
      options.last ? pipeline.last_step_ends() : pipeline.reduce(false);
      return pipeline.take(alone ? options.steps : 1);
    case Series::closing:
      pipeline.closing();
      return pipeline.take(0);
    case Series::whole:
      break;
  }
  pipeline.opening();
  for (int step = 0; step < options.steps; ++step) {
    pipeline.entry();
    pipeline.body(step, 1);
    if (!options.last || step + 1 < options.steps) pipeline.reduce(false);
  }
  options.last ? pipeline.last_step_ends() : pipeline.closing();
  return pipeline.take(options.steps);
}

namespace {

std::string refuse_columns(const Candidate& c) {
  if (c.step.stages.size() > 1)
    return "schedule 'pipeline' passes lines on from step to step, and app '" + c.app.name +
           "' has several stages in a step; use another schedule";
  for (int d = 0; d + 1 < c.layout.dims(); ++d)
    if (c.layout.ranks()[d] != 1)
      return "schedule 'pipeline' needs blocks of whole lines, one behind the other; use --process-grid slabs";
  for (int d = 0; d < c.layout.dims(); ++d)
    if (c.layout.grid().periodic[d])
      return "schedule 'pipeline' begins at one edge of the grid and ends at the other; use --periodic none";
  return refused_single_messages(c.choice.strategy);
}

}  // namespace

extern const Schedule pipeline_schedule{
    .name = "pipeline",
    .summary = "in place, line after line: ranks one behind the other in different steps (Gauss-Seidel)",
    .colour = "#9d755d",
    .make = make_pipeline,
    .options = {"tiles"},
    .deep = false,
    .in_place = true,
    .illegal = refuse_columns};

}  // namespace haloscope
