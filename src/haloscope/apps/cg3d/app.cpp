// cg3d: the method of conjugate gradients without preconditioner for the seven-point Laplacian in 3D, zero on all sides
// (Davis 2017, chapter 7; with a single reduction: D'Azevedo, Eijkhout and Romine 1993).
#include "haloscope/app.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "haloscope/apps/cg3d/operands.hpp"
#include "haloscope/choice.hpp"
#include "haloscope/kernels/kernel.hpp"
#include "haloscope/reproducible_sum.hpp"

namespace haloscope {

namespace {

static_assert(cg_sum_parts == ReproducibleSum::parts);

enum { solution, residual, direction, product, image };  // x, r, p, q = A p and, with a single reduction, w = A r
enum { alpha, beta, rho, start, largest_first, largest_second, bound, scalar_count };
constexpr const char* scalar_names[scalar_count] = {
    "alpha", "beta", "residual_squared", "start_squared", "largest_term", "largest_other_term", "bound"};

constexpr double largest_row_sum = 12;     // of the matrix's magnitudes
constexpr double nothing_to_gain = 1e-60;  // part of the start's r r below which fields stay as they are
constexpr double rounding_margin = 1 + 1e-6;

bool single_reduction(const Problem& p) { return p.parameters.word("method") == "single-reduction"; }
bool fused(const Problem& p) { return p.form == "fused"; }
double cells_in(const Problem& p) { return static_cast<double>(Box{{0, 0, 0}, p.grid.cells}.volume()); }

// ---- kernels ------------------------------------------------------------------------------------------------------------

/// A sweep: its entry in the step, its kernel, and the kernel's operands.
struct CgSweep {
  SweepSpec spec;
  const char* kernel;
  std::vector<int> operands;
};

CgSweep multiply(int in, int out) {
  return {{.name = "multiply", .reads = {{in, 1}}, .writes = {out}, .flops_per_point = 7}, "cg3d-product", {in, out}};
}
CgSweep dot(const std::string& name, int u, int v, bool both) {
  return {{.name = name, .reads = {{u, 0}, {v, 0}}, .writes = {}, .flops_per_point = both ? 4.0 : 2.0},
          both ? "cg3d-dots" : "cg3d-dot",
          {u, v}};
}
CgSweep update(const std::string& name, const char* kernel, int v, int u) {
  return {{.name = name, .reads = {{v, 0}, {u, 0}}, .writes = {v}, .flops_per_point = 2}, kernel, {v, u}};
}

/// The sweeps of each stage.
std::vector<std::vector<CgSweep>> sweeps_of(const Problem& problem) {
  const CgSweep grow = update("solution", "cg3d-add-scaled", solution, direction);
  const CgSweep shrink = update("residual", "cg3d-subtract-scaled", residual, product);
  const CgSweep turn = update("direction", "cg3d-add-to-scaled", direction, residual);
  if (single_reduction(problem)) {
    if (!fused(problem))
      return {{multiply(residual, image), dot("dots", residual, image, true)},
              {turn, update("product", "cg3d-add-to-scaled", product, image), grow, shrink}};
    CgSweep both = multiply(residual, image), all = grow;
    both.spec.flops_per_point += 4;
    both.kernel = "cg3d-product-and-dots";
    all.spec = {.name = "update",
                .reads = {{solution, 0}, {residual, 0}, {direction, 0}, {product, 0}, {image, 0}},
                .writes = {solution, residual, direction, product},
                .flops_per_point = 8};
    all.kernel = "cg3d-update-all";
    all.operands = {solution, residual, direction, product, image};
    return {{both}, {all}};
  }
  if (!fused(problem))
    return {{turn},
            {multiply(direction, product), dot("curvature", direction, product, true)},
            {grow, shrink, dot("norm", residual, residual, false)}};
  const CgSweep turn_and_multiply{{.name = "direction",
                                   .reads = {{direction, 1}, {residual, 1}},
                                   .writes = {direction, product},
                                   .flops_per_point = 13},
                                  "cg3d-direction",
                                  {direction, residual, product}};
  const CgSweep advance{{.name = "update",
                         .reads = {{solution, 0}, {residual, 0}, {direction, 0}, {product, 0}},
                         .writes = {solution, residual},
                         .flops_per_point = 6},
                        "cg3d-update",
                        {solution, residual, direction, product}};
  return {{turn_and_multiply}, {advance}};
}

class CgSweeper final : public Sweeper {
 public:
  explicit CgSweeper(const Opening& o) : terms_(cells_in(o.problem)) {
    for (const auto& stage : sweeps_of(o.problem)) {
      std::vector<Call>& calls = calls_.emplace_back();
      for (const CgSweep& one : stage) calls.push_back({find_kernel(one.kernel, o.problem.real, o.isa), one.operands});
    }
  }

