// The library call on all ranks of a grid: one answers, all get the same result, errors too, and the choice can be
// opened.
#include "haloscope/best.hpp"

#include <gtest/gtest.h>

#include "haloscope/extend/candidate.hpp"
#include "haloscope/haloscope.hpp"
#include "link_rig.hpp"
#include "toy_profile.hpp"

namespace haloscope::test {
namespace {

Grid<2> small_grid() { return {MPI_COMM_WORLD, {.cells = {64, 48}, .periodic = {true, false}}}; }

/// Expects the same text on all ranks.
void expect_same(const std::string& text) {
  int length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::string first = text;
  first.resize(static_cast<std::size_t>(length));
  MPI_Bcast(first.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD);
  EXPECT_EQ(text, first);
}

/// Exit code and text of the error that best() throws here.
std::string thrown(const BestOptions& options, const std::string& profile = toy_profile()) {
  try {
    best<double>(small_grid(), profile, options);
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.exit_code())) + ": " + error.what();
  }
  return "no error";
}

/// True if all ranks can open and use the choice.
template <int D>
void expect_usable(const Grid<D>& grid, const FieldRef& field, const Best& found) {
  Exchange halo = make_exchange(grid, {field}, found.choice.strategy, {.width = found.halo});
  for (int slot : {0, 1}) halo.exchange(slot);
  EXPECT_EQ(halo.plan().spec.low[0], found.halo);
  Stepper stepper(grid, {field}, found.choice, [](const SweepArgs&) {});
  EXPECT_EQ(stepper.run(5), 1);
}

/// A path that only rank 0 can read.
std::string profile_of_rank_zero() { return world_rank() == 0 ? toy_profile() : "/nowhere/machine.json"; }

TEST(Best, IsTheSameOnAllRanksAndOnlyRankZeroAnswers) {
  const Best found = best<double>(small_grid(), profile_of_rank_zero());
  EXPECT_EQ(found.profile, "toy");
  expect_same(to_string(found.choice.strategy) + found.choice.schedule->name + found.reason +
              std::to_string(found.time_s) + std::to_string(found.equals.size()));
  for (const Choice& other : found.equals) EXPECT_EQ(illegal(other), "");
}

TEST(Best, TakesFromGridAndFieldWhatTheySay) {
  const Grid<2> grid = small_grid();
  const Field<double, 2> u(grid, {.halo = 3, .slots = 2});
  const Best found = best(grid, u, toy_profile(), {.app = "laplace2d", .seconds_per_cell = 2e-9, .threads = 3});
  EXPECT_EQ(found.choice.grid.cells, (Index{64, 48, 1}));
  EXPECT_EQ(found.choice.grid.periodic, (std::array<bool, 3>{true, false, false}));
  EXPECT_EQ(found.choice.ranks, world_size());
  const ProcessGrid& ranks = grid.layout().ranks();
  EXPECT_EQ(found.choice.process_grid, std::to_string(ranks[0]) + "x" + std::to_string(ranks[1]));
  EXPECT_EQ(found.choice.threads, 3);
  EXPECT_EQ(found.choice.real, Real::f64);
  EXPECT_LE(found.halo, 3);
  EXPECT_FALSE(needs_shared_fields(found.choice.strategy));
}

TEST(Best, SeesThatAFieldIsInSharedMemory) {
  const Grid<2> grid = small_grid();
  const Field<double, 2> own(grid, {.halo = 1}), shared(grid, {.halo = 1, .memory = MemoryKind::shared});
  EXPECT_LE(best(grid, shared, toy_profile()).time_s, best(grid, own, toy_profile()).time_s);
  EXPECT_EQ(best(grid, own, toy_profile()).memory, MemoryKind::own);
}

TEST(Best, ErrorsAreThrownOnAllRanksAlike) {
  const std::string absent = thrown({}, "/nowhere/machine.json");
  EXPECT_EQ(absent.substr(0, 3), "2: ") << absent;
  expect_same(absent);
  const std::string foreign = thrown({}, HALOSCOPE_DATA "/record.schema.json");
  EXPECT_PART(foreign, "is not valid: it is not a machine profile");
  expect_same(foreign);
  const std::string lacking = thrown({.app = "advection2d"});
  EXPECT_EQ(lacking.substr(0, 3), "2: ") << lacking;
  expect_same(lacking);
}

TEST(Best, TheModelsChoiceOpensOnAFieldMadeForIt) {
  const Grid<2> grid = small_grid();
  const Best found = best<double>(grid, toy_profile(), {.depths = {1, 2}});
  expect_same(to_string(found.choice.strategy) + found.choice.schedule->name + std::to_string(found.time_s));
  const Field<double, 2> u(grid, {.halo = found.halo, .slots = 2, .memory = found.memory});
  expect_usable(grid, u, found);
}

TEST(Best, TheModelsChoiceOpensOnAFieldThatIsThere) {
  const Grid<2> grid = small_grid();
  const Field<double, 2> u(grid, {.halo = 2, .slots = 2});
  const Best found = best(grid, u, toy_profile());
  EXPECT_LE(found.halo, 2);
  EXPECT_EQ(found.memory, MemoryKind::own);
  expect_usable(grid, u, found);
}

}  // namespace
}  // namespace haloscope::test
