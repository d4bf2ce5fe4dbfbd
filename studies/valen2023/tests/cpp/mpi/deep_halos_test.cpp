// The four programs of Valen 2023 at all depths, on every rank count, against a direct loop over the whole grid.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "each_point.hpp"
#include "haloscope/error.hpp"
#include "haloscope/rank/measure/run.hpp"
#include "texts.hpp"
#include "world.hpp"

namespace haloscope {
namespace {

/// North, west, centre, east, south: different from the default ones, and all different, so that no exchange error can
/// hide.
constexpr std::array<double, 5> asymmetric{0.31, 0.07, 0.19, 0.11, 0.29};

/// A run of one of the thesis' programs; sides that no rank grid of its table 3.2 but 1 x 1 and 1 x 2 divides.
Choice thesis_choice(Real real, int ranks) {
  Choice c{.app = "laplace2d", .grid = {2, {26, 25, 1}, {true, true, false}}, .real = real};
  c.form = "star";
  c.ranks = ranks;
  c.process_grid = "square";
  c.set["weights"] = std::vector<double>(asymmetric.begin(), asymmetric.end());
  return c;
}

/// The whole field on one rank: its initial data, and the direct loop over them.
template <class T>
class DirectLoop {
 public:
  explicit DirectLoop(Real real) {
    const Choice alone = thesis_choice(real, 1);
    length_ = alone.grid.cells[0], height_ = alone.grid.cells[1];
    Run run(MPI_COMM_SELF, alone);
    run.initialise();
    test::for_points({{0, 0, 0}, alone.grid.cells}, [&](auto x, auto y) {
      field_.push_back(static_cast<T>(run.value({x, y, 0})));
    });
  }

  void advance(int steps) {
    std::vector<T> next(field_.size());
    for (int step = 0; step < steps; ++step) {
      for (std::int64_t y = 0; y < height_; ++y)
        for (std::int64_t x = 0; x < length_; ++x) {
          T sum = T(asymmetric[0]) * at(x, y - 1);
          sum = std::fma(T(asymmetric[1]), at(x - 1, y), sum);
          sum = std::fma(T(asymmetric[2]), at(x, y), sum);
          sum = std::fma(T(asymmetric[3]), at(x + 1, y), sum);
          next[index(x, y)] = std::fma(T(asymmetric[4]), at(x, y + 1), sum);
        }
      field_.swap(next);
    }
  }

  T at(std::int64_t x, std::int64_t y) const { return field_[index((x + length_) % length_, (y + height_) % height_)]; }

 private:
  std::size_t index(std::int64_t x, std::int64_t y) const { return static_cast<std::size_t>(y * length_ + x); }

  std::int64_t length_, height_;
  std::vector<T> field_;
};

/// Returns the number of this rank's own points that differ from the loop's.
template <class T>
int count_differences(const Run& run, const DirectLoop<T>& expected) {
  const Box owned = run.layout().owned(run.plan().rank);
  int different = 0;
  test::for_points(owned, [&](auto x, auto y) {
    different += static_cast<T>(run.value({x - owned.lo[0], y - owned.lo[1], 0})) != expected.at(x, y);
  });
  return different;
}

template <class T>
void expect_direct_loop(Real real) {
  DirectLoop<T> expected(real);
  expected.advance(10);
  for (int depth : {1, 3}) {
    Choice c = thesis_choice(real, 1);
    c.depth = depth;
    Run run(MPI_COMM_SELF, c);
    run.initialise();
    run.advance(10, true);
    EXPECT_EQ(count_differences(run, expected), 0) << "depth " << depth;
  }
}

TEST(DeepHalos, V1_OneRankEqualsADirectLoopWithAsymmetricWeights) {
  expect_direct_loop<float>(Real::f32);
  expect_direct_loop<double>(Real::f64);
}

/// The shorter side of the smallest block.
int shortest_side(const Choice& c) {
  const ProcessGrid ranks = process_grid(c.process_grid, c.ranks, c.grid);
  return static_cast<int>(std::min(c.grid.cells[0] / ranks[0], c.grid.cells[1] / ranks[1]));
}

TEST(DeepHalos, V5_V10_AllProgramsAndDepthsGiveTheBytesOfADirectLoop) {
  constexpr int steps = 19, margin = 2;  // no multiple of a depth but 1
  DirectLoop<float> expected(Real::f32);
  expected.advance(steps);
  Choice c = thesis_choice(Real::f32, test::world_size());
  const int deepest = shortest_side(c);
  for (const char* strategy : {"ordered/p2p", "direct:corners/p2p"})
    for (const char* schedule : {"bulk", "split"})
      for (int depth : {1, 2, 3, 4, 5, 8, deepest}) {
        c.strategy = strategy, c.schedule = schedule, c.depth = depth;
        const std::string name = std::string(strategy) + " " + schedule + " depth " + std::to_string(depth);
        if (depth > deepest) {
          EXPECT_NE(illegal(c), "") << name;
          continue;
        }
        haloscope::Run run(MPI_COMM_WORLD, c, {.yield = true}, usual_hatch_bytes, margin);
        run.initialise();
        run.advance(steps, true);
        EXPECT_EQ(count_differences(run, expected), 0) << name;
        EXPECT_TRUE(run.canaries_alive()) << name;
        run.require_unread_margin();
      }
}

TEST(DeepHalos, V5_ADepthAboveTheShorterSideIsRefused) {
  Choice c = thesis_choice(Real::f32, test::world_size());
  c.depth = shortest_side(c) + 1;
  EXPECT_PART(test::error_of([&] { haloscope::Run run(MPI_COMM_WORLD, c); }), "reduce the depth");
}

}  // namespace
}  // namespace haloscope
