// Apps made for tests: a whole grid swept by plain loops, and a run of all ranks compared with it point by point.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "app_problem.hpp"
#include "each_point.hpp"
#include "haloscope/error.hpp"
#include "world.hpp"

namespace haloscope::test {

/// One slot of a quantity on the whole grid, read as sweeps read their fields: points around a grid that wraps around
/// are points of the other side, points beyond one that does not keep their initial values.
template <class T>
class Whole {
 public:
  Whole(const Choice& choice, int quantity) : grid_(choice.grid) {
    const Candidate candidate(choice);
    const Centring centring = candidate.step.quantities[quantity].centring;
    for (int d = 0; d < 3; ++d) {
      owned_.hi[d] = grid_.cells[d] + (d < grid_.dims ? staggered(centring, d) : 0);
      all_.lo[d] = d < grid_.dims ? -around : 0;
      all_.hi[d] = owned_.hi[d] + (d < grid_.dims ? around : 0);
    }
    const auto start = initial_values(candidate.app, candidate.problem, quantity, Box{{0, 0, 0}, grid_.cells});
    each_point(all_, [&](const Index& p) { values_.push_back(static_cast<T>(start(p))); });
  }
  T& operator()(std::int64_t i, std::int64_t j) { return values_[place(i, j)]; }
  T operator()(std::int64_t i, std::int64_t j) const { return values_[place(i, j)]; }
  /// All points of the grid; of a plane that it shares with itself, both copies.
  const Box& owned() const { return owned_; }

 private:
  static constexpr std::int64_t around = 4;

  std::size_t place(std::int64_t i, std::int64_t j) const {
    Index p{i, j, 0};
    for (int d = 0; d < 2; ++d)
      if (grid_.periodic[d]) p[d] = (p[d] % grid_.cells[d] + grid_.cells[d]) % grid_.cells[d];
    return static_cast<std::size_t>((p[0] - all_.lo[0]) + all_.extent(0) * (p[1] - all_.lo[1]));
  }

  GridSpec grid_;
  Box owned_, all_{};
  std::vector<T> values_;
};

/// Points that this rank holds of a quantity, shared planes included, where a run has other bits.
template <class T>
std::int64_t wrong_points(const Run& run, int quantity, const Whole<T>& expected) {
  const Box cells = run.layout().owned(run.plan().rank);
  const Centring centring = run.candidate().step.quantities[quantity].centring;
  Box points = cells;
  for (int d = 0; d < 2; ++d) points.hi[d] += staggered(centring, d);
  std::int64_t wrong = 0;
  for_points(points, [&](std::int64_t i, std::int64_t j) {
    const double found = run.value({i - cells.lo[0], j - cells.lo[1], 0}, quantity);
    wrong += std::bit_cast<std::uint64_t>(found) != std::bit_cast<std::uint64_t>(double{expected(i, j)});
  });
  return wrong;
}

/// The latest numbers of a reduction, which must be the same on all ranks.
inline std::vector<double> numbers_of(const Run& run, int stage, int reduction) {
  const auto mine = run.reduced(stage, reduction);
  std::vector<double> found(mine.begin(), mine.end()), first = found;
  MPI_Bcast(first.data(), static_cast<int>(first.size()), MPI_DOUBLE, 0, MPI_COMM_WORLD);
  EXPECT_EQ(found, first) << "on rank " << run.plan().rank;
  return found;
}

/// A choice of an app of two dimensions on all ranks; odd extents, so that blocks differ.
inline Choice flat_choice(const std::string& app, std::array<bool, 2> periodic, Index cells = {19, 17, 1}) {
  Choice c{.app = app, .grid = {2, cells, {periodic[0], periodic[1], false}}, .ranks = world_size()};
  return c;
}

inline std::string describe(const Choice& c) {
  std::string text = c.app + " " + c.form + " " + to_word(c.real) + " " + to_string(c.strategy);
  for (const auto& [stage, strategy] : c.stage_strategies) text += " " + stage + "=" + to_string(strategy);
  text += " " + c.schedule->name + " depth " + std::to_string(c.depth) + " " + to_word(c.substeps) + " threads " +
          std::to_string(c.threads) + " periodic " + std::to_string(c.grid.periodic[0]) +
          std::to_string(c.grid.periodic[1]);
  for (const auto& [name, value] : c.set) text += " " + name + "=" + to_text(value);
  return text;
}

/// Registers an app at its first use.
inline const std::string& known(const App& app) {
  static std::vector<std::string> added;
  if (std::find(added.begin(), added.end(), app.name) == added.end()) {
    add_app(app);
    added.push_back(app.name);
  }
  return app.name;
}

/// The modes of reductions, and a parameter that selects the mode of an app's reductions.
inline const std::vector<std::string>& modes() { return haloscope::Words<ReduceMode>::all(); }
inline Parameter mode_parameter() {
  return {.name = "mode", .value = modes().front(), .help = "When ranks wait for numbers.", .words = modes()};
}
/// The same for their ways.
inline Parameter way_parameter() {
  const std::vector<std::string>& ways = haloscope::Words<ReduceBy>::all();
  return {.name = "by", .value = ways.front(), .help = "How ranks' numbers become one.", .words = ways};
}
inline ReduceMode mode_of(const Problem& problem) { return from_word<ReduceMode>(problem.parameters.word("mode")); }

inline constexpr std::array<std::array<bool, 2>, 3> periodicities{{{true, true}, {false, false}, {true, false}}};

/// The choices that run: the schedules that can arrange them, with two threads where one has to communicate.
inline std::vector<Choice> by_schedules(const Choice& choice) {
  std::vector<Choice> legal;
  for (const Schedule* schedule : schedules()) {
    Choice c = choice;
    c.schedule = schedule->name;
    c.tiles = 3;
    if (schedule->name == "comm-thread") c.threads = std::max(c.threads, 2);
    if (illegal(c).empty()) legal.push_back(c);
  }
  return legal;
}

/// One choice in every few, others at each rank count: ranks that share cores are slow. All in the long tests.
class Every {
 public:
  Every(int few, int more) : stride_(thorough() ? 1 : world_size() <= 2 ? few : more) {}
  bool skips() { return number_++ % stride_ != 0; }

 private:
  int stride_, number_ = world_size();
};

}  // namespace haloscope::test
