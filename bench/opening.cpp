// Figure `opening`: seconds to open an exchange of 15 fields with all neighbours, corners included, on two ranks.
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "haloscope/haloscope.hpp"
#include "swept.hpp"

namespace haloscope::bench {
namespace {

constexpr int fields = 15;
constexpr double bar_s = 0.010;

/// Returns the slowest rank's seconds of each opening after the first, which warms up.
std::vector<double> time_openings(const Grid<3>& grid, const std::vector<FieldRef>& list, const std::string& strategy,
                                  int count) {
  std::vector<double> seconds;
  for (int opening = -1; opening < count; ++opening) {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = std::chrono::steady_clock::now();
    auto halo = make_exchange(grid, list, strategy);
    double taken = seconds_since(begin);
    MPI_Allreduce(MPI_IN_PLACE, &taken, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (opening >= 0) seconds.push_back(taken);
  }
  return seconds;
}

void measure(int count) {
  const Grid<3> grid(MPI_COMM_WORLD, {.cells = {32, 32, 32}, .periodic = {true, true, true}});
  std::vector<Field<double, 3>> memory;
  for (int f = 0; f < fields; ++f) memory.emplace_back(grid, FieldOptions{.halo = 1});
  const std::vector<FieldRef> list(memory.begin(), memory.end());
  for (const char* strategy : {"direct/p2p", "direct:merged/p2p", "direct/persistent", "auto"}) {
    const std::vector<double> seconds = time_openings(grid, list, strategy, count);
    if (world_rank() != 0) continue;
    std::printf(
        "{\"figure\":\"opening\",\"case\":\"%s\",\"unit\":\"s\",\"a\":\"opening\",\"samples_a\":%s,\"value\":\"a\","
        "\"bar\":%g,\"direction\":\"<=\",\"ranks\":%d,\"notes\":\"%d fields, 26 neighbours\"}\n",
        strategy, json_list(seconds).c_str(), bar_s, world_size(), fields);
    std::fflush(stdout);
    std::fprintf(stderr, "opening  %-24s %.3g s (bar <= %g)\n", strategy, median(seconds), bar_s);
  }
}

}  // namespace
}  // namespace haloscope::bench

int main(int argc, char** argv) {
  using namespace haloscope::bench;
  setenv("HALOSCOPE_CACHE", "", 1);  // `auto` opens without an earlier choice
  MPI_Init(&argc, &argv);
  pin_rank();
  measure(has_flag(argc, argv, "--quick") ? 3 : 21);
  MPI_Finalize();
}
