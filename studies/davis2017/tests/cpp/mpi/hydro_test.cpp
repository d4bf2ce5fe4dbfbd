// hydro3d: the same bits with all ranks, forms, schedules and transports; walls that nothing passes.
#include <vector>

#include "davis2017/app/hydro3d/clock.hpp"
#include "faulty_device.hpp"
#include "pmpi_counter.hpp"
#include "step_rig.hpp"

namespace haloscope::test {
namespace {

Choice hydro_choice(const std::string& initial, Index cells = {13, 12, 11}) {
  Choice c;
  c.app = "hydro3d";
  c.grid = {3, cells, {false, false, false}};
  c.ranks = world_size();
  c.set["initial"] = initial;
  return c;
}

std::uint64_t checksum_of_gas(MPI_Comm comm, const Choice& choice, int steps) {
  haloscope::Run run(comm, choice);
  run.initialise();
  run.advance(steps, true);
  EXPECT_TRUE(run.canaries_alive());
  return run.checksum();
}

TEST(Hydro, DA9_DE1_DE2_RanksFormsSchedulesAndTransportsChangeNoBit) {
  for (const char* initial : {"random", "sedov"}) {
    Choice alone = hydro_choice(initial);
    alone.ranks = 1;
    alone.form = "scalar";
    const std::uint64_t expected = checksum_of_gas(MPI_COMM_SELF, alone, 3);
    Every one(9, 37);
    for (const char* form : {"vector", "fused", "scalar", "lines", "arrays"})
      for (const char* strategy :
           {"reference", "ordered/p2p", "direct:merged/persistent", "ordered/shared", "ordered:fields=type/p2p"})
        for (const char* exchange : {"studied", "needed"}) {
          Choice choice = hydro_choice(initial);
          choice.form = form;
          choice.strategy = strategy;
          choice.set["exchange"] = exchange;
          for (Choice c : by_schedules(choice)) {
            if (one.skips()) continue;
            if (c.form == "scalar") c.isa = "baseline";
            SCOPED_TRACE(describe(c));
            EXPECT_EQ(checksum_of_gas(MPI_COMM_WORLD, c, 3), expected);
          }
        }
  }
}

TEST(Hydro, ThreadsAndLongRowsChangeNoBit) {
  if (world_size() > 2) GTEST_SKIP() << "threads and ranks that share cores: left to few ranks";
  std::vector<std::uint64_t> found;
  for (int threads : {1, 2, 3})
    for (const char* schedule : {"bulk", "split"}) {
      Choice c = hydro_choice("random", {67, 9, 12});
      c.threads = threads;
      c.schedule = schedule;
      found.push_back(checksum_of_gas(MPI_COMM_WORLD, c, 4));
    }
  for (std::uint64_t one : found) EXPECT_EQ(one, found.front());
}

TEST(Hydro, AGridThatWrapsAroundGivesTheSameBitsToo) {
  Choice alone = hydro_choice("random");
  alone.grid.periodic = {true, false, true};
  Choice all = alone;
  alone.ranks = 1;
  EXPECT_EQ(checksum_of_gas(MPI_COMM_WORLD, all, 5), checksum_of_gas(MPI_COMM_SELF, alone, 5));
}

TEST(Hydro, OnDevicesNoSchedulePatternOrTransportChangesABit) {
  const Imitated slow("devices=2,delay_us=20");
  for (const char* initial : {"random", "sedov"}) {
    Choice alone = hydro_choice(initial);
    alone.ranks = 1;
    const std::uint64_t expected = checksum_of_gas(MPI_COMM_SELF, alone, 3);
    Every one(world_size() == 1 ? 7 : 29, 41);
    for (const std::string& strategy : device_strategy_names())
      for (const char* exchange : {"studied", "needed"}) {
        Choice choice = hydro_choice(initial);
        choice.device = "host";
        choice.strategy = strategy;
        choice.set["exchange"] = exchange;
        const std::vector<Choice> choices = by_schedules(choice);
        EXPECT_EQ(choices.size(), 2u) << "bulk and streams; the others are for one sweep over one quantity";
        for (const Choice& c : choices) {
          if (one.skips()) continue;
          SCOPED_TRACE(describe(c));
          EXPECT_EQ(checksum_of_gas(MPI_COMM_WORLD, c, 3), expected);
        }
      }
  }
}

/// The numbers of reductions are found in every block of a kernel; sums are rounded in another order.
TEST(Hydro, OnDevicesStepsGatherTheNumbersOfTheCPU) {
  for (const char* collectives : {"merged", "studied"}) {
    Choice c = hydro_choice("random", {15, 9, 14});
    c.set["collectives"] = collectives;
    haloscope::Run here(MPI_COMM_WORLD, c);
    c.device = "host";
    c.strategy = "direct/taskqueue";
    c.schedule = "streams";
    haloscope::Run there(MPI_COMM_WORLD, c);
    for (auto* run : {&here, &there}) {
      run->initialise();
      run->advance(3);
    }
    const auto expected = here.reduced(), found = there.reduced();
    ASSERT_EQ(found.size(), expected.size());
    double largest = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-12 * std::max(1.0, std::abs(expected[i]))) << "number " << i;
      largest = std::max(largest, std::abs(expected[i]));
    }
    EXPECT_GT(largest, 1);
    const auto rates = here.reduced(hydro::stage_limits, 0), rates_there = there.reduced(hydro::stage_limits, 0);
    EXPECT_TRUE(std::equal(rates.begin(), rates.end(), rates_there.begin(), rates_there.end())) << "bit for bit";
    EXPECT_TRUE(
        std::equal(here.scalars().begin(), here.scalars().begin() + hydro::first_totals, there.scalars().begin()));
  }
}

