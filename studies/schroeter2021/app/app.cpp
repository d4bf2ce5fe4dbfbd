// poisson2d: the unit square's Poisson problem by Jacobi and by Gauss-Seidel (Schroeter 2021).
#include <algorithm>
#include <cmath>
#include <span>

#include "haloscope/apps/kernel_sweeper.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/extend/candidate.hpp"
#include "schroeter2021/app/problem.hpp"
#include "schroeter2021/app/work_meter.hpp"

namespace haloscope {

namespace {

constexpr const char* in_place_form = "gauss-seidel";
const std::vector<std::string> in_step_schemes{"deferred", "allreduce"};

PoissonProblem poisson_of(const Problem& p) {
  return {(p.grid.cells[0] - 7) / 8, static_cast<int>(p.parameters.integer("function"))};
}

double precision_of(const Problem& p) { return p.parameters.real("precision"); }

/// Kernels with the right-hand side, the residual, and the work per block of lines.
class PoissonSweeper final : public KernelSweeper {
 public:
  explicit PoissonSweeper(const KernelContext& o)
      : KernelSweeper(o, "poisson2d-" + o.problem.form, {}),
        rows_(poisson_of(o.problem).row_factors()),
        columns_(poisson_of(o.problem).column_factors()),
        first_{o.first[0] + 1, o.first[1] + 1, 0},
        progress_(static_cast<std::size_t>(o.threads)) {
    meter_.blocks = static_cast<int>(o.problem.parameters.integer("work_blocks"));
    meter_.window = o.problem.parameters.integer("work_window");
    meter_.lines = o.problem.grid.cells[1];
  }

  void begin() override {
    meter_.seconds.clear();
    meter_.subnormal.clear();
  }
  const WorkMeter& meter() const { return meter_; }

  void sweep(const SweepArgs& args) override {
    PoissonArgs k(kernel_args(args));
    k.team = {args.thread, args.threads, progress_.data()};
    if (!rows_.empty()) {
      k.row_factor = rows_.data() + first_[1];
      k.column_factor = columns_.data() + first_[0];
    }
    if (meter_.blocks == 0) return call(k, args.reduced);
    // Block by block: the bits of a sweep do not depend on the division of its region.
    for (std::int64_t line = args.region.lo[1]; line < args.region.hi[1];) {
      const int block = meter_.block_of(line + first_[1] - 1);
      const std::int64_t end =
          block + 1 < meter_.blocks ? meter_.first_line(block + 1) - (first_[1] - 1) : args.region.hi[1];
      k.region.lo[1] = line;
      k.region.hi[1] = std::min(end, args.region.hi[1]);
      const double begin_s = work_s();
      call(k, args.reduced);
      meter_.add(args.step, block, work_s() - begin_s);
      for (; line < k.region.hi[1]; ++line) meter_.count(args.step, args.levels, block, line_of(k, line));
    }
  }

 private:
  static std::span<const double> line_of(const PoissonArgs& k, std::int64_t line) {
    const double* const first = static_cast<const double*>(k.out) + line * k.row;
    return {first + k.region.lo[0], first + k.region.hi[0]};
  }

  void call(PoissonArgs& k, double* reduced) const {
    double change = 0;
    if (reduced) k.change = &change;
    k.levels == 1 ? kernel_.sweep(k) : kernel_.fused(k);
    if (reduced) *reduced = std::max(*reduced, change);
  }

