// Figures `hydro` and `hydro-bytes`: forms of hydro3d on one rank. `hydro`: whole steps and single sweeps of one form
// against another. `hydro-bytes`: each sweep against the time that its bytes take at the bandwidth measured with it.
// Every step has two sub-cycles. The fields' bits are compared after the first steps, before anything is timed.
#include <mpi.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <set>

#include "haloscope/apps/built_in.hpp"
#include "haloscope/rank/measure/run.hpp"
#include "harness.hpp"

namespace {

using namespace haloscope;
using namespace haloscope::bench;

const std::vector<std::string> forms{"lines", "arrays", "scalar", "vector", "fused"};  // variants A, C, B or D, E, M

Choice gas(const std::string& form, std::int64_t side) {
  Choice c;
  c.app = "hydro3d";
  c.form = form;
  c.grid = {3, {side, side, side}, {false, false, false}};
  c.set["initial"] = std::string("sod");
  c.set["replay"] = std::vector<double>{0, 1e6};
  return c;
}

using Runs = std::map<std::string, std::unique_ptr<haloscope::Run>>;

Runs started(std::int64_t side) {
  Runs runs;
  for (const std::string& form : forms) {
    auto& run = runs[form] = std::make_unique<haloscope::Run>(MPI_COMM_WORLD, gas(form, side));
    run->initialise();
    run->advance(2);
    if (run->checksum() == runs[forms.front()]->checksum()) continue;
    std::fprintf(stderr, "hydro: form '%s' gives other bits than '%s'\n", form.c_str(), forms.front().c_str());
    std::exit(1);
  }
  return runs;
}

/// Forms take turns at a job; a case is the ratio of the seconds of two forms.
struct Contest {
  std::string name;
  std::vector<Variant> variants;

  void take(const std::string& slow, const std::string& fast, double bar, const std::string& notes) const {
    const auto of = [&](const std::string& form) {
      return std::find_if(variants.begin(), variants.end(), [&](const Variant& v) { return v.name == form; })->seconds;
    };
    emit(
        {"hydro", name + ", " + fast + " against " + slow, fast, slow, of(fast), of(slow), "b/a", bar, ">=", 1, notes});
  }
};

template <class Job>
Contest held(const std::string& name, const Runs& runs, int rounds, const Job& job) {
  Contest contest{name, {}};
  for (const auto& [form, run] : runs) contest.variants.push_back({form, [&job, run = run.get()] { job(*run); }});
  take_turns(contest.variants, rounds);
  return contest;
}

/// Returns a sweep of one form.
Variant alone(haloscope::Run& run, const std::string& form, const std::string& name) {
  const std::vector<Stage>& stages = run.candidate().step.stages;
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    for (std::size_t sweep = 0; sweep < stages[stage].sweeps.size(); ++sweep)
      if (stages[stage].sweeps[sweep].name == name)
        return {form, [&run, stage, sweep] { run.sweep_alone(static_cast<int>(stage), static_cast<int>(sweep)); }};
  std::fprintf(stderr, "hydro: form '%s' has no sweep '%s'\n", form.c_str(), name.c_str());
  std::exit(1);
}

void compare_forms(const Runs& runs, std::int64_t side, int rounds) {
  const std::string size = std::to_string(side) + "^3, ", notes = std::string("isa ") + runs.at("vector")->isa();
  const auto step = [](haloscope::Run& run) { run.advance(1); };
  const Contest steps = held(size + "step", runs, rounds, step);
  steps.take("lines", "scalar", 1.2, notes + "; B over A: x innermost against lines along the remap's dimension");
  steps.take("lines", "arrays", no_bar, notes + "; C over A: a loop over the grid for each part of the remap");
  steps.take("scalar", "vector", 1.3, notes + "; E over D");
  steps.take("scalar", "fused", 1.5, notes + "; M over B");
  steps.take("vector", "fused", 1.1, notes + "; M over E");
  for (const char* name : {"viscosity", "rates", "accelerate"}) {
    std::vector<Variant> two;
    for (const char* form : {"scalar", "vector"}) two.push_back(alone(*runs.at(form), form, name));
    take_turns(two, rounds);
    Contest{size + name, two}.take("scalar", "vector", 1.3, notes + "; E over D");
  }
}

/// Returns the bytes that a sweep moves for a cell: each quantity that it reads once, and each that it writes. A turn
/// of the remap accesses one component of the faces' and displacements' vectors.
double bytes_of(const Step& step, const SweepSpec& sweep) {
  std::set<int> read;
  for (const Access& access : sweep.reads) read.insert(access.quantity);
  std::vector<int> touched(sweep.writes);
  touched.insert(touched.end(), read.begin(), read.end());
  double bytes = 0;
  for (int q : touched) {
    const Quantity& quantity = step.quantities[static_cast<std::size_t>(q)];
    const bool of_turn =
        quantity.name.find("flux_") != std::string::npos || quantity.name.rfind("displacement", 0) == 0;
    bytes += quantity.element_bytes / (of_turn && sweep.name.rfind("remap", 0) == 0 ? 3.0 : 1.0);
  }
  return bytes;
}

/// The bandwidth of a[i] = b[i] + s * c[i] on arrays outside of the caches, on this core.
class Triad {
 public:
  static constexpr std::size_t count = std::size_t{1} << 24;
  static constexpr double bytes = 3.0 * sizeof(double) * count;
  Triad() : a_(count, 0.0), b_(count, 1.0), c_(count, 2.0) {}
  void run() {
    double *a = a_.data(), *b = b_.data(), *c = c_.data();
    for (std::size_t i = 0; i < count; ++i) a[i] = b[i] + 3.0 * c[i];
    std::swap(a_, b_);
  }

