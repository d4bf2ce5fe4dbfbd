// Sound in 2D on a staggered grid: pressure in cells, velocities on faces. A step has two stages, each with its own
// exchange, and ends in the energy, summed over all ranks.
//   haloscope run --program ./wave wave --cells 256 --schedule '*' --stage-strategies 'push=ordered/persistent'
#include <cmath>
#include <haloscope/extend/app.hpp>
#include <haloscope/extend/main.hpp>

using namespace haloscope;

namespace {

enum { pressure, velocity_x, velocity_y };

/// Computes velocities from pressure differences: each face lies between a cell and the previous one in x or y.
void push(const SweepArgs& args, int velocity, std::int64_t dx, std::int64_t dy) {
  const double c = args.problem->parameters.real("courant");
  const auto p = args.read<double, 2>(pressure);
  const auto v = args.write<double, 2>(velocity);
  const Box faces = args.points(velocity);
  for (auto j = faces.lo[1]; j < faces.hi[1]; ++j)
    for (auto i = faces.lo[0]; i < faces.hi[0]; ++i) v(i, j) -= c * (p(i, j) - p(i - dx, j - dy));
}
void push_x(const SweepArgs& args) { push(args, velocity_x, 1, 0); }
void push_y(const SweepArgs& args) { push(args, velocity_y, 0, 1); }

/// Computes pressure from the divergence of the velocities; the energy of a cell includes half the energy of its faces.
void compress(const SweepArgs& args) {
  const double c = args.problem->parameters.real("courant");
  const auto x = args.read<double, 2>(velocity_x), y = args.read<double, 2>(velocity_y);
  const auto p = args.write<double, 2>(pressure);
  double potential = 0, kinetic = 0;
  for (auto j = args.region.lo[1]; j < args.region.hi[1]; ++j)
    for (auto i = args.region.lo[0]; i < args.region.hi[0]; ++i) {
      const double left = x(i, j), right = x(i + 1, j), below = y(i, j), above = y(i, j + 1);
      p(i, j) -= c * (right - left + above - below);
      potential += p(i, j) * p(i, j) / 2;
      kinetic += (left * left + right * right + below * below + above * above) / 4;
    }
  if (!args.reduced) return;
  args.reduced[0] += potential;
  args.reduced[1] += kinetic;
}

/// Returns the start values: a round bump of pressure in the middle, zero velocities.
InitialValue bump(const Problem& problem, int quantity) {
  const Index cells = problem.grid.cells;
  return [cells, quantity](const Index& at) -> std::optional<double> {
    const double x = (at[0] + 0.5) / cells[0] - 0.5, y = (at[1] + 0.5) / cells[1] - 0.5;
    return quantity == pressure ? std::exp(-200 * (x * x + y * y)) : 0.0;
  };
}

Step step(const Problem& problem) {
  const Reduction energy{
      .name = "energy", .numbers = 2, .mode = from_word<ReduceMode>(problem.parameters.word("energy"))};
  return {
      .quantities = {{.name = "pressure"},
                     {.name = "velocity_x", .centring = Centring::face_x},
                     {.name = "velocity_y", .centring = Centring::face_y}},
      .stages = {
          {.name = "push",
           // {quantity, 0}: the points that touch a written one, here the two cells of a face, and itself
           .sweeps = {{.name = "x", .reads = {{pressure, 0}, {velocity_x, 0}}, .writes = {velocity_x}, .run = push_x},
                      {.name = "y", .reads = {{pressure, 0}, {velocity_y, 0}}, .writes = {velocity_y}, .run = push_y}}},
          {.name = "compress",
           .sweeps = {{.name = "compress",
                       .reads = {{velocity_x, 0}, {velocity_y, 0}, {pressure, 0}},
                       .writes = {pressure},
                       .run = compress}},
           .reductions = {energy}}}};
}

}  // namespace

int main(int argc, char** argv) {
  App app{.name = "wave", .summary = "sound in 2D on a staggered grid", .dims = 2};
  app.parameters = {{.name = "courant", .value = 0.5, .help = "Time step over cell size.", .least = 0, .most = 0.7},
                    {.name = "energy",
                     .value = std::string("blocking"),
                     .help = "When ranks wait for the energy.",
                     .words = {"blocking", "nonblocking", "deferred"}}};
  app.initials = {"bump"};
  app.starts_random = false;
  app.initial = bump;
  app.step = step;
  return rank_main(argc, argv, {app});
}
