// Apps of several quantities and stages, made for tests, and the programs of their choices.
#pragma once

#include <string>
#include <vector>

#include "haloscope/core/check.hpp"
#include "haloscope/extend/candidate.hpp"

namespace haloscope::test {

inline void compute_nothing(const SweepArgs&) {}

inline SweepSpec sweep_spec(const std::string& name, const std::vector<Access>& reads, const std::vector<int>& writes) {
  return {.name = name, .reads = reads, .writes = writes, .run = compute_nothing};
}

inline Stage stage_of(const std::string& name, const std::vector<SweepSpec>& sweeps) {
  return {.name = name, .sweeps = sweeps};
}

inline App app_of(const std::string& name, int dims, const std::vector<Quantity>& quantities,
                  const std::vector<Stage>& stages) {
  App app;
  app.name = name;
  app.dims = dims;
  app.quantities = quantities;
  app.stages = stages;
  return app;
}

constexpr Centring face_centring[] = {Centring::face_x, Centring::face_y, Centring::face_z};

/// Pressure (0) in cells and a velocity (1, 2, ...) on the faces of each dimension, all updated where they are.
inline std::vector<Quantity> acoustic_quantities(int dims) {
  std::vector<Quantity> all{{.name = "p", .element_bytes = 0}};
  for (int d = 0; d < dims; ++d)
    all.push_back({.name = std::string("v") + "xyz"[d], .element_bytes = 0, .centring = face_centring[d]});
  return all;
}

inline std::vector<SweepSpec> velocity_sweeps(int dims) {
  std::vector<SweepSpec> sweeps;
  for (int d = 0; d < dims; ++d)
    sweeps.push_back(sweep_spec(std::string("velocity ") + "xyz" [d],
                                {
                                  {0, 0}, { d + 1, 0 }
                                },
                                {d + 1}));
  return sweeps;
}

inline SweepSpec pressure_sweep(int dims) {
  SweepSpec sweep = sweep_spec("pressure", {{0, 0}}, {0});
  for (int d = 0; d < dims; ++d) sweep.reads.push_back({d + 1, 0});
  return sweep;
}

/// Two stages: velocities from the pressure, pressure from the velocities.
inline App acoustics(int dims) {
  return app_of("acoustics" + std::to_string(dims) + "d", dims, acoustic_quantities(dims),
                {stage_of("velocities", velocity_sweeps(dims)), stage_of("pressure", {pressure_sweep(dims)})});
}

/// The same in one stage, with one exchange.
inline App leapfrog(int dims) {
  auto sweeps = velocity_sweeps(dims);
  sweeps.push_back(pressure_sweep(dims));
  return app_of("leapfrog" + std::to_string(dims) + "d", dims, acoustic_quantities(dims), {stage_of("step", sweeps)});
}

/// Two stages whose quantities differ in width, centring, type and slots. The second one changes slots.
inline App mixture(int dims) {
  const std::vector<Quantity> quantities{
      {.name = "u", .element_bytes = 0, .slots = 2},
      {.name = "kind", .element_bytes = 4, .type = ScalarType::integer, .centring = Centring::node},
      {.name = "flux", .element_bytes = 0, .centring = face_centring[dims - 1]},
      {.name = "sum", .element_bytes = 8}};
  SweepSpec gather = sweep_spec("gather", {{0, 2}, {1, 0}}, {2});
  gather.box_stencil = true;
  return app_of("mixture" + std::to_string(dims) + "d", dims, quantities,
                {stage_of("gather", {gather}), stage_of("move", {sweep_spec("move", {{0, 1}, {2, 1}, {1, 0}}, {0}),
                                                                 sweep_spec("add", {{0, 0}, {3, 0}}, {3})})});
}

/// One stage of two sweeps in cells, the second of which reads neighbours of the first one's results: never exchanged,
/// but computed beyond the rank's own points.
inline App predictor(int dims, int reach) {
  return app_of(
      "predictor" + std::to_string(dims) + "d-" + std::to_string(reach), dims,
      {{.name = "u", .element_bytes = 0, .slots = 2}, {.name = "h", .element_bytes = 0}},
      {stage_of("step", {sweep_spec("predict", {{0, 1}}, {1}), sweep_spec("correct", {{0, 0}, {1, reach}}, {0})})});
}

/// One stage of two sweeps in cells, the second of which reads neighbours of the cells that the first has updated in
/// place: sent data is overwritten in the same stage.
inline App wave(int dims, int reach) {
  const std::vector<Quantity> quantities{{.name = "p", .element_bytes = 0, .slots = 2},
                                         {.name = "v", .element_bytes = 0}};
  return app_of("wave" + std::to_string(dims) + "d-" + std::to_string(reach), dims, quantities,
                {stage_of("step", {sweep_spec("velocity", {{0, 1}, {1, 0}}, {1}),
                                   sweep_spec("pressure", {{0, 0}, {1, reach}}, {0})})});
}

/// Two stages by stars: nodes from the cells around them, and back.
inline App nodes(int dims) {
  return app_of("nodes" + std::to_string(dims) + "d", dims,
                {{.name = "c", .element_bytes = 0}, {.name = "n", .element_bytes = 0, .centring = Centring::node}},
                {stage_of("to nodes", {sweep_spec("to nodes", {{0, 0}}, {1})}),
                 stage_of("to cells", {sweep_spec("to cells", {{1, 0}, {0, 0}}, {0})})});
}

/// Two stages by stars: faces from two layers of cells, cells from two layers of faces.
inline App wide_faces(int dims) {
  return app_of("wide-faces" + std::to_string(dims) + "d", dims,
                {{.name = "c", .element_bytes = 0}, {.name = "f", .element_bytes = 0, .centring = Centring::face_x}},
                {stage_of("to faces", {sweep_spec("to faces", {{0, 1}}, {1})}),
                 stage_of("to cells", {sweep_spec("to cells", {{1, 1}}, {0})})});
}

/// Registers the app unless it is registered already.
inline const App& known(const App& app) {
  for (const App* one : apps())
    if (one->name == app.name) return *one;
  add_app(app);
  return find_app(app.name);
}

inline Choice choice_of(const App& app, const Index& cells, bool periodic, const std::string& process_grid, int ranks) {
  Choice choice{.app = known(app).name, .grid = {app.dims, cells, {}}};
  for (int d = 0; d < 3; ++d) {
    choice.grid.periodic[d] = periodic && d < app.dims;
    if (d >= app.dims) choice.grid.cells[d] = 1;
  }
  choice.process_grid = process_grid;
  choice.ranks = ranks;
  choice.threads = 2;
  return choice;
}

/// The plans and programs of all ranks and stages for a choice, and the checker's finding on two rounds of them.
class StepCase {
 public:
  /// @param steps  of each program, at most the choice's depth; 0: the depth.
  /// @param last  they end a run.
  explicit StepCase(const Choice& requested, int steps = 0, bool last = false) : choice(requested), candidate(choice) {
    for (int s = 0; s < static_cast<int>(candidate.step.stages.size()); ++s) {
      const Stage& stage = candidate.step.stages[s];
      StagePrograms made{&stage, exchanged(candidate, s), {}, {}, choice.depth};
      ScheduleOptions options = schedule_options(candidate, s);
      if (steps > 0) options.steps = steps;
      options.last = last;
      for (int rank = 0; rank < candidate.layout.size(); ++rank) {
        made.plans.push_back(make_plan(candidate.layout, rank, exchange_spec(candidate, s)));
        made.programs.push_back(choice.schedule->make(stage, made.plans.back(), options));
      }
      stages.push_back(made);
    }
  }
  StepCase(const StepCase&) = delete;
  StepCase& operator=(const StepCase&) = delete;

  std::string finding() const {
    auto twice = stages;
    twice.insert(twice.end(), stages.begin(), stages.end());
    return check_step(candidate.layout, candidate.step, twice);
  }
  Program& program(int stage = 0, int rank = 0) { return stages[stage].programs[rank]; }

  const Choice choice;
  const Candidate candidate;
  std::vector<StagePrograms> stages;
};

}  // namespace haloscope::test
