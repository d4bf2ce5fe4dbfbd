// hydro3d: compressible gas on a staggered grid, a Lagrangian step of sub-cycles and a remap dimension by dimension.
// Its stages, exchanges and collectives come from the hydrodynamics code that Davis 2017 models (chapter 4).
#include "haloscope/extend/app.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "davis2017/app/hydro3d/clock.hpp"
#include "davis2017/app/hydro3d/states.hpp"
#include "haloscope/device/kernels.hpp"
#include "haloscope/extend/candidate.hpp"
#include "haloscope/field/memory.hpp"
#include "haloscope/kernels/kernel.hpp"

namespace haloscope {

namespace hydro {
namespace {

// ---- quantities -----------------------------------------------------------------------------------------------------

Quantity cell_of(const std::string& name) { return {.name = name, .edges = {Edge::even, Edge::even, Edge::even}}; }

/// A component of a vector changes its sign in the mirror of a wall that is normal to it.
Quantity component(const std::string& name, int d, Centring centring) {
  Quantity q{.name = name + "_" + "xyz"[d], .centring = centring, .edges = {Edge::even, Edge::even, Edge::even}};
  q.edges[static_cast<std::size_t>(d)] = Edge::odd;
  return q;
}

Centring face_of(int d) { return static_cast<Centring>(static_cast<int>(Centring::face_x) + d); }

std::vector<Quantity> quantities() {
  std::vector<Quantity> all;
  for (const char* name : {"density", "energy", "fraction", "volume", "other_density", "other_energy", "other_fraction",
                           "other_volume", "pressure", "viscosity", "sound"})
    all.push_back(cell_of(name));
  all.push_back(cell_of("material"));
  all.back().element_bytes = 4;
  all.back().type = ScalarType::integer;
  for (const char* name : {"velocity", "acceleration", "other_velocity", "other_acceleration", "displacement"})
    for (int d = 0; d < 3; ++d) all.push_back(component(name, d, Centring::node));
  for (const char* name : {"node_mass", "node_loss"}) all.push_back({.name = name, .centring = Centring::node});
  for (const char* name : {"volume_flux", "mass_flux"})
    for (int d = 0; d < 3; ++d) all.push_back(component(name, d, face_of(d)));
  return all;
}

// ---- stages ---------------------------------------------------------------------------------------------------------

using Accesses = std::vector<Access>;

Accesses each(std::vector<int> fields, int layers, Accesses others = {}) {
  for (int field : fields) others.push_back({field, layers});
  return others;
}
std::vector<int> vector_of(int field, int components = 3) {
  std::vector<int> all;
  for (int d = 0; d < components; ++d) all.push_back(field + d);
  return all;
}
std::vector<int> joined(std::vector<int> a, const std::vector<int>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

SweepSpec viscosity_sweep() {
  return {.name = "viscosity",
          .reads = each(joined({density, sound}, vector_of(velocity)), 0, {{pressure, 1}}),
          .writes = {viscosity},
          .flops_per_point = 140};
}
SweepSpec state_sweep(bool predicted) {
  return {.name = "state",
          .reads = each(predicted ? std::vector<int>{other_density, other_energy, material}
                                  : std::vector<int>{density, energy, material},
                        0),
          .writes = {pressure, sound},
          .flops_per_point = 5};
}
SweepSpec predict_sweep() {
  return {.name = "predict",
          .reads = each(joined({density, energy, volume, pressure, viscosity}, vector_of(velocity, 6)), 0),
          .writes = {other_density, other_energy},
          .flops_per_point = 65};
}
SweepSpec totals_sweep() {
  return {.name = "totals",
          .reads = each(joined({density, energy, fraction}, vector_of(velocity)), 0),
          .writes = {},
          .flops_per_point = 65};
}

SweepSpec summary_sweep() {
  return {.name = "summary",
          .reads = each(joined({density, energy, fraction, pressure, sound}, vector_of(velocity)), 0),
          .writes = {},
          .flops_per_point = 230};
}

/// Form `fused` joins sweeps: as few passes over the fields as stages allow.
bool fuses(const Problem& problem) { return problem.form == "fused"; }

/// Merged: related numbers are reduced in one call, and totals. Studied: gathers of the studied code, and its summary.
enum class Collectives { merged, studied };

/// A gathered fault has the number of its cell, which an integer must hold.
constexpr std::int64_t most_cells_of_integers = (std::int64_t{1} << 30) - 1;

/// The studied code gathers numbers from all ranks, one by one.
Reduction gathered(Reduction reduction) {
  reduction.by = ReduceBy::gather;
  reduction.collectives = reduction.numbers;
  return reduction;
}

/// ShortPrint of the studied code (Davis 2017, chapter 4): gathers of 7 integers, 42 numbers, 9 lists and a text.
std::vector<Reduction> summary_reductions() {
  return {gathered({.name = "summary-counts", .numbers = counted_count, .type = NumberType::integer}),
          gathered({.name = "summary-sums", .numbers = observed_count}),
          gathered({.name = "summary-largest", .op = ReduceOp::max, .numbers = observed_count}),
          gathered({.name = "summary-least", .op = ReduceOp::min, .numbers = observed_count}),
          {.name = "summary-directed", .numbers = directed_count, .collectives = directed_count, .by = ReduceBy::lists},
          {.name = "summary-sketch",
           .op = ReduceOp::max,
           .numbers = sketch_letters,
           .by = ReduceBy::gather,
           .type = NumberType::character}};
}

Reduction faults_of(const std::string& stage, int sweep, Collectives calls) {
  Reduction faults{.name = stage + "-faults", .op = ReduceOp::max, .sweep = sweep};
  if (calls == Collectives::merged) return faults;
  faults.type = NumberType::integer;
  return gathered(faults);
}

Stage limits_stage(bool fused, Collectives calls) {
  const Accesses of_rates = each(joined({density, energy, pressure, viscosity, sound}, vector_of(velocity, 6)), 0);
  const SweepSpec limits{.name = "limits",
                         .reads = each(joined({density, energy, sound}, vector_of(velocity, 6)), 0, {{pressure, 1}}),
                         .writes = {viscosity},
                         .flops_per_point = 240};
  const SweepSpec rates{.name = "rates", .reads = of_rates, .writes = {}, .flops_per_point = 190};
  Stage stage{
      .name = "limits",
      .sweeps = fused ? std::vector{limits, totals_sweep()} : std::vector{viscosity_sweep(), rates, totals_sweep()}};
  const int last = static_cast<int>(stage.sweeps.size()) - 1;
  const Reduction rates_of_all{.name = "rates", .op = ReduceOp::max, .numbers = rate_count, .sweep = last - 1};
  if (calls == Collectives::studied) {
    stage.sweeps.pop_back();
    stage.reductions = {gathered(rates_of_all)};
  } else {
    stage.reductions = {rates_of_all, {.name = "totals", .numbers = total_count, .sweep = last}};
  }
  return stage;
}

/// Sub-cycles: the first begins with the nodes' masses, the others with the viscosity. The fused form gathers these
/// masses at their first use.
Stage predict_stage(bool again, bool fused, Collectives calls) {
  const std::string name = again ? "predict-again" : "predict";
  const SweepSpec nodes{.name = "gather-nodes",
                        .reads = {{density, 0}},
                        .writes = joined({node_mass}, vector_of(displacement)),
                        .flops_per_point = 8};
  SweepSpec cells = predict_sweep();
  if (fused) {
    cells.name = "predict-pressure";
    cells.reads.push_back({material, 0});
    cells.writes = {pressure};
  }
  Stage stage{.name = name, .sweeps = {}};
  if (again) stage.sweeps.push_back(viscosity_sweep());
  if (!again && !fused) stage.sweeps.push_back(nodes);
  stage.sweeps.push_back(cells);
  const int number = static_cast<int>(stage.sweeps.size()) - 1;
  if (!fused) stage.sweeps.push_back(state_sweep(true));
  stage.reductions = {faults_of(name, number, calls)};
  if (again) {
    stage.repeats = 2;
    stage.least = 0;
    stage.most = most_cycles - 1;
  }
  return stage;
}

Stage accelerate_stage(bool again, bool fused, Collectives calls) {
  const std::string name = again ? "accelerate-again" : "accelerate";
  SweepSpec nodes{
      .name = "accelerate",
      .reads = each(joined(joined({pressure, viscosity, node_mass}, vector_of(velocity)), vector_of(displacement)), 0),
      .writes = joined(vector_of(velocity, 6), vector_of(displacement)),
      .flops_per_point = 50};
  if (fused && !again) {
    nodes.name = "accelerate-first";
    nodes.reads = each(joined({pressure, viscosity, density}, vector_of(velocity)), 0);
    nodes.writes.push_back(node_mass);
  }
  SweepSpec cells{.name = "correct",
                  .reads = each(joined({density, energy, volume, pressure, viscosity}, vector_of(velocity, 6)), 0),
                  .writes = {density, energy, volume},
                  .flops_per_point = 65};
  if (fused) {
    cells.name = "correct-pressure";
    cells.reads.push_back({material, 0});
    cells.writes = {density, energy, volume, pressure, sound};
  }
  Stage stage{.name = name, .sweeps = {nodes, cells}};
  if (!fused) stage.sweeps.push_back(state_sweep(false));
  stage.reductions = {faults_of(name, 1, calls)};
  return stage;
}

/// Returns the fields of the set that a sweep of the remap reads, in the order of the fields that it writes.
std::vector<int> set_of_cells(bool other) {
  return other ? std::vector<int>{other_density, other_energy, other_fraction, other_volume}
               : std::vector<int>{density, energy, fraction, volume};
}

/// Returns the dimension of a turn of the remap: x, y, z in even steps, z, y, x in odd ones.
int dimension_of(int turn, std::int64_t step) { return step % 2 == 0 ? turn : 2 - turn; }

/// Returns the suffix that traces add to the name of a turn's sweep.
std::function<std::string(std::int64_t)> along_of(int turn) {
  return [turn](std::int64_t step) { return std::string("along ") + "xyz"[dimension_of(turn, step)]; };
}

Stage cells_stage(int turn, bool fused) {
  const bool back = turn == 1;
  const SweepSpec faces{.name = "sweep-faces",
                        .reads = each(vector_of(displacement), 0),
                        .writes = vector_of(volume_flux),
                        .flops_per_point = 12};
  SweepSpec cells{.name = "remap-cells-" + std::to_string(turn + 1),
                  .reads = {},
                  .writes = joined(set_of_cells(!back), vector_of(mass_flux)),
                  .flops_per_point = 110,
                  .in_step = along_of(turn)};
  for (int field : set_of_cells(back)) cells.reads.push_back({field, 2, {}, Centring::cell});
  if (fused) {
    cells.reads = each(vector_of(displacement), 0, cells.reads);
    cells.writes = joined(cells.writes, vector_of(volume_flux));
  } else {
    for (int field : vector_of(volume_flux)) cells.reads.push_back({field, 0, {}, Centring::cell});
  }
  for (int d = 0; d < 3; ++d) {  // the two cells that touch a face, and one more on each side
    const Centring face = face_of(d);
    for (int field : set_of_cells(back)) cells.reads.push_back({field, 1, {}, face});
    if (!fused) cells.reads.push_back({volume_flux + d, 0, {}, face});
  }
  Stage stage{.name = "cells-" + std::to_string(turn + 1), .sweeps = {cells}};
  if (turn == 0 && !fused) stage.sweeps.insert(stage.sweeps.begin(), faces);
  return stage;
}

/// Returns the sweeps after the last turn, which put cells and nodes back in their places.
std::vector<SweepSpec> return_sweeps(bool heats, bool fused) {
  const SweepSpec cells{.name = "return-cells",
                        .reads = each(set_of_cells(true), 0),
                        .writes = joined(set_of_cells(false), {material}),
                        .flops_per_point = 2};
  const SweepSpec nodes{
      .name = "return-nodes", .reads = each(vector_of(other_velocity, 6), 0), .writes = vector_of(velocity, 6)};
  if (!fused) return {cells, nodes, state_sweep(false)};
  SweepSpec gas{.name = "return-gas",
                .reads = each(joined(set_of_cells(true), vector_of(other_velocity)), 0),
                .writes = joined(set_of_cells(false), {material, pressure, sound}),
                .flops_per_point = 72};
  if (heats) {
    gas.reads.push_back({node_loss, 0});
    gas.writes.push_back(other_energy);
    gas.flops_per_point += 9;
  }
  return {nodes, gas};
}

Stage nodes_stage(int turn, bool heats, bool fused, Collectives calls) {
  const bool back = turn == 1;
  const std::vector<int> masses{density, volume, other_density, other_volume};
  const SweepSpec nodes{
      .name = "remap-nodes-" + std::to_string(turn + 1),
      .reads = each(vector_of(back ? other_velocity : velocity, 6), 3, each(joined(masses, vector_of(mass_flux)), 1)),
      .writes = joined(vector_of(back ? velocity : other_velocity, 6), {node_loss}),
      .flops_per_point = 250,
      .in_step = along_of(turn)};
  Stage stage{.name = "nodes-" + std::to_string(turn + 1), .sweeps = {nodes}};
  const std::vector<int> target = set_of_cells(!back);
  if (heats && !(fused && turn == 2))
    stage.sweeps.push_back(
        {.name = "heat", .reads = each(joined({node_loss}, target), 0), .writes = {target[1]}, .flops_per_point = 11});
  if (turn < 2) return stage;
  for (const SweepSpec& sweep : return_sweeps(heats, fused)) stage.sweeps.push_back(sweep);
  if (calls == Collectives::studied) {
    stage.sweeps.push_back(summary_sweep());
    stage.reductions = summary_reductions();
    return stage;
  }
  if (!fused) stage.sweeps.push_back(totals_sweep());  // else the last sweep gathers them
  stage.reductions = {{.name = "last-totals", .numbers = total_count}};
  return stage;
}

/// Sets the exchanges of the modelled code (Davis 2017, table 5.6), which cover more than the sweeps read.
void exchange_as_studied(std::vector<Stage>& stages) {
  const Accesses of_viscosity{{pressure, 1}};
  const Accesses of_pressures = each({pressure, viscosity, density, material}, 1);
  stages[stage_limits].exchange = stages[stage_predict_again].exchange = of_viscosity;
  stages[stage_predict].exchange = each(joined({density, material}, vector_of(velocity, 6)), 1);
  stages[stage_accelerate].exchange = stages[stage_accelerate_again].exchange = of_pressures;
  for (int turn = 0; turn < 3; ++turn) {
    const bool back = turn == 1;
    stages[static_cast<std::size_t>(stage_cells + 2 * turn)].exchange =
        each(joined(set_of_cells(back), {pressure, material}), 2);
    stages[static_cast<std::size_t>(stage_nodes + 2 * turn)].exchange = each(
        joined(joined({density, volume, other_density, other_volume}, vector_of(back ? other_velocity : velocity, 6)),
               vector_of(mass_flux)),
        3);
  }
}

bool heats(const Problem& problem) { return problem.parameters.word("lost_motion") == "heat"; }

Step step_of_problem(const Problem& problem) {
  const bool fused = fuses(problem);
  const Collectives calls = summarises(problem) ? Collectives::studied : Collectives::merged;
  Step step{quantities(),
            {limits_stage(fused, calls), predict_stage(false, fused, calls), accelerate_stage(false, fused, calls),
             predict_stage(true, fused, calls), accelerate_stage(true, fused, calls)}};
  for (int turn = 0; turn < 3; ++turn) {
    step.stages.push_back(cells_stage(turn, fused));
    step.stages.push_back(nodes_stage(turn, heats(problem), fused, calls));
  }
  if (problem.parameters.word("exchange") == "studied") exchange_as_studied(step.stages);
  return step;
}

// ---- kernels --------------------------------------------------------------------------------------------------------

class HydroSweeper final : public Sweeper {
 public:
  explicit HydroSweeper(const KernelContext& o)
      : kernel_(find_kernel("hydro3d-" + o.problem.form, o.problem.real, o.isa)),
        in_arrays_(o.problem.form == "arrays"),
        arrays_(static_cast<std::size_t>(o.threads)) {
    for (std::size_t stage = 0; stage < o.step.stages.size(); ++stage) {
      calls_.emplace_back();
      for (const SweepSpec& sweep : o.step.stages[stage].sweeps)
        calls_.back().push_back(call_of(static_cast<int>(stage), sweep.name, fuses(o.problem)));
    }
    const Parameters& p = o.problem.parameters;
    const auto size = cell_size(o.problem);
    for (int d = 0; d < 3; ++d) {
      const auto e = static_cast<std::size_t>(d);
      weights_[static_cast<std::size_t>(inverse_size + d)] = 1 / size[e];
      weights_[static_cast<std::size_t>(area + d)] = size[(e + 1) % 3] * size[(e + 2) % 3];
    }
    weights_[cell_volume] = size[0] * size[1] * size[2];
    weights_[quadratic] = p.real("quadratic_viscosity");
    weights_[linear] = p.real("linear_viscosity");
    weights_[gamma_less_one] = p.real("gamma") - 1;
    weights_[gamma_less_one + 1] = p.real("other_gamma") - 1;
    const auto row = static_cast<double>(o.problem.grid.cells[0]),
               plane = row * static_cast<double>(o.problem.grid.cells[1]);
    weights_[heated] = heats(o.problem) ? 1 : 0;
    weights_[first_x] = static_cast<double>(o.first[0]);
    weights_[code_row] = row;
    weights_[code_plane] = plane;
    weights_[code_first] = 1 + static_cast<double>(o.first[0]) + row * static_cast<double>(o.first[1]) +
                           plane * static_cast<double>(o.first[2]);
  }

  void sweep(const SweepArgs& args) override {
    std::array<Operand, field_count> operands;
    for (std::size_t q = 0; q < operands.size(); ++q) {
      const SlotView& view = args.out[q];
      auto* origin = reinterpret_cast<double*>(view.origin);
      operands[q] = {origin, origin, view.stride[1] / view.stride[0], view.stride[2] / view.stride[0]};
    }
    std::array<double, weight_count> weights = weights_;
    weights[sub_step] = args.scalars[time_of_cycle];
    KernelArgs k;
    k.operands = operands.data();
    k.weights = weights.data();
    k.reduced = args.reduced;
    k.region = k.points = args.region;
    k.scratch = in_arrays_ ? arrays_for(args) : args.scratch;
    const Call& call = calls_[static_cast<std::size_t>(args.stage)][static_cast<std::size_t>(args.sweep)];
    if (call.kernel == kernel_faces) return run_faces(k, args);
    if (call.first_step_only && args.step > 0) return;
    const int d = call.turns ? dimension_of((args.stage - stage_cells) / 2, args.step) : 0;
    if (call.points >= 0) k.points = args.points(call.points + (call.points == mass_flux ? d : 0));
    k.number = call.kernel + d;
    args.device ? args.device->run(k) : kernel_.sweep(k);
  }
  std::size_t scratch_bytes(const Box& region, int) const override {
    return static_cast<std::size_t>(kept_rows * kept_pitch(region.extent(0) + 1)) * sizeof(double);
  }
  std::string isa() const override { return kernel_.isa; }

 private:
  /// The work of a sweep: a kernel, and the quantity whose points it covers, if they are not the region's cells.
  struct Call {
    int kernel;
    int points = -1;
    bool turns = false;  ///< kernel and component of `points` depend on the turn's dimension
    /// Totals that only the first step needs: each later step begins with the totals at the end of the step before.
    bool first_step_only = false;
  };

  static Call call_of(int stage, const std::string& sweep, bool fused) {
    const int turn = (stage - stage_cells) / 2;
    const bool back = turn == 1, predicts = stage == stage_predict || stage == stage_predict_again;
    const std::map<std::string, Call> calls{
        {"viscosity", {kernel_viscosity}},
        {"rates", {kernel_rates}},
        {"limits", {kernel_limits}},
        {"totals", {kernel_totals, -1, false, fused && stage == stage_limits}},
        {"gather-nodes", {kernel_gather_nodes, node_mass}},
        {"predict", {kernel_predict}},
        {"predict-pressure", {kernel_predict_pressure}},
        {"state", {predicts ? kernel_state_predicted : kernel_state}},
        {"accelerate", {kernel_accelerate, velocity}},
        {"accelerate-first", {kernel_accelerate_first, velocity}},
        {"correct", {kernel_correct}},
        {"correct-pressure", {kernel_correct_pressure}},
        {"sweep-faces", {kernel_faces, volume_flux}},
        {"remap-cells-" + std::to_string(turn + 1), {back ? kernel_cells_back : kernel_cells, mass_flux, true}},
        {"remap-nodes-" + std::to_string(turn + 1), {back ? kernel_nodes_back : kernel_nodes, velocity, true}},
        {"heat", {back ? kernel_heat : kernel_heat_other}},
        {"return-cells", {kernel_return_cells}},
        {"return-nodes", {kernel_return_nodes, velocity}},
        {"return-gas", {kernel_return_gas}},
        {"summary", {kernel_summary}}};
    return calls.at(sweep);
  }

  /// Returns a thread's arrays, kept from stage to stage: large enough for the largest part that it has computed.
  void* arrays_for(const SweepArgs& args) {
    const Box& part = args.region;
    const auto bytes =
        static_cast<std::size_t>(kept_arrays * array_points(part.extent(0), part.extent(1), part.extent(2))) *
        sizeof(double);
    Memory& mine = arrays_[static_cast<std::size_t>(args.thread)];
    if (mine.size() < bytes) mine = Memory(bytes);
    return mine.data();
  }
  void run_faces(KernelArgs& k, const SweepArgs& args) const {
    for (int d = 0; d < 3; ++d) {
      k.points = args.points(volume_flux + d);
      k.number = kernel_faces + d;
      kernel_.sweep(k);
    }
  }

  haloscope::Kernel kernel_;
  std::vector<std::vector<Call>> calls_;  // by stage and sweep
  bool in_arrays_;
  std::vector<Memory> arrays_;  // by thread
  std::array<double, weight_count> weights_{};
};

// ---- the app --------------------------------------------------------------------------------------------------------

std::string refuse(const Candidate& c) {
  const Parameters& p = c.problem.parameters;
  if (!c.choice.device.empty() && !fuses(c.problem))
    return "form '" + c.problem.form + "' has no kernels for devices; use --form fused, or drop --device";
  const std::vector<double>& replay = p.reals("replay");
  if (replay.size() > static_cast<std::size_t>(p.integer("most_cycles")))
    return "replay has steps of up to " + std::to_string(replay.size()) + " sub-cycles, and most_cycles is " +
           std::to_string(p.integer("most_cycles")) + "; use a larger most_cycles or a shorter list";
  if (!replay.empty() && *std::max_element(replay.begin(), replay.end()) <= 0)
    return "replay has no steps; list the numbers of steps with 1, 2, ... sub-cycles, as 157,18,10,32";
  for (double count : replay)
    if (count != static_cast<double>(static_cast<std::int64_t>(count)))
      return "replay counts steps, in whole numbers; use a list such as 157,18,10,32";
  if (const auto& n = c.problem.grid.cells; summarises(c.problem) && n[0] * n[1] * n[2] > most_cells_of_integers)
    return "collectives=studied gathers numbers of cells as integers of 4 bytes, which count up to " +
           std::to_string(most_cells_of_integers) + " cells; use a smaller grid or collectives=merged";
  if (const auto size = p.reals("cell_size").size(); size != 0 && size != 3)
    return "cell_size has " + std::to_string(size) + " numbers; give the extents of a cell in x, y and z, or none";
  return "";
}

std::vector<Parameter> parameters() {
  return {
      {.name = "gamma", .value = 1.4, .help = "Ratio of specific heats.", .least = 1.0001, .most = 10},
      {.name = "other_gamma", .value = 1.4, .help = "The same of material 1.", .least = 1.0001, .most = 10},
      {.name = "axis", .value = std::int64_t{0}, .help = "Dimension along Sod's tube.", .least = 0, .most = 2},
      {.name = "blast_radius", .value = 0.1, .help = "Width of Sedov's initial energy; 0: in one cell.", .least = 0},
      {.name = "cell_size",
       .value = std::vector<double>{},
       .help = "Extents of a cell in x, y, z; empty: 1 / the cells in x.",
       .least = 1e-12},
      {.name = "end",
       .value = 0.0,
       .help = "Time at which the run ends, after --steps at the latest; 0: after --steps.",
       .least = 0},
      {.name = "courant",
       .value = 0.5,
       .help = "Part of a cell that sound crosses in a sub-cycle.",
       .least = 1e-6,
       .most = 1},
      {.name = "first_step",
       .value = 0.1,
       .help = "The first time step, in longest sub-cycles.",
       .least = 1e-12,
       .most = 1},
      {.name = "growth",
       .value = 1.3,
       .help = "Most growth of the time step from step to step.",
       .least = 1,
       .most = 100},
      {.name = "least_step", .value = 1e-12, .help = "Time steps up to this many seconds have collapsed.", .least = 0},
      {.name = "most_cycles",
       .value = std::int64_t{4},
       .help = "Most sub-cycles of a Lagrangian step.",
       .least = 1,
       .most = most_cycles},
      {.name = "replay",
       .value = std::vector<double>{},
       .help = "Steps with 1, 2, ... sub-cycles, as 157,18,10,32, instead of those that the state requires.",
       .least = 0},
      {.name = "quadratic_viscosity",
       .value = 0.6,
       .help = "Factor of the velocity jump\'s square; (gamma + 1) / 4 is that of a strong shock.",
       .least = 0,
       .most = 100},
      {.name = "linear_viscosity",
       .value = 0.0,
       .help = "Factor of velocity jump times sound speed.",
       .least = 0,
       .most = 100},
      {.name = "lost_motion",
       .value = std::string("heat"),
       .help = "Kinetic energy that the remap loses: added to the internal energy, or dropped.",
       .words = {"heat", "dropped"}},
      {.name = "exchange",
       .value = std::string("studied"),
       .help = "Exchanged fields: as in the studied code, or only those that the sweeps need.",
       .words = {"studied", "needed"}},
      {.name = "collectives",
       .value = std::string("merged"),
       .help = "The 23 rates, and the totals: reduced in one call each, or all numbers gathered one by one, with the "
               "summary of the studied code.",
       .words = {"merged", "studied"}}};
}

std::vector<double> list_of(std::span<const double> numbers) { return {numbers.begin(), numbers.end()}; }

std::string text_of(std::span<const double> letters) {
  std::string text;
  for (double letter : letters) text += static_cast<char>(letter);
  return text;
}

std::span<const double> subspan_of(std::span<const double> numbers, int first, int count) {
  return numbers.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
}

std::vector<RecordEntry> entries(const Problem& p, const Sweeper&, const FieldReader& reader) {
  const auto s = reader.scalars();
  const double now = s[time_now] + s[time_step];
  const auto steps = s.subspan(histogram, most_cycles);
  const std::int64_t most = p.parameters.integer("most_cycles");
  std::vector<RecordEntry> list{
      {"time", now},
      {"steps_by_cycles", list_of(steps.first(static_cast<std::size_t>(most)))},
      {"last_totals", list_of(subspan_of(reader.reduced(), Numbers(p).last_totals, total_count))}};
  if (summarises(p))
    list.push_back(
        {"sketch", text_of(subspan_of(reader.reduced(), Numbers(p).summary + summary_sketch, sketch_letters))});
  else
    list.push_back({"first_totals", list_of(s.subspan(first_totals, total_count))});
  for (int d = 0; d < 3; ++d) {  // of the cells at the edge
    std::vector<Index> line(static_cast<std::size_t>(p.grid.cells[d]));
    for (std::size_t i = 0; i < line.size(); ++i) line[i][d] = static_cast<std::int64_t>(i);
    list.push_back({std::string("density_along_") + "xyz"[d], reader.values(density, line)});
  }
  if (const auto exact = exact_density(p, now)) {
    const double cells = static_cast<double>(Box{{0, 0, 0}, p.grid.cells}.volume());
    const auto error = [&](const Index& cell, double value) { return std::abs(value - exact(cell)); };
    list.push_back({"density_error", reader.sum_of(density, error) / cells});
  }
  return list;
}

}  // namespace
}  // namespace hydro

extern const AppKernels hydro3d_kernels;  // made by haloscope_add_app()

const App& hydro3d_app() {
  static const App app = [] {
    App a;
    a.name = "hydro3d";
    a.summary = "compressible gas in 3D: Lagrangian step with sub-cycles, then a remap dimension by dimension";
    a.parameters = hydro::parameters();
    a.forms = {"fused", "vector", "scalar", "lines", "arrays"};
    a.process_grid = "prime-factors";
    a.periodic = false;
    a.initials = hydro::initial_states();
    a.starts_random = false;
    a.step = hydro::step_of_problem;
    a.initial = hydro::initial_value;
    a.device_levels = 1;
    a.device = [](const Problem& p) { return DeviceKernel{"hydro3d-" + p.form, {}}; };
    a.kernels = &hydro3d_kernels;
    a.open = [](const KernelContext& o) { return std::make_unique<hydro::HydroSweeper>(o); };
    a.scalars = hydro::scalar_names();
    a.update = hydro::update_clock;
    a.finished = [](const Problem& p, int stage, std::span<const double>, std::span<const double> s) {
      return hydro::has_enough(p, stage, s);
    };
    a.ends_early = hydro::ends_by_itself;
    a.illegal = hydro::refuse;
    a.entries = hydro::entries;
    return a;
  }();
  return app;
}

}  // namespace haloscope
