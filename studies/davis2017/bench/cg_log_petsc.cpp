// PETSc's log of its conjugate gradients, function by function, as records (Davis 2017, section 7.3): with two
// reductions an iteration, with one (-ksp_cg_single_reduction) and pipelined, in turns with cg3d's methods, and an
// all-reduce alone. One JSON line each; studies/davis2017/python/measured/cg.py makes tables of them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "haloscope/apps/built_in.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/extend/reproducible_sum.hpp"
#include "haloscope/rank/measure/environment.hpp"
#include "haloscope/rank/measure/run.hpp"
#include "petsc_cg.hpp"

namespace haloscope::bench {
namespace {

using Json = nlohmann::json;

// ---- the log --------------------------------------------------------------------------------------------------------

/// All-reduces inside PETSc's events, by log stage and event: PETSc counts them, but times them with the function's own
/// work.
class ReduceLog {
 public:
  struct Spent {
    std::int64_t calls = 0;
    double seconds = 0;
  };
  static void start() {
    plain_begin = PetscLogPLB;
    plain_end = PetscLogPLE;
    PetscLogSet(begin, end);
  }
  static Spent of(int of_stage, int event) { return spent[{of_stage, event}]; }
  /// Runs work in a log stage.
  static void within(PetscLogStage log_stage, const std::function<void()>& work) {
    stage = log_stage;
    PetscLogStagePush(stage);
    work();
    PetscLogStagePop();
    stage = 0;
  }
  static void add(double seconds) {
    if (open.empty()) return;
    Spent& one = spent[{stage, open.back()}];
    one.calls += 1;
    one.seconds += seconds;
  }

