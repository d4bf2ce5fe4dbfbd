// advection3d: a wave carried by a constant velocity, Lax-Wendroff on 27 points (White & Dongarra 2011).
#include <cmath>

#include "haloscope/apps/advection3d/weights.hpp"
#include "haloscope/apps/kernel_sweeper.hpp"
#include "haloscope/core/text.hpp"
#include "haloscope/extend/candidate.hpp"

namespace haloscope {

namespace {

/// Gaussian on the unit interval made periodic by summing its images; smooth everywhere.
double periodic_gaussian(double x, double sigma) {
  double sum = 0;
  x -= std::floor(x);
  for (int image = -3; image <= 3; ++image) {
    const double distance = (x - 0.5 + image) / sigma;
    sum += std::exp(-0.5 * distance * distance);
  }
  return sum;
}

bool has_exact_solution(const Problem& problem) {
  const auto& periodic = problem.grid.periodic;
  return problem.parameters.word("initial") == "gaussian" && periodic[0] && periodic[1] && periodic[2];
}

double gaussian_at(const Problem& problem, int d, std::int64_t cell, std::int64_t steps) {
  const Parameters& p = problem.parameters;
  const double moved = p.reals("velocity")[d] * step_over_spacing(p) * static_cast<double>(steps);
  const auto n = static_cast<double>(problem.grid.cells[d]);
  return periodic_gaussian((static_cast<double>(cell) - moved) / n, p.real("sigma"));
}

/// The initial wave moved by c t. Tabulated per dimension, so a whole block costs no more than a product per cell.
std::function<double(const Index&)> exact_solution(const Problem& problem, int, const Box& cells, std::int64_t steps) {
  if (!has_exact_solution(problem)) return nullptr;
  std::array<std::vector<double>, 3> profile;
  for (int d = 0; d < 3; ++d)
    for (std::int64_t i = cells.lo[d]; i < cells.hi[d]; ++i) profile[d].push_back(gaussian_at(problem, d, i, steps));
  return [profile, low = cells.lo](const Index& cell) {
    double value = 1;
    for (int d = 0; d < 3; ++d) value *= profile[d][cell[d] - low[d]];
    return value;
  };
}

std::string illegal_advection(const Candidate& c) {
  const Parameters& p = c.problem.parameters;
  const auto& velocity = p.reals("velocity");
  if (velocity.size() != 3)
    return "advection3d takes a velocity of 3 numbers, not " + std::to_string(velocity.size()) +
           "; write --set velocity=1,0.5,0.25";
  if (p.word("initial") == "gaussian" && !has_exact_solution(c.problem))
    return "initial data 'gaussian' need a grid periodic in x, y and z; use --set initial=random";
  const double nu = step_over_spacing(p), limit = largest_stable_nu(velocity);
  if (nu <= limit * (1 + 1e-12)) return "";
  TextStream text;
  text << "nu = " << nu << " is unstable for velocity (" << velocity[0] << ", " << velocity[1] << ", " << velocity[2]
       << "): the Courant number of some dimension exceeds 1; use --set nu=" << limit << " or less";
  return text.str();
}

}  // namespace

extern const AppKernels advection3d_kernels;  // made by haloscope_add_app()

const App& advection3d_app() {
  static const App app = [] {
    const Step step = stencil_step(3, 1, true, 53);
    App a;
    a.name = "advection3d";
    a.summary = "27-point Lax-Wendroff advection in 3D, dense or as three 1D stencils";
    a.dims = 3;
    a.quantities = step.quantities;
    a.stages = step.stages;
    a.parameters = {
        {.name = "velocity", .value = std::vector<double>{1, 0.5, 0.25}, .help = "Velocity in x, y, z."},
        {.name = "nu", .value = 0.0, .help = "Time step over grid spacing; 0: the largest stable one.", .least = 0},
        {.name = "sigma",
         .value = 0.1,
         .help = "Width of the initial Gaussian, in lengths of the domain.",
         .least = 1e-6,
         .most = 1e6}};
    a.forms = {"dense", "separable"};
    a.initials = {"gaussian"};
    a.device_levels = 1;
    a.exact = exact_solution;
    a.illegal = illegal_advection;
    a.kernels = &advection3d_kernels;
    a.open = [](const KernelContext& o) {
      return std::make_unique<KernelSweeper>(o, "advection3d-" + o.problem.form, advection_weights(o.problem));
    };
    a.device = [](const Problem& p) { return DeviceKernel{"advection3d-" + p.form, advection_weights(p)}; };
    a.entries = [](const Problem& p, const Sweeper&, const FieldReader&) {
      return std::vector<RecordEntry>{{"nu", step_over_spacing(p.parameters)}};
    };
    return a;
  }();
  return app;
}

}  // namespace haloscope
