#include "haloscope/apps/app.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

std::uint64_t mix(std::uint64_t x) {  // splitmix64's finaliser
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

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

double step_over_spacing(const AppParameters& p) { return p.nu > 0 ? p.nu : largest_stable_nu(p.velocity); }

void check_stable(const AppParameters& p) {
  const double nu = step_over_spacing(p), limit = largest_stable_nu(p.velocity);
  if (nu <= limit * (1 + 1e-12)) return;
  std::ostringstream text;
  text << "nu = " << nu << " is unstable for velocity (" << p.velocity[0] << ", " << p.velocity[1] << ", "
       << p.velocity[2] << "): the Courant number of some dimension exceeds 1; use --nu " << limit << " or less";
  throw UsageError(text.str());
}

std::vector<double> star_weights(const Choice& choice, const AppParameters& p) {
  const std::size_t count = choice.app == "laplace2d" ? 5 : 7;
  if (!p.weights.empty() && p.weights.size() != count)
    throw UsageError(
        choice.app + " takes " + std::to_string(count) + " weights, not " + std::to_string(p.weights.size()) +
        (count == 5 ? "; give north, west, centre, east, south" : "; give z-, y-, x-, centre, x+, y+, z+"));
  if (!p.weights.empty()) return p.weights;
  // Different in every direction, so that no exchange error can hide; of sum 1, so that values neither overflow nor
  // sink into subnormal numbers (which compute up to a hundred times slower) in any number of steps.
  if (count == 5) return {0.21, 0.17, 0.23, 0.25, 0.14};
  return {0.11, 0.13, 0.17, 0.19, 0.15, 0.12, 0.13};
}

}  // namespace

double largest_stable_nu(const std::array<double, 3>& c) {
  const double fastest = std::max({std::abs(c[0]), std::abs(c[1]), std::abs(c[2])});
  return fastest > 0 ? 1 / fastest : 1;
}

std::array<double, 3> lax_wendroff(double p) { return {p * (1 + p) / 2, 1 - p * p, p * (p - 1) / 2}; }

std::string kernel_form(const Choice& choice) {
  const std::string form = choice.form.empty() ? find_app(choice.app).forms.front() : choice.form;
  return form == "star" ? choice.app : choice.app + "-" + form;
}

std::vector<double> kernel_weights(const Choice& choice, const AppParameters& p) {
  if (choice.app == "poisson2d") {
    if (!p.weights.empty()) throw UsageError("poisson2d averages its four neighbours; drop --weights");
    return {};
  }
  if (choice.app != "advection3d") return star_weights(choice, p);
  if (!p.weights.empty()) throw UsageError("advection3d computes its weights from --velocity and --nu; drop --weights");
  check_stable(p);
  std::array<std::array<double, 3>, 3> w;
  for (int d = 0; d < 3; ++d) w[d] = lax_wendroff(p.velocity[d] * step_over_spacing(p));
  if (kernel_form(choice) == "advection3d-separable") {
    std::vector<double> flat;
    for (const auto& one : w) flat.insert(flat.end(), one.begin(), one.end());
    return flat;
  }
  std::vector<double> dense;
  for (int k = 0; k < 3; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i)
        dense.push_back(static_cast<double>(static_cast<long double>(w[0][i]) * w[1][j] * w[2][k]));
  return dense;
}

PoissonProblem poisson_problem(const Choice& choice, const AppParameters& p) {
  return {(choice.grid.cells[0] - 7) / 8, p.function};
}

double initial_value(const Choice& choice, const AppParameters& p, const Index& at) {
  if (choice.app == "poisson2d") {
    const std::int64_t n = choice.grid.cells[0] + 1;
    const std::int64_t line = std::clamp<std::int64_t>(at[1] + 1, 0, n),
                       column = std::clamp<std::int64_t>(at[0] + 1, 0, n);
    const bool border = line == 0 || column == 0 || line == n || column == n;
    if (border) return poisson_problem(choice, p).start(line, column);
    if (p.initial == "zero") return 0;
  }
  Index cell = at;
  for (int d = 0; d < choice.grid.dims; ++d)
    if (const std::int64_t n = choice.grid.cells[d]; choice.grid.periodic[d]) cell[d] = (at[d] % n + n) % n;
  // Cells outside the grid get numbers too: shift all coordinates to positive values first.
  std::uint64_t id = 0;
  for (int d = 2; d >= 0; --d) id = id * 0x100000007ull + static_cast<std::uint64_t>(cell[d] + (1 << 20));
  if (p.initial == "id") {
    std::int64_t number = 0;
    for (int d = choice.grid.dims - 1; d >= 0; --d) number = number * choice.grid.cells[d] + cell[d];
    return static_cast<double>(number);
  }
  if (p.initial != "random")
    throw UsageError(p.initial == "gaussian" ? "--initial gaussian belongs to advection3d; use random or id"
                                             : unknown_name("initial data", p.initial, {"random", "gaussian", "id"}));
  return static_cast<double>(mix(id ^ mix(p.seed)) >> 11) * 0x1p-52 - 1;
}

bool has_exact_solution(const Choice& choice, const AppParameters& p) {
  const auto& periodic = choice.grid.periodic;
  return choice.app == "advection3d" && p.initial == "gaussian" && periodic[0] && periodic[1] && periodic[2];
}

ExactSolution::ExactSolution(const Choice& choice, const AppParameters& p, const Box& cells, std::int64_t steps)
    : dims_(choice.grid.dims), low_(cells.lo) {
  for (int d = 0; d < dims_; ++d) {
    const double moved = p.velocity[d] * step_over_spacing(p) * static_cast<double>(steps);
    for (std::int64_t i = cells.lo[d]; i < cells.hi[d]; ++i)
      profile_[d].push_back(
          periodic_gaussian((static_cast<double>(i) - moved) / static_cast<double>(choice.grid.cells[d]), p.sigma));
  }
}

}  // namespace haloscope