 private:
  using Handler = PetscErrorCode (*)(PetscLogEvent, int, PetscObject, PetscObject, PetscObject, PetscObject);
  static PetscErrorCode begin(PetscLogEvent e, int t, PetscObject a, PetscObject b, PetscObject c, PetscObject d) {
    open.push_back(e);
    return plain_begin(e, t, a, b, c, d);
  }
  static PetscErrorCode end(PetscLogEvent e, int t, PetscObject a, PetscObject b, PetscObject c, PetscObject d) {
    open.pop_back();
    return plain_end(e, t, a, b, c, d);
  }
  static inline Handler plain_begin = nullptr, plain_end = nullptr;
  static inline PetscLogStage stage = 0;
  static inline std::vector<PetscLogEvent> open;
  static inline std::map<std::pair<int, int>, Spent> spent;
};

int rank_of_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int ranks_of_world() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// Returns least, mean and most over ranks. Collective.
Json over_ranks(double value) {
  double least = 0, most = 0, sum = 0;
  MPI_Allreduce(&value, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&value, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return {{"min", least}, {"mean", sum / ranks_of_world()}, {"max", most}};
}

/// Returns calls and seconds of every function called in a log stage on any rank. Some have two events of one name.
Json functions_of(PetscLogStage stage) {
  Json found = Json::object();
  const auto* events = petsc_stageLog->eventLog;
  for (PetscLogEvent event = 0; event < events->numEvents; ++event) {
    PetscEventPerfInfo info{};
    PetscLogEventGetPerfInfo(stage, event, &info);
    int calls = 0;
    MPI_Allreduce(&info.count, &calls, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (calls == 0) continue;
    std::string name = events->eventInfo[event].name;
    name.erase(name.find_last_not_of(' ') + 1);
    Json& one = found[name] = {{"calls", calls}, {"time_s", over_ranks(info.time)}};
    const ReduceLog::Spent inside = ReduceLog::of(stage, event);
    if (inside.calls > 0) one["allreduce"] = {{"calls", inside.calls}, {"time_s", over_ranks(inside.seconds)}};
  }
  return found;
}

// ---- solvers --------------------------------------------------------------------------------------------------------

struct Options {
  std::int64_t side = 50;
  std::vector<int> grid{1, 1, 1};
  int iterations = 50, rounds = 20;

  ProcessGrid process_grid() const { return {grid[0], grid[1], grid[2]}; }
};

/// One solver: `solve` runs the iterations from the start that `prepare` makes.
struct Solver {
  std::string code, method, form;
  std::function<void()> solve, prepare = [] {};
  std::function<std::vector<double>(int)> residuals{};  ///< of the first iterations
  PetscLogStage stage = -1;
  std::vector<double> seconds{};
};

Solver of_petsc(const std::string& method, PetscSolver& solver, int iterations) {
  Solver one{"petsc", method, "aij", [&solver, iterations] { solver.iterate(iterations); }};
  one.residuals = [&solver](int count) {
    std::vector<double> found = solver.residuals(count);
    found.erase(found.begin());
    return found;
  };
  PetscLogStageRegister(method.c_str(), &one.stage);
  return one;
}

/// Returns residuals; methods with one reduction find the residual of the step before.
std::vector<double> residuals_of(Run& run, bool lags, int count) {
  std::vector<double> found;
  run.initialise();
  if (lags) run.advance(1);
  for (int i = 0; i < count; ++i) {
    run.advance(1);
    const auto numbers = run.reduced(lags ? 0 : run.stages() - 1, 0);
    found.push_back(std::sqrt(ReproducibleSum::total(numbers.data() + (lags ? ReproducibleSum::parts : 0))));
  }
  return found;
}

Solver of_haloscope(const std::string& method, const std::string& form, Run& run, int iterations) {
  Solver one{"haloscope", method, form, [&run, iterations] { run.advance(iterations); }};
  one.prepare = [&run] { run.initialise(); };
  one.residuals = [&run, lags = method != "standard"](int count) { return residuals_of(run, lags, count); };
  return one;
}

/// Returns the largest relative difference of the residuals of the first iterations from another solver's residuals.
double differ(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] / b[i] - 1));
  return worst;
}

void solve_once(Solver& solver, bool timed) {
  solver.prepare();
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = now_s();
  timed&& solver.stage >= 0 ? ReduceLog::within(solver.stage, solver.solve) : solver.solve();
  if (timed) solver.seconds.push_back(now_s() - begin);
}

/// Returns the seconds of an 8-byte all-reduce among calls in immediate succession.
double allreduce_alone(int calls) {
  double mine = 1, sum = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = now_s();
  for (int i = 0; i < calls; ++i) MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return (now_s() - begin) / calls;
}

// ---- records --------------------------------------------------------------------------------------------------------

/// Collective, as the description of the environment is.
Json head_of(const Options& options, const std::string& kind) {
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(library, &length);
  const Choice choice = cg_choice(options.side, "fused", options.process_grid());
  return {{"kind", kind},
          {"ranks", choice.ranks},
          {"process_grid", choice.process_grid},
          {"side", options.side},
          {"petsc", petsc_version()},
          {"mpi_library", library},
          {"environment", gather_environment(MPI_COMM_WORLD)}};
}

Json record_of(const Options& options, Solver& solver, const std::vector<double>& expected) {
  Json record = head_of(options, "cg-solve");
  record.update({{"code", solver.code},
                 {"method", solver.method},
                 {"form", solver.form},
                 {"iterations", options.iterations},
                 {"residuals_differ", differ(solver.residuals(static_cast<int>(expected.size())), expected)}});
  std::vector<double>& seconds = solver.seconds;
  MPI_Allreduce(MPI_IN_PLACE, seconds.data(), static_cast<int>(seconds.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  record["solve_s"] = seconds;
  if (solver.stage >= 0) record["functions"] = functions_of(solver.stage);
  return record;
}

void measure(const Options& options) {
  const ProcessGrid grid = options.process_grid();
  const int iterations = options.iterations;
  PetscProblem problem(options.side, grid);
  Mat matrix = problem.assembled();
  const KSPNormType norm = KSP_NORM_PRECONDITIONED;
  PetscSolver two(problem, matrix, KSPCG, norm), one(problem, matrix, KSPCG, norm, true),
      ahead(problem, matrix, KSPPIPECG, norm);
  const auto run_of = [&](const std::string& method, const std::string& form) {
    Choice choice = cg_choice(options.side, form, grid);
    choice.set["method"] = method;
    return std::make_unique<Run>(MPI_COMM_WORLD, choice);
  };
  const auto plain = run_of("standard", "plain"), standard = run_of("standard", "fused"),
             single = run_of("single-reduction", "fused"), pipelined = run_of("pipelined", "fused");
  std::vector<Solver> solvers{of_petsc("standard", two, iterations),
                              of_haloscope("standard", "plain", *plain, iterations),
                              of_haloscope("standard", "fused", *standard, iterations),
                              of_petsc("single-reduction", one, iterations),
                              of_haloscope("single-reduction", "fused", *single, iterations),
                              of_petsc("pipelined", ahead, iterations),
                              of_haloscope("pipelined", "fused", *pipelined, iterations)};
  for (Solver& solver : solvers) solve_once(solver, false);
  std::vector<double> alone;
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t turn = 0; turn < solvers.size(); ++turn)
      solve_once(solvers[(turn + static_cast<std::size_t>(round)) % solvers.size()], true);
    alone.push_back(allreduce_alone(100));
  }
  const std::vector<double> expected = solvers.front().residuals(20);
  const bool speaks = rank_of_world() == 0;
  for (Solver& solver : solvers) {
    const Json record = record_of(options, solver, expected);
    if (speaks) std::printf("%s\n", record.dump().c_str());
  }
  Json reduced = head_of(options, "cg-allreduce");
  std::sort(alone.begin(), alone.end());
  reduced["bytes"] = 8;
  reduced["time_s"] = over_ranks(alone[alone.size() / 2]);
  if (speaks) std::printf("%s\n", reduced.dump().c_str());
  MatDestroy(&matrix);
}

}  // namespace
}  // namespace haloscope::bench

/// Wraps the MPI library's function to time the calls of PETSc's functions. In parentheses: PETSc has a macro of this
/// name.
extern "C" int(MPI_Allreduce)(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const double begin = haloscope::now_s();
  const int code = PMPI_Allreduce(from, to, count, type, op, comm);
  haloscope::bench::ReduceLog::add(haloscope::now_s() - begin);
  return code;
}

int main(int argc, char** argv) {
  using namespace haloscope::bench;
  Options options;
  CLI::App app{"PETSc's log of conjugate gradients, and cg3d's methods next to them, as JSON lines"};
  app.add_option("--side", options.side, "Cells of a rank's block per side.")->check(CLI::Range(2, 1000));
  app.add_option("--grid", options.grid, "Ranks per dimension.")->expected(3)->delimiter('x');
  app.add_option("--iterations", options.iterations, "Of a solve.")->check(CLI::Range(2, 100000));
  app.add_option("--rounds", options.rounds, "Solves of each method.")->check(CLI::Range(1, 100000));
  CLI11_PARSE(app, argc, argv);
  haloscope::add_built_in_apps();
  PetscInitializeNoArguments();
  PetscLogDefaultBegin();
  ReduceLog::start();
  if (options.grid[0] * options.grid[1] * options.grid[2] != ranks_of_world())
    give_up("bench_cg_log_petsc: --grid has another number of ranks than were started");
  measure(options);
  PetscFinalize();
  return 0;
}
