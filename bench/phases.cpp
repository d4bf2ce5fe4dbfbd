// Figure `phases`: a whole run of 600 steps with `auto`, opening and trials included, against the fastest of the fixed
// strategies that it tries. Each step exchanges other fields and depths in seven places, as tests/consumer/phases.cpp
// does. Two ranks.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "haloscope/haloscope.hpp"
#include "swept.hpp"

namespace haloscope::bench {
namespace {

constexpr int fields = 15, steps = 600;

/// The seven exchanges of a step.
const std::array<ExchangePart, 7> phases{{{.only = {0, 2, 4, 7, 9}, .depth = 1},
                                          {.only = {5}, .depth = 1},
                                          {.only = {4}, .depth = 1},
                                          {.only = {0, 1, 2, 3, 11, 13}, .depth = 2},
                                          {.only = {1, 3, 8, 10, 12, 14}, .depth = 2},
                                          {.only = {0, 2, 4, 5, 6}, .depth = 2},
                                          {.only = {8, 10}, .depth = 1}}};

Centring centring_of(int field) {
  if (field < 7) return Centring::cell;
  if (field < 11) return Centring::node;
  return field < 13 ? Centring::face_x : Centring::face_y;
}

/// The fields of a rank, and the runs of them.
class Code {
 public:
  explicit Code(std::int64_t n) : grid_(MPI_COMM_WORLD, {.cells = {n, n}, .periodic = {true, true}}) {
    for (int f = 0; f < fields; ++f) {
      memory_.emplace_back(grid_, FieldOptions{.halo = 2, .centring = centring_of(f)});
      list_.push_back(memory_.back());
      for (std::int64_t j = 0; j < grid_.cells()[1]; ++j)
        for (std::int64_t i = 0; i < grid_.cells()[0]; ++i) memory_.back()[0](i, j) = 0.5 + 1e-3 * double((i + j) % 7);
    }
  }

  /// Opens an exchange, makes all steps, closes it. Returns the slowest rank's seconds: of all, and in exchanges.
  std::array<double, 2> run(const std::string& strategy) {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = std::chrono::steady_clock::now();
    std::array<double, 2> taken{};
    {
      auto halo = make_exchange(grid_, list_, strategy);
      for (int step = 0; step < steps; ++step)
        for (const ExchangePart& phase : phases) {
          const auto start = std::chrono::steady_clock::now();
          halo.exchange(phase);
          taken[1] += seconds_since(start);
          for (const int f : phase.only) smooth(f, phase.depth);
        }
      chosen_ = halo.report();
    }
    taken[0] = seconds_since(begin);
    MPI_Allreduce(MPI_IN_PLACE, taken.data(), 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return taken;
  }

  const std::string& report() const { return chosen_; }

 private:
  /// Sets points to averages of themselves and of the points `depth` away.
  void smooth(int field, int depth) {
    const auto u = memory_[static_cast<std::size_t>(field)][0];
    const auto n = grid_.cells();
    copy_.resize(static_cast<std::size_t>(n[0] * n[1]));
    for (std::int64_t j = 0; j < n[1]; ++j)
      for (std::int64_t i = 0; i < n[0]; ++i)
        copy_[static_cast<std::size_t>(j * n[0] + i)] =
            0.5 * u(i, j) + 0.125 * ((u(i - depth, j) + u(i + depth, j)) + (u(i, j - depth) + u(i, j + depth)));
    for (std::int64_t j = 0; j < n[1]; ++j)
      for (std::int64_t i = 0; i < n[0]; ++i) u(i, j) = copy_[static_cast<std::size_t>(j * n[0] + i)];
  }

  Grid<2> grid_;
  std::vector<Field<double, 2>> memory_;
  std::vector<FieldRef> list_;
  std::vector<double> copy_;
  std::string chosen_;
};

/// A strategy, with the seconds of its runs: of all, and in exchanges.
struct Runs {
  std::string strategy;
  std::array<std::vector<double>, 2> seconds = {};
};

/// Prints `auto`, runs[0], against the fastest of the others; `which`: 0 whole runs, 1 their exchanges.
void report(const std::vector<Runs>& runs, int which, const std::string& name, const std::string& notes) {
  const auto faster = [&](const Runs& a, const Runs& b) { return median(a.seconds[which]) < median(b.seconds[which]); };
  const Runs& best = *std::min_element(runs.begin() + 1, runs.end(), faster);
  Result result;
  result.figure = "phases";
  result.name = name;
  result.a = runs[0].strategy;
  result.b = best.strategy;
  result.samples_a = runs[0].seconds[which];
  result.samples_b = best.seconds[which];
  result.value = "a/b";
  result.bar = which == 0 ? 1.05 : no_bar;
  result.direction = "<=";
  result.ranks = world_size();
  result.notes = notes;
  emit(result);
}

void measure(std::int64_t n, int rounds) {
  Code code(n);
  std::vector<Runs> runs{{"auto"}};
  for (const char* fixed : {"ordered/p2p", "ordered/p2p:datatype", "ordered/persistent", "ordered/shared:packed"})
    runs.push_back({fixed});
  std::string chosen;
  for (int round = -1; round < rounds; ++round)  // the first one warms up
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Runs& one = runs[round % 2 == 0 ? i : runs.size() - 1 - i];
      const auto taken = code.run(one.strategy);
      if (one.strategy == "auto") chosen = code.report();
      for (std::size_t which = 0; round >= 0 && which < taken.size(); ++which)
        one.seconds[which].push_back(taken[which]);
    }
  if (world_rank() != 0) return;
  for (const Runs& one : runs)
    std::fprintf(stderr, "  %-24s run %8.4f s, exchanges %8.4f s\n", one.strategy.c_str(), median(one.seconds[0]),
                 median(one.seconds[1]));
  std::fprintf(stderr, "  %s\n", chosen.c_str());
  const std::string cells = std::to_string(n) + "x" + std::to_string(n);
  const std::string notes = "15 fields, 600 steps of 7 exchanges, opening and trials included";
  report(runs, 0, cells + ", run", notes);
  report(runs, 1, cells + ", exchanges", notes);
}

}  // namespace
}  // namespace haloscope::bench

int main(int argc, char** argv) {
  using namespace haloscope::bench;
  setenv("HALOSCOPE_CACHE", "", 1);  // each run tries all
  MPI_Init(&argc, &argv);
  pin_rank();
  const bool quick = has_flag(argc, argv, "--quick");
  for (const int n : {128, 512}) measure(n, quick ? 2 : n == 128 ? 11 : 5);
  MPI_Finalize();
}
