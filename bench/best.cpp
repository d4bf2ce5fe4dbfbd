// Figure `best`: the time of advice and predictions, as function calls in one process; best() reads the profile's file
// each time. CPU seconds of one thread.
#include "haloscope/best.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include "haloscope/model/advise.hpp"
#include "haloscope/model/profile.hpp"
#include "harness.hpp"

namespace {

using namespace haloscope;

const std::string profile_path = HALOSCOPE_BENCH_PROFILE;  // as calibrated, with intervals

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <class Call>
void measure(const std::string& name, double bar, int runs, const Call& call) {
  std::vector<double> seconds;
  call();  // reads files that are not in the page cache yet
  for (int run = 0; run < runs; ++run) {
    const double began = cpu_seconds();
    call();
    seconds.push_back(cpu_seconds() - began);
  }
  std::printf(
      "{\"figure\":\"best\",\"case\":\"%s\",\"unit\":\"s\",\"a\":\"call\",\"samples_a\":%s,\"value\":\"a\",\"bar\":%g,"
      "\"direction\":\"<=\",\"threads\":1,\"ranks\":1,\"notes\":\"CPU seconds; profile "
      "results/accuracy/machine.json.xz\"}\n",
      name.c_str(), bench::json_list(seconds).c_str(), bar);
  std::fflush(stdout);
  std::fprintf(stderr, "best     %-50s %.3g s (bar <= %g)\n", name.c_str(), bench::median(seconds), bar);
}

Choice choice_of(const char* app, const Index& cells, const std::array<bool, 3>& periodic, int ranks) {
  Choice choice;
  choice.app = app;
  choice.grid = {3, cells, periodic};
  choice.ranks = ranks;
  return choice;
}

/// Returns a choice with walls in x and z and uneven blocks, for a large number of rank classes.
Choice advection(int ranks) { return choice_of("advection3d", {1111, 1001, 999}, {false, true, false}, ranks); }

void measure_best(const std::string& process_grid, int ranks, int runs) {
  BestRequest request;
  request.grid = {3, {64, 64, 64}, {true, true, true}};
  request.ranks = ranks;
  request.process_grid = process_grid;
  request.profile = profile_path;
  measure("best() for " + process_grid + " ranks, 64^3", 0.05, runs, [&] { best(request); });
}

}  // namespace

int main(int argc, char** argv) {
  const int runs = bench::has_flag(argc, argv, "--quick") ? 2 : 15;
  bench::pin_to(bench::usable_cpus().front());
  measure_best("1x1x2", 2, runs);
  measure_best("2x2x2", 8, runs);
  const model::Profile profile = model::read_profile(profile_path);
  const model::Candidates all =
      model::candidates_of(choice_of("laplace3d", {256, 256, 256}, {true, true, true}, 64), model::usual_depths());
  measure("advice on all candidates, 64 ranks", 0.5, runs, [&] { model::advise(all, profile); });
  measure("predict, 2048 ranks", 0.1, runs, [&] { model::predict(advection(2048), profile); });
  measure("predict, 100 000 ranks", 2.0, std::min(runs, 5), [&] { model::predict(advection(100'000), profile); });
}
