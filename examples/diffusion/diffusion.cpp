// The smallest app: heat that diffuses in 2D.
//   haloscope run --program ./diffusion diffusion --cells 512 --strategy 'ordered/*' --depth 1,2
#include <haloscope/extend/main.hpp>

using namespace haloscope;

enum { heat };

void diffuse(const SweepArgs& args) {
  const double rate = args.problem->parameters.real("rate");
  const auto old = args.read<double, 2>(heat);
  const auto now = args.write<double, 2>(heat);
  for (auto j = args.region.lo[1]; j < args.region.hi[1]; ++j)
    for (auto i = args.region.lo[0]; i < args.region.hi[0]; ++i)
      now(i, j) = old(i, j) + rate * (old(i - 1, j) + old(i + 1, j) + old(i, j - 1) + old(i, j + 1) - 4 * old(i, j));
}

int main(int argc, char** argv) {
  App app;
  app.name = "diffusion";
  app.summary = "heat that diffuses";
  app.dims = 2;
  app.quantities = {{.name = "heat", .slots = 2}};
  app.stages = {{.sweeps = {{.name = "diffuse", .reads = {{heat, 1}}, .writes = {heat}, .run = diffuse}}}};
  app.parameters = {{.name = "rate", .value = 0.2, .help = "Diffusion number.", .least = 0, .most = 0.25}};
  return rank_main(argc, argv, {app});
}
