// Fields of one grid and their copies in one process: an exchange on ranks must give both the same points.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/haloscope.hpp"
#include "simulated_plans.hpp"
#include "texts.hpp"
#include "world.hpp"

namespace haloscope::test {

class ComparedFields {
 public:
  /// @param quantities  name, centring and what folds and seams depend on. @param halo  layers on every side.
  ComparedFields(const Grid<2>& grid, const std::vector<Quantity>& quantities, MemoryKind memory, int halo = 2)
      : grid_(grid) {
    spec_.quantities.clear();
    for (const Quantity& quantity : quantities) {
      fields_.emplace_back(grid, FieldOptions{.halo = halo,
                                              .name = quantity.name,
                                              .centring = quantity.centring,
                                              .memory = memory,
                                              .all_shared = memory == MemoryKind::shared});
      FieldRef& ref = refs_.emplace_back(fields_.back());
      ref.quantity.edges = quantity.edges;
      ref.quantity.on_high_face = quantity.on_high_face;
      ref.quantity.vector = quantity.vector;
      ref.quantity.along = quantity.along;
      spec_.quantities.push_back(ref.quantity);
      spec_.widths.push_back({{halo, halo, 0}, {halo, halo, 0}});
    }
  }
  const std::vector<FieldRef>& refs() const { return refs_; }

  /// Runs an exchange here and in one process, from the same random values, and compares all points. Ranks that hold
  /// the same node have the same value there.
  template <class Run>
  void compare(std::mt19937& random, const Run& run) {
    SimulatedPlans simulated(grid_.layout(), spec_);
    const auto turn = random();
    const auto for_points = [&](const auto& visit) {
      for (int rank = 0; rank < world_size(); ++rank)
        for (int q = 0; q < static_cast<int>(refs_.size()); ++q)
          each_point(simulated.plan(rank).allocated(q), [&](const Index& p) { visit(rank, q, p); });
    };
    const GridSpec& grid = grid_.layout().grid();
    for_points([&](int rank, int q, const Index& p) {
      const Index low = grid_.layout().owned(rank).lo;
      const bool own = simulated.plan(rank).owned(q).contains(p);
      const std::int64_t around = grid.periodic[0] ? grid.cells[0] : grid.cells[0] + 1;
      const auto x = static_cast<std::uint32_t>((low[0] + p[0]) % around);
      const auto y = static_cast<std::uint32_t>(low[1] + p[1]);
      const std::uint_fast32_t number = 1000 * static_cast<std::uint32_t>(q) + 50 * y + x;
      std::mt19937 at_place(own ? turn + number : random());
      const double value = simulated.at(rank, q, p) = std::uniform_real_distribution<double>(-1, 1)(at_place);
      if (rank == grid_.rank()) at(q, p) = value;
    });
    simulated.run();
    MPI_Barrier(MPI_COMM_WORLD);
    run();
    for_points([&](int rank, int q, const Index& p) {
      if (rank == grid_.rank()) {
        ASSERT_EQ(at(q, p), simulated.at(rank, q, p)) << q << " at " << p[0] << ", " << p[1];
      }
    });
    MPI_Barrier(MPI_COMM_WORLD);
  }

 private:
  double& at(int q, const Index& p) { return fields_[static_cast<std::size_t>(q)][0](p[0], p[1]); }

  Grid<2> grid_;
  std::vector<Field<double, 2>> fields_;
  std::vector<FieldRef> refs_;
  ExchangeSpec spec_;
};

/// Compares the exchanges of fields by every strategy that this MPI can run.
/// @param grid_for  the grid of the n-th one.
template <class GridFor>
void compare_strategies(std::mt19937& random, const std::vector<Quantity>& quantities, const GridFor& grid_for) {
  std::size_t tried = 0;
  for (const std::string& name : sampled(strategy_names())) {
    SCOPED_TRACE(name);
    const Strategy strategy(name);
    const Grid<2> grid = grid_for(++tried);
    ComparedFields fields(grid, quantities, needs_shared_fields(strategy) ? MemoryKind::shared : MemoryKind::own);
    std::optional<Exchange> halo;
    if (!run_if_available([&] { halo.emplace(make_exchange(grid, fields.refs(), name)); })) continue;
    for (int n = 0; n < (thorough() ? 8 : 3); ++n) fields.compare(random, [&] { halo->exchange(); });
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(tried, 20u);
}

/// Expects a guard to poison the points beyond the high edge of y, and to report them stale until an exchange.
inline void expect_guard_beyond(const Grid<2>& grid) {
  Field<double, 2> field(grid, {.halo = 1});
  auto halo = make_exchange(grid, {field}, "direct/p2p", {.guard = true});
  halo.exchange();
  halo.require_fresh(1);
  halo.changed();
  EXPECT_THROW(halo.require_fresh(1), UsageError);
  EXPECT_TRUE(std::isnan(field[0](0, grid.cells()[1])));  // poisoned
  halo.exchange();
  EXPECT_EQ(field[0](0, grid.cells()[1]), 0);
}

}  // namespace haloscope::test
