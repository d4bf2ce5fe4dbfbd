// Figure `hydro`: forms of hydro3d against each other, whole steps and single sweeps, on one rank. Every step has two
// sub-cycles. The fields' bits are compared after the first steps, before anything is timed.
#include <mpi.h>

#include <cstdlib>
#include <map>
#include <memory>

#include "haloscope/run/run.hpp"
#include "harness.hpp"

namespace {

using namespace haloscope;
using namespace haloscope::bench;

const std::vector<std::string> forms{"lines", "scalar", "vector"};

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

/// Forms take turns at a job; a case is the seconds of one over those of another.
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

void measure(std::int64_t side, int rounds) {
  const Runs runs = started(side);
  const std::string size = std::to_string(side) + "^3, ", notes = std::string("isa ") + runs.at("vector")->isa();
  const auto step = [](haloscope::Run& run) { run.advance(1); };
  const Contest steps = held(size + "step", runs, rounds, step);
  steps.take("lines", "scalar", 1.2, notes + "; x innermost against lines along the remap's dimension");
  steps.take("scalar", "vector", 1.3, notes);
  const struct {
    const char* name;
    int stage, sweep;
  } sweeps[]{{"rates", 0, 1}, {"viscosity", 0, 0}, {"accelerate", 2, 0}};
  for (const auto& one : sweeps) {
    const auto sweep = [&](haloscope::Run& run) { run.sweep_alone(one.stage, one.sweep); };
    held(size + one.name, runs, rounds, sweep).take("scalar", "vector", 1.3, notes);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const bool quick = has_flag(argc, argv, "--quick");
  for (std::int64_t side : {100, 150}) measure(side, quick ? 3 : 7);
  MPI_Finalize();
  return 0;
}