  void sweep(const SweepArgs& args) override {
    const Call& call = calls_[static_cast<std::size_t>(args.stage)][static_cast<std::size_t>(args.sweep)];
    std::array<Operand, image + 1> operands;
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      const SlotView &from = args.in[call.operands[i]], &to = args.out[call.operands[i]];
      operands[i] = {reinterpret_cast<const double*>(from.origin), reinterpret_cast<double*>(to.origin),
                     to.stride[1] / to.stride[0], to.stride[2] / to.stride[0]};
    }
    std::array<double, cg_weights> weights;
    weights[cg_alpha] = args.scalars[alpha];
    weights[cg_less_alpha] = -args.scalars[alpha];
    weights[cg_beta] = args.scalars[beta];
    const ReproducibleSum first(args.scalars[largest_first], terms_), second(args.scalars[largest_second], terms_);
    std::copy(first.split.begin(), first.split.end(), weights.begin() + cg_split);
    std::copy(second.split.begin(), second.split.end(), weights.begin() + cg_split + cg_sum_parts);
    KernelArgs k;
    k.operands = operands.data();
    k.weights = weights.data();
    k.reduced = args.reduced;
    k.region = args.region;
    k.stream = args.stream;
    k.scratch = args.scratch;
    call.kernel.sweep(k);
  }
  std::size_t scratch_bytes(const Box& region, int) const override {
    const std::int64_t least = 9 * 8 * cg_ring_pitch(region.extent(0));
    return static_cast<std::size_t>(std::max(cg_ring_bytes, least));
  }
  std::string isa() const override { return calls_.front().front().kernel.isa; }