 private:
  std::vector<double> a_, b_, c_;
};

/// Returns true if a form has a separate kernel for a sweep: forms A and C differ from B only in the remap.
bool is_its_own(const std::string& form, const std::string& sweep) {
  return (form != "lines" && form != "arrays") || sweep.rfind("remap", 0) == 0;
}

void compare_with_bandwidth(const Runs& runs, std::int64_t side, int rounds) {
  const double cells = static_cast<double>(side * side * side);
  Triad triad;
  for (const auto& [form, run] : runs) {
    const Step& step = run->candidate().step;
    std::set<std::string> seen;
    for (const Stage& stage : step.stages)
      for (const SweepSpec& sweep : stage.sweeps) {
        const double bytes = bytes_of(step, sweep);
        if (!seen.insert(sweep.name).second || !is_its_own(form, sweep.name)) continue;
        std::vector<Variant> two{alone(*run, form, sweep.name), {"triad", [&] { triad.run(); }}};
        take_turns(two, rounds);
        std::vector<double> bound;
        for (double seconds : two[1].seconds) bound.push_back(bytes * cells * seconds / Triad::bytes);
        char notes[120];
        std::snprintf(notes, sizeof notes, "%.0f bytes and %.2f ns a cell; %.2f ns at %.1f GB/s", bytes,
                      1e9 * median(two[0].seconds) / cells, 1e9 * median(bound) / cells,
                      Triad::bytes / median(two[1].seconds) / 1e9);
        emit({"hydro-bytes", std::to_string(side) + "^3, " + form + ", " + sweep.name, form, "bandwidth",
              two[0].seconds, bound, "a/b", no_bar, "<=", 1, notes});
      }
  }
}

}  // namespace

int main(int argc, char** argv) {
  haloscope::add_built_in_apps();
  MPI_Init(&argc, &argv);
  const bool quick = has_flag(argc, argv, "--quick");
  for (std::int64_t side : {100, 150}) {
    const Runs runs = started(side);
    compare_forms(runs, side, quick ? 3 : 7);
    if (side == 100) compare_with_bandwidth(runs, side, quick ? 3 : 7);
  }
  MPI_Finalize();
  return 0;
}
