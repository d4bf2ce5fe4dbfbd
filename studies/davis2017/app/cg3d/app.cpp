// cg3d: the method of conjugate gradients without preconditioner for the seven-point Laplacian in 3D, zero on all sides
// (Davis 2017, chapter 7; with a single reduction: D'Azevedo, Eijkhout and Romine 1993; pipelined: Ghysels and Vanroose
// 2014).
#include "haloscope/extend/app.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "davis2017/app/cg3d/operands.hpp"
#include "haloscope/extend/candidate.hpp"
#include "haloscope/extend/reproducible_sum.hpp"
#include "haloscope/kernels/kernel.hpp"

namespace haloscope {

const App& cg3d_app();

namespace {

static_assert(cg_sum_parts == ReproducibleSum::parts);

// x, r, p and q = A p; with a single reduction also w = A r; pipelined also z = A q and v = A w.
enum { solution, residual, direction, product, image, second_product, second_image, most_quantities };
// Of the last two, bounds of q and z where the method is pipelined; `bound` is one of p.
enum { alpha, beta, rho, start, largest_first, largest_second, bound, largest_third, bound_q, bound_z, scalar_count };
constexpr const char* scalar_names[scalar_count] = {"alpha",
                                                    "beta",
                                                    "residual_squared",
                                                    "start_squared",
                                                    "largest_term",
                                                    "largest_other_term",
                                                    "bound",
                                                    "largest_third_term",
                                                    "bound_of_product",
                                                    "bound_of_second_product"};

constexpr double largest_row_sum = 12;     // of the matrix's magnitudes
constexpr double nothing_to_gain = 1e-60;  // part of the start's r r below which fields stay as they are
constexpr double rounding_margin = 1 + 1e-6;

bool single_reduction(const Problem& p) { return p.parameters.word("method") == "single-reduction"; }
bool pipelined(const Problem& p) { return p.parameters.word("method") == "pipelined"; }
bool fused(const Problem& p) { return p.form == "fused"; }
double cells_in(const Problem& p) { return static_cast<double>(Box{{0, 0, 0}, p.grid.cells}.volume()); }

// ---- kernels --------------------------------------------------------------------------------------------------------

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

/// A sweep over all the vectors of a method, each read at the point itself.
CgSweep all_at_once(const char* kernel, const std::vector<int>& operands, std::vector<int> writes, double flops) {
  CgSweep all{{.name = "update", .reads = {}, .writes = std::move(writes), .flops_per_point = flops}, kernel, operands};
  for (int q : operands) all.spec.reads.push_back({q, 0});
  return all;
}

std::vector<std::vector<CgSweep>> pipelined_sweeps(bool fused) {
  const CgSweep ahead = multiply(image, second_image);
  if (fused)
    return {
        {all_at_once("cg3d-update-ahead", {solution, residual, direction, product, image, second_product, second_image},
                     {solution, residual, direction, product, image, second_product}, 18)},
        {ahead}};
  CgSweep products = dot("dots", residual, image, true);
  products.spec.flops_per_point = 6;
  products.kernel = "cg3d-three-dots";
  return {{update("direction", "cg3d-add-to-scaled", direction, residual),
           update("product", "cg3d-add-to-scaled", product, image),
           update("second-product", "cg3d-add-to-scaled", second_product, second_image),
           update("solution", "cg3d-add-scaled", solution, direction),
           update("residual", "cg3d-subtract-scaled", residual, product),
           update("image", "cg3d-subtract-scaled", image, second_product), products},
          {ahead}};
}

/// The sweeps of each stage.
std::vector<std::vector<CgSweep>> sweeps_of(const Problem& problem) {
  if (pipelined(problem)) return pipelined_sweeps(fused(problem));
  const CgSweep grow = update("solution", "cg3d-add-scaled", solution, direction);
  const CgSweep shrink = update("residual", "cg3d-subtract-scaled", residual, product);
  const CgSweep turn = update("direction", "cg3d-add-to-scaled", direction, residual);
  if (single_reduction(problem)) {
    if (!fused(problem))
      return {{multiply(residual, image), dot("dots", residual, image, true)},
              {turn, update("product", "cg3d-add-to-scaled", product, image), grow, shrink}};
    CgSweep both = multiply(residual, image);
    both.spec.flops_per_point += 4;
    both.kernel = "cg3d-product-and-dots";
    return {{both},
            {all_at_once("cg3d-update-all", {solution, residual, direction, product, image},
                         {solution, residual, direction, product}, 8)}};
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
  explicit CgSweeper(const KernelContext& o) : terms_(cells_in(o.problem)) {
    for (const auto& stage : sweeps_of(o.problem)) {
      std::vector<Call>& calls = calls_.emplace_back();
      for (const CgSweep& one : stage) calls.push_back({find_kernel(one.kernel, o.problem.real, o.isa), one.operands});
    }
  }

  void sweep(const SweepArgs& args) override {
    const Call& call = calls_[static_cast<std::size_t>(args.stage)][static_cast<std::size_t>(args.sweep)];
    std::array<Operand, most_quantities> operands;
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      const SlotView &from = args.in[call.operands[i]], &to = args.out[call.operands[i]];
      operands[i] = {reinterpret_cast<const double*>(from.origin), reinterpret_cast<double*>(to.origin),
                     to.stride[1] / to.stride[0], to.stride[2] / to.stride[0]};
    }
    std::array<double, cg_weights> weights;
    weights[cg_alpha] = args.scalars[alpha];
    weights[cg_less_alpha] = -args.scalars[alpha];
    weights[cg_beta] = args.scalars[beta];
    auto split = weights.begin() + cg_split;
    for (int largest : {largest_first, largest_second, largest_third}) {
      const ReproducibleSum sum(args.scalars[largest], terms_);
      split = std::copy(std::begin(sum.split), std::end(sum.split), split);
    }
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

// ---- step and scalars -----------------------------------------------------------------------------------------------

Step cg_step(const Problem& problem) {
  const bool single = single_reduction(problem), ahead = pipelined(problem);
  Step step;
  step.quantities = {{.name = "x"}, {.name = "r"}, {.name = "p"}, {.name = "q"}};
  if (single || ahead) step.quantities.push_back({.name = "w"});
  if (ahead) step.quantities.insert(step.quantities.end(), {{.name = "z"}, {.name = "v"}});
  const bool in_one_pass = fused(problem) && !single && !ahead;
  if (in_one_pass) step.quantities[direction].slots = 2;  // neighbouring parts still read the old one
  const std::vector<std::string> names = single        ? std::vector<std::string>{"multiply", "update"}
                                         : ahead       ? std::vector<std::string>{"update", "multiply"}
                                         : in_one_pass ? std::vector<std::string>{"direction", "update"}
                                                       : std::vector<std::string>{"direction", "multiply", "update"};
  const auto sweeps = sweeps_of(problem);
  for (std::size_t s = 0; s < sweeps.size(); ++s) {
    Stage& stage = step.stages.emplace_back(Stage{.name = names[s], .sweeps = {}});
    for (const CgSweep& one : sweeps[s]) stage.sweeps.push_back(one.spec);
  }
  if (ahead) {  // the sums travel while w does and is multiplied
    step.stages.front().reductions = {{.name = "products",
                                       .numbers = 3 * ReproducibleSum::parts,
                                       .mode = ReduceMode::nonblocking,
                                       .until = "multiply"}};
    return step;
  }
  const std::size_t products = step.stages.size() - 2;
  step.stages[products].reductions = {{.name = "products", .numbers = 2 * ReproducibleSum::parts}};
  if (!single) step.stages.back().reductions = {{.name = "residual", .numbers = ReproducibleSum::parts}};
  return step;
}

/// Returns a bound of the Euclidean norm of the initial residual.
double initial_bound(const Problem& p) {
  const double cells = cells_in(p);
  return std::sqrt(cells) * (p.parameters.word("initial") == "id" ? cells : 1.0);
}

double total(std::span<const double> reduced, int sum) {
  return ReproducibleSum::total(reduced.data() + sum * ReproducibleSum::parts);
}

/// Returns a / b, or 0 if no further progress is possible.
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

/// Sums of the step before: r w, r r, w w. The first step has none: it only makes the sums of the start.
void update_pipelined(const Problem& problem, const StageStart& at, std::span<double> s) {
  if (at.stage != 0) return;
  double residual_bound = initial_bound(problem), image_bound = largest_row_sum * residual_bound;
  if (at.step > 0) {
    const double old = s[rho], curvature = total(at.reduced, 0), image_norm = std::sqrt(total(at.reduced, 2));
    s[rho] = total(at.reduced, 1);
    if (at.step == 1) s[start] = s[rho];
    s[beta] = at.step == 1 || s[alpha] == 0 ? 0 : ratio(s[rho], old, s);
    s[alpha] = ratio(s[rho], s[beta] == 0 ? curvature : curvature - s[beta] * s[rho] / s[alpha], s);
    s[bound_q] = rounding_margin * (image_norm + s[beta] * s[bound_q]);
    s[bound_z] = rounding_margin * (largest_row_sum * image_norm + s[beta] * s[bound_z]);
    residual_bound = rounding_margin * (std::sqrt(s[rho]) + s[alpha] * s[bound_q]);
    image_bound = rounding_margin * (image_norm + s[alpha] * s[bound_z]);
  }
  s[largest_first] = residual_bound * image_bound;
  s[largest_second] = residual_bound * residual_bound;
  s[largest_third] = image_bound * image_bound;
}

void update_scalars(const Problem& problem, const StageStart& at, std::span<double> s) {
  if (pipelined(problem)) return update_pipelined(problem, at, s);
  single_reduction(problem) ? update_single(problem, at, s) : update_standard(problem, at, s);
}

bool small_enough(const Problem& problem, int, std::span<const double> reduced, std::span<const double> s) {
  const double tolerance = problem.parameters.real("tolerance");
  const double now = total(reduced, single_reduction(problem) || pipelined(problem) ? 1 : 2);
  return now <= tolerance * tolerance * s[start];
}

/// Returns six times a function at a point less its values around it, which are zeros beyond the grid.
double product_at(const std::function<double(const Index&)>& value, const Index& at) {
  double around = 0;
  for (int d = 0; d < 3; ++d)
    for (int side : {-1, 1}) {
      Index other = at;
      other[d] += side;
      around += value(other);
    }
  return 6 * value(at) - around;
}

/// A right-hand side of noise; x = 0. Zeros beyond the grid. The pipelined method begins with w = A r, for any r.
InitialValue noise(const Problem& problem, int quantity) {
  const bool own = problem.parameters.word("initial") == "noise";
  const Box grid{{0, 0, 0}, problem.grid.cells};
  std::function<double(const Index&)> multiplied;
  if (pipelined(problem) && quantity == image) multiplied = initial_values(cg3d_app(), problem, residual, grid);
  return [=](const Index& at) -> std::optional<double> {
    if (!grid.contains(at)) return 0.0;
    if (multiplied) return product_at(multiplied, at);
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
           .help = "Two reductions in each iteration, all sums in one, or in one that travels during the product.",
           .words = {"standard", "single-reduction", "pipelined"}},
          {.name = "tolerance",
           .value = 0.0,
           .help = "Stop when the residual's norm is below this part of its first one, after --steps at the latest; 0: "
                   "after --steps.",
           .least = 0,
           .most = 1}};
}

}  // namespace

extern const AppKernels cg3d_kernels;  // made by haloscope_add_app()

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
    a.kernels = &cg3d_kernels;
    a.open = [](const KernelContext& o) { return std::make_unique<CgSweeper>(o); };
    a.scalars.assign(std::begin(scalar_names), std::end(scalar_names));
    a.update = update_scalars;
    a.finished = small_enough;
    a.ends_early = [](const Problem& p) { return p.parameters.real("tolerance") > 0; };
    a.illegal = illegal_cg;
    return a;
  }();
  return app;
}

}  // namespace haloscope