  std::vector<double> rows_, columns_;
  Index first_;  // global line and column of local cell (0, 0), counted with the border
  std::vector<TeamProgress> progress_;
  WorkMeter meter_;
};

Step poisson_step(const Problem& problem) {
  const bool in_place = problem.form == in_place_form;
  Step step = stencil_step(2, 1, false, 4);
  step.quantities[0].slots = in_place ? 1 : 2;
  step.stages[0].sweeps[0].in_place = in_place;
  const std::string& scheme = problem.parameters.word("residual");
  step.stages[0].reductions = {{.name = "residual",
                                .op = ReduceOp::max,
                                .mode = scheme == "allreduce" ? ReduceMode::blocking : ReduceMode::deferred,
                                .last_only = precision_of(problem) == 0,
                                .scheme = in_place ? scheme : ""}};
  if (step.stages[0].reductions[0].last_only) step.stages[0].reductions[0].mode = ReduceMode::blocking;
  return step;
}

/// Returns the border's constant values; zeros inside, or by parameter `initial`.
InitialValue initial(const Problem& problem, int) {
  const PoissonProblem poisson = poisson_of(problem);
  const bool zero = problem.parameters.word("initial") == "zero";
  return [poisson, zero](const Index& at) -> std::optional<double> {
    const std::int64_t n = poisson.intervals();
    const std::int64_t line = std::clamp<std::int64_t>(at[1] + 1, 0, n);
    const std::int64_t column = std::clamp<std::int64_t>(at[0] + 1, 0, n);
    if (line == 0 || column == 0 || line == n || column == n) return poisson.start(line, column);
    return zero ? std::optional<double>(0.0) : std::nullopt;
  };
}

void plain_sweep(const SweepArgs& args) {
  const PoissonProblem problem = poisson_of(*args.problem);
  const auto rows = problem.row_factors(), columns = problem.column_factors();
  PoissonArgs k;
  k.out = args.out[0].origin;
  k.row = args.out[0].stride[1] / args.out[0].stride[0];
  k.region = args.region;
  if (!rows.empty()) {
    k.row_factor = rows.data() + 1;
    k.column_factor = columns.data() + 1;
  }
  gauss_seidel_plain(k);
}

std::string illegal_poisson(const Candidate& c) {
  const Problem& p = c.problem;
  const Parameters& set = p.parameters;
  if (p.grid.periodic[0] || p.grid.periodic[1])
    return "app 'poisson2d' has fixed border values on all sides; use --periodic none";
  if (p.grid.cells[0] != p.grid.cells[1] || p.grid.cells[0] % 8 != 7)
    return "app 'poisson2d' has a square of 8 I + 7 inner cells per side; use --interlines I, or --cells 7, 15, 23, "
           "...";
  const std::string& scheme = set.word("residual");
  const bool in_place = p.form == in_place_form;
  if (!scheme.empty() && has(in_step_schemes, scheme) == in_place) {
    std::vector<std::string> valid = in_step_schemes;
    if (in_place) {
      valid.clear();
      for (const ReductionScheme& one : reduction_schemes()) valid.push_back(one.name);
    }
    return unknown_name(std::string("residual scheme of ") + (in_place ? "Gauss-Seidel" : "Jacobi"), scheme, valid);
  }
  if (precision_of(p) > 0 && c.choice.depth > 1)
    return "termination by precision checks each iteration, and of --depth " + std::to_string(c.choice.depth) +
           " iterations per exchange only the last ones' fields are kept; use --depth 1 or terminate by --steps";
  if (set.integer("work_blocks") > p.grid.cells[1])
    return "work_blocks must be 0 to the number of lines, " + std::to_string(p.grid.cells[1]);
  if (set.integer("work_blocks") > 0 && c.choice.threads > 1) return "work_blocks needs --threads 1";
  return "";
}

/// Returns the matrix's values at 9 x 9 lines and columns, border included: every (I + 1)th.
std::vector<std::vector<double>> excerpt(const Problem& p, const FieldReader& reader) {
  const PoissonProblem problem = poisson_of(p);
  std::vector<Index> inner;
  for (int i = 1; i < 8; ++i)
    for (int j = 1; j < 8; ++j)
      inner.push_back({j * (problem.interlines + 1) - 1, i * (problem.interlines + 1) - 1, 0});
  const std::vector<double> values = reader.values(0, inner);
  std::vector<std::vector<double>> rows(9, std::vector<double>(9));
  for (int i = 0; i < 9; ++i)
    for (int j = 0; j < 9; ++j)
      rows[i][j] = i % 8 == 0 || j % 8 == 0 ? problem.start(i * (problem.interlines + 1), j * (problem.interlines + 1))
                                            : values[static_cast<std::size_t>((i - 1) * 7 + j - 1)];
  return rows;
}

/// Returns a table of a meter by window of iterations and block of lines, summed over ranks: each line has one owner.
std::vector<std::vector<double>> work(std::vector<double> table, int blocks, const FieldReader& reader) {
  const double most = -static_cast<double>(table.size());  // the windows of the rank with the most
  table.resize(static_cast<std::size_t>(-reader.least(most)), 0);
  reader.sum(table);
  std::vector<std::vector<double>> rows;
  for (auto at = table.begin(); at != table.end(); at += blocks) rows.emplace_back(at, at + blocks);
  return rows;
}

std::vector<RecordEntry> entries(const Problem& p, const Sweeper& sweeper, const FieldReader& reader) {
  const Parameters& set = p.parameters;
  const bool in_place = p.form == in_place_form;
  std::vector<RecordEntry> list{{"method", std::string(in_place ? in_place_form : "jacobi")},
                                {"interlines", poisson_of(p).interlines},
                                {"function", set.integer("function")},
                                {"termination", std::string(precision_of(p) > 0 ? "precision" : "iterations")},
                                {"excerpt", excerpt(p, reader)}};
  if (precision_of(p) > 0) {
    list.push_back({"precision", precision_of(p)});
    const std::string& scheme = set.word("residual");
    const std::string usual = in_place ? reduction_schemes().front().name : in_step_schemes.front();
    list.push_back({"scheme", scheme.empty() ? usual : scheme});
  }
  const WorkMeter& meter = dynamic_cast<const PoissonSweeper&>(sweeper).meter();
  if (meter.blocks > 0) {
    list.push_back({"work_blocks", std::int64_t{meter.blocks}});
    list.push_back({"work_window", meter.window});
    list.push_back({"work_seconds", work(meter.seconds, meter.blocks, reader)});
    list.push_back({"work_subnormal", work(meter.subnormal, meter.blocks, reader)});
  }
  return list;
}

std::vector<Parameter> parameters() {
  std::vector<std::string> schemes{""};
  schemes.insert(schemes.end(), in_step_schemes.begin(), in_step_schemes.end());
  for (const ReductionScheme& one : reduction_schemes()) schemes.push_back(one.name);
  return {
      {.name = "function",
       .value = std::int64_t{1},
       .help = "Right-hand side: 1 (f = 0) or 2 (f = 2 pi^2 sin(pi x) sin(pi y)).",
       .least = 1,
       .most = 2},
      {.name = "precision",
       .value = 0.0,
       .help = "Stop when the residual is below it, after --steps at the latest; 0: after --steps.",
       .least = 0},
      {.name = "residual",
       .value = std::string(),
       .help = "Reduction of the residual in each iteration: deferred, allreduce; Gauss-Seidel: chain, chain-pscw, "
               "all-to-last, accumulate.",
       .words = schemes},
      {.name = "work_blocks",
       .value = std::int64_t{0},
       .help = "Record the compute seconds and subnormal numbers of this many blocks of lines; 0: do not.",
       .least = 0},
      {.name = "work_window", .value = std::int64_t{100}, .help = "Iterations that work_blocks sums up.", .least = 1}};
}

}  // namespace

extern const AppKernels poisson2d_kernels;  // made by haloscope_add_app()

const App& poisson2d_app() {
  static const App app = [] {
    App a;
    a.name = "poisson2d";
    a.summary = "five-point Poisson solver in 2D with fixed borders, by Jacobi or Gauss-Seidel";
    a.dims = 2;
    a.parameters = parameters();
    a.forms = {"jacobi", in_place_form};
    a.process_grid = "slabs";
    a.periodic = false;
    a.initials = {"zero"};
    a.starts_random = false;
    a.step = poisson_step;
    a.initial = initial;
    a.kernels = &poisson2d_kernels;
    a.open = [](const KernelContext& o) { return std::make_unique<PoissonSweeper>(o); };
    a.plain = plain_sweep;
    a.finished = [](const Problem& p, int, std::span<const double> residual, std::span<const double>) {
      return precision_of(p) > 0 && residual[0] < precision_of(p);
    };
    a.ends_early = [](const Problem& p) { return precision_of(p) > 0; };
    a.illegal = illegal_poisson;
    a.entries = entries;
    return a;
  }();
  return app;
}

}  // namespace haloscope