 private:
  struct Call {
    Kernel kernel;
    std::vector<int> operands;
  };
  double terms_;
  std::vector<std::vector<Call>> calls_;
};

// ---- step and scalars ---------------------------------------------------------------------------------------------------

Step cg_step(const Problem& problem) {
  const bool single = single_reduction(problem);
  Step step;
  step.quantities = {{.name = "x"}, {.name = "r"}, {.name = "p"}, {.name = "q"}};
  if (single) step.quantities.push_back({.name = "w"});
  const bool in_one_pass = fused(problem) && !single;
  if (in_one_pass) step.quantities[direction].slots = 2;  // neighbouring parts still read the old one
  const std::vector<std::string> names = single        ? std::vector<std::string>{"multiply", "update"}
                                         : in_one_pass ? std::vector<std::string>{"direction", "update"}
                                                       : std::vector<std::string>{"direction", "multiply", "update"};
  const auto sweeps = sweeps_of(problem);
  for (std::size_t s = 0; s < sweeps.size(); ++s) {
    Stage& stage = step.stages.emplace_back(Stage{.name = names[s], .sweeps = {}});
    for (const CgSweep& one : sweeps[s]) stage.sweeps.push_back(one.spec);
  }
  const std::size_t products = step.stages.size() - 2;
  step.stages[products].reductions = {{.name = "products", .numbers = 2 * ReproducibleSum::parts}};
  if (!single) step.stages.back().reductions = {{.name = "residual", .numbers = ReproducibleSum::parts}};
  return step;
}

/// A bound of the Euclidean norm of the initial residual.
double initial_bound(const Problem& p) {
  const double cells = cells_in(p);
  return std::sqrt(cells) * (p.parameters.word("initial") == "id" ? cells : 1.0);
}

double total(std::span<const double> reduced, int sum) {
  return ReproducibleSum::total(reduced.data() + sum * ReproducibleSum::parts);
}

/// a / b, or 0 where there is nothing to gain any more.
double ratio(double a, double b, std::span<const double> s) {
  return b > 0 && s[rho] > nothing_to_gain * s[start] ? a / b : 0.0;
}

/// Sums: p q, p p (which is r r in the first step), then r r.
void update_standard(const Problem& problem, const StageStart& at, std::span<double> s) {
  const bool last = at.stage == (fused(problem) ? 1 : 2);
  if (at.stage == 0 && at.step == 0) {
    s[bound] = initial_bound(problem);
  } else if (at.stage == 0) {
    const double old = s[rho];
    s[rho] = total(at.reduced, 2);
    s[beta] = s[alpha] == 0 ? 0 : ratio(s[rho], old, s);
    s[bound] = rounding_margin * (std::sqrt(s[rho]) + s[beta] * std::sqrt(total(at.reduced, 1)));
  }
  if (!last) {  // now the bound of p
    s[largest_first] = largest_row_sum * s[bound] * s[bound];
    s[largest_second] = s[bound] * s[bound];
    return;
  }
  if (at.step == 0) s[rho] = s[start] = total(at.reduced, 1);
  s[alpha] = ratio(s[rho], total(at.reduced, 0), s);
  const double residual_bound = rounding_margin * (std::sqrt(s[rho]) + largest_row_sum * s[alpha] * s[bound]);
  s[largest_first] = residual_bound * residual_bound;
}

/// Sums: r w, r r.
void update_single(const Problem& problem, const StageStart& at, std::span<double> s) {
  if (at.stage == 0) {  // the bound of r
    const double r = at.step == 0 ? initial_bound(problem)
                                  : rounding_margin * (std::sqrt(s[rho]) + largest_row_sum * s[alpha] * s[bound]);
    s[largest_first] = largest_row_sum * r * r;
    s[largest_second] = r * r;
    return;
  }
  const double old = s[rho], curvature = total(at.reduced, 0);
  s[rho] = total(at.reduced, 1);
  if (at.step == 0) s[start] = s[rho];
  s[beta] = at.step == 0 || s[alpha] == 0 ? 0 : ratio(s[rho], old, s);
  s[alpha] = ratio(s[rho], s[beta] == 0 ? curvature : curvature - s[beta] * s[rho] / s[alpha], s);
  s[bound] = rounding_margin * (std::sqrt(s[rho]) + s[beta] * s[bound]);
}

bool small_enough(const Problem& problem, int, std::span<const double> reduced, std::span<const double> s) {
  const double tolerance = problem.parameters.real("tolerance");
  const double now = total(reduced, single_reduction(problem) ? 1 : 2);
  return now <= tolerance * tolerance * s[start];
}

/// A right-hand side of noise; x = 0. Zeros beyond the grid.
InitialValue noise(const Problem& problem, int quantity) {
  const bool own = problem.parameters.word("initial") == "noise";
  const Index cells = problem.grid.cells;
  return [=](const Index& at) -> std::optional<double> {
    for (int d = 0; d < 3; ++d)
      if (at[d] < 0 || at[d] >= cells[d]) return 0.0;
    return own && quantity != residual ? std::optional<double>(0.0) : std::nullopt;
  };
}

std::string illegal_cg(const Candidate& c) {
  const GridSpec& grid = c.problem.grid;
  if (grid.periodic[0] || grid.periodic[1] || grid.periodic[2])
    return "app 'cg3d' has zeros on all sides, or else its matrix would be singular; use --periodic none";
  return "";
}

std::vector<Parameter> cg_parameters() {
  return {{.name = "method",
           .value = std::string("standard"),
           .help = "Two reductions in each iteration, or both sums in one.",
           .words = {"standard", "single-reduction"}},
          {.name = "tolerance",
           .value = 0.0,
           .help = "Stop when the residual's norm is below this part of its first one, after --steps at the latest; 0: "
                   "after --steps.",
           .least = 0,
           .most = 1}};
}

}  // namespace

const App& cg3d_app() {
  static const App app = [] {
    App a;
    a.name = "cg3d";
    a.summary = "conjugate gradients for the seven-point Laplacian in 3D, zero on all sides";
    a.parameters = cg_parameters();
    a.forms = {"fused", "plain"};
    a.periodic = false;
    a.initials = {"noise"};
    a.starts_random = false;
    a.step = cg_step;
    a.initial = noise;
    a.open = [](const Opening& o) { return std::make_unique<CgSweeper>(o); };
    a.scalars.assign(std::begin(scalar_names), std::end(scalar_names));
    a.update = [](const Problem& problem, const StageStart& at, std::span<double> scalars) {
      single_reduction(problem) ? update_single(problem, at, scalars) : update_standard(problem, at, scalars);
    };
    a.enough = small_enough;
    a.ends_early = [](const Problem& p) { return p.parameters.real("tolerance") > 0; };
    a.illegal = illegal_cg;
    return a;
  }();
  return app;
}

}  // namespace haloscope