TEST(Hydro, OnDevicesACellWithoutAStateIsNamed) {
  Choice c = hydro_choice("random");
  c.device = "host";
  c.strategy = "ordered/staged";
  c.set["courant"] = 1.0;
  c.set["linear_viscosity"] = 100.0;
  const auto message = [&](const Choice& choice) {
    try {
      haloscope::Run run(MPI_COMM_WORLD, choice);
      run.initialise();
      run.advance(400);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  Choice here = c;
  here.device = "";
  here.strategy = "ordered/p2p";
  const std::string expected = message(here);
  ASSERT_NE(expected, "");
  EXPECT_EQ(message(c), expected);
}

/// Nodes of walls never move along the wall's normal, to the last bit.
TEST(Hydro, NothingPassesAWall) {
  const Choice c = hydro_choice("random", {11, 10, 9});
  haloscope::Run run(MPI_COMM_WORLD, c);
  run.initialise();
  run.advance(8);
  const Box cells = run.layout().owned(run.plan().rank);
  int walls = 0;
  for (int d = 0; d < 3; ++d)
    for (int side : {0, 1}) {
      if (side == 0 ? cells.lo[d] > 0 : cells.hi[d] < c.grid.cells[d]) continue;
      Index node;
      node[d] = side == 0 ? 0 : cells.extent(d);
      const int e = (d + 1) % 3, f = (d + 2) % 3;
      for (node[e] = 0; node[e] <= cells.extent(e); ++node[e])
        for (node[f] = 0; node[f] <= cells.extent(f); ++node[f]) {
          EXPECT_EQ(run.value(node, hydro::velocity + d), 0);
          ++walls;
        }
    }
  MPI_Allreduce(MPI_IN_PLACE, &walls, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_GE(walls, 2 * (12 * 11 + 11 * 10 + 10 * 12));
}

/// Numbers of the summary, from the fields of a run.
std::vector<double> summary_of(const haloscope::Run& run) {
  using namespace hydro;
  std::vector<double> found(summary_count);
  double* const largest = found.data() + summary_largest;
  double* const least = found.data() + summary_least;
  std::fill_n(largest, +observed_count, -1e300);
  std::fill_n(least, +observed_count, 1e300);
  const Index n = run.candidate().problem.grid.cells;
  const double size = 1.0 / static_cast<double>(n[0]), whole = size * size * size;
  std::vector<double> densest(sketch_letters);
  Index c;
  for (c[2] = 0; c[2] < n[2]; ++c[2])
    for (c[1] = 0; c[1] < n[1]; ++c[1])
      for (c[0] = 0; c[0] < n[0]; ++c[0]) {
        double v[3] = {}, squares[3] = {}, growth = 0;
        for (int d = 0; d < 3; ++d)
          for (int corner = 0; corner < 8; ++corner) {
            const double one =
                run.value({c[0] + (corner & 1), c[1] + (corner >> 1 & 1), c[2] + (corner >> 2)}, velocity + d);
            v[d] += one / 8, squares[d] += one * one / 8;
            growth += (corner >> d & 1 ? 0.25 : -0.25) * one / size;
          }
        const double rho = run.value(c, density), p = run.value(c, pressure), share = run.value(c, fraction);
        const double m = rho * whole, square = squares[0] + squares[1] + squares[2];
        const double of[observed_count] = {m,
                                           m * run.value(c, energy),
                                           0.5 * m * square,
                                           m * v[0],
                                           m * v[1],
                                           m * v[2],
                                           m * share,
                                           rho,
                                           run.value(c, energy),
                                           p,
                                           share,
                                           run.value(c, sound),
                                           std::sqrt(square),
                                           growth};
        for (int i = 0; i < observed_count; ++i) {
          found[static_cast<std::size_t>(summary_sums + i)] += of[i];
          largest[i] = std::max(largest[i], of[i]);
          least[i] = std::min(least[i], of[i]);
        }
        const bool counted[counted_count] = {
            true,     share > 0.5, share > 0 && share<1, std::sqrt(square)> of[observed_sound],
            v[0] > 0, v[1] > 0,    v[2] > 0};
        for (int i = 0; i < counted_count; ++i) found[static_cast<std::size_t>(i)] += counted[i];
        for (int d = 0; d < 3; ++d) {
          double* directed = found.data() + summary_directed + d;
          directed[directed_energy] += 0.5 * m * squares[d];
          directed[directed_momentum] += std::abs(m * v[d]);
          directed[directed_power] += whole * p * v[d];
        }
        for (std::int64_t letter = 0; letter < sketch_letters; ++letter) {
          const bool mine = c[0] == letter * n[0] / sketch_letters ||
                            (c[0] > letter * n[0] / sketch_letters && c[0] < (letter + 1) * n[0] / sketch_letters);
          auto& most = densest[static_cast<std::size_t>(letter)];
          if (mine) most = std::max(most, rho);
        }
      }
  for (std::size_t i = 0; i < densest.size(); ++i)
    found[summary_sketch + i] = std::clamp(std::floor(2 * std::log2(densest[i]) + 0.5) + 'm', 97.0, 122.0);
  return found;
}

std::vector<double> summarised(MPI_Comm comm, const Choice& choice, int steps, bool compare) {
  haloscope::Run run(comm, choice);
  run.initialise();
  run.advance(steps, true);
  std::vector<double> all;
  for (int r = 0; r < run.stage(hydro::stage_last).reductions(); ++r) {
    const auto numbers = run.reduced(hydro::stage_last, r);
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  EXPECT_EQ(all.size(), static_cast<std::size_t>(hydro::summary_count));
  if (compare) {
    const std::vector<double> expected = summary_of(run);
    for (std::size_t i = 0; i < std::min(all.size(), expected.size()); ++i)
      EXPECT_NEAR(all[i], expected[i], 1e-11 * (1 + std::abs(expected[i]))) << "number " << i;
  }
  return all;
}

bool is_sum(int number) {
  using namespace hydro;
  return (number >= summary_sums && number < summary_largest) ||
         (number >= summary_directed && number < summary_sketch);
}

TEST(Hydro, ASummaryIsThatOfTheFieldsWhateverTheRanksAndForms) {
  for (const char* initial : {"random", "sedov"}) {
    Choice alone = hydro_choice(initial, {37, 11, 9});
    alone.set["collectives"] = "studied";
    alone.ranks = 1;
    const std::vector<double> expected = summarised(MPI_COMM_SELF, alone, 4, true);
    EXPECT_EQ(expected[hydro::cells_all], 37 * 11 * 9);
    Choice c = alone;
    c.ranks = world_size();
    for (const char* form : {"fused", "vector", "scalar"})
      for (int threads : {1, 2}) {
        c.form = form;
        c.threads = threads;
        SCOPED_TRACE(describe(c));
        const std::vector<double> found = summarised(MPI_COMM_WORLD, c, 4, false);
        for (int i = 0; i < hydro::summary_count; ++i) {
          const double one = found[static_cast<std::size_t>(i)], other = expected[static_cast<std::size_t>(i)];
          if (is_sum(i))
            EXPECT_NEAR(one, other, 1e-12 * (1 + std::abs(other))) << "number " << i;
          else
            EXPECT_EQ(one, other) << "number " << i;
        }
      }
  }
}

TEST(Hydro, DA5_AStepCallsTheGathersOfTheStudiedCode) {
  for (int cycles : {1, 3}) {
    Choice c = hydro_choice("random");
    c.set["collectives"] = "studied";
    std::vector<double> replay(static_cast<std::size_t>(cycles));
    replay.back() = 4;
    c.set["replay"] = replay;
    haloscope::Run run(MPI_COMM_WORLD, c);
    run.initialise();
    run.advance(1);
    const Calls before = calls();
    run.advance(2);
    std::map<std::int64_t, std::int64_t> gathers = calls().gathers, lists = calls().list_gathers;
    for (const auto& [bytes, count] : before.gathers) gathers[bytes] -= count;
    for (const auto& [bytes, count] : before.list_gathers) lists[bytes] -= count;
    EXPECT_EQ(gathers[4], 2 * (2 * cycles + 7 + 9)) << "integers, lengths of lists among them";
    EXPECT_EQ(gathers[8], 2 * (23 + 42)) << "numbers";
    EXPECT_EQ(gathers[32], 2 * 1) << "text";
    EXPECT_EQ(lists[8], 2 * 9) << "lists";
    EXPECT_EQ(calls().collectives - before.collectives, 2 * (23 + 2 * cycles + 68));
  }
}

}  // namespace
}  // namespace haloscope::test
