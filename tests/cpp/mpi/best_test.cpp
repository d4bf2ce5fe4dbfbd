// The library call on all ranks of a grid: one asks, all get the same, errors too, and the choice can be opened.
#include "haloscope/best.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "haloscope/haloscope.hpp"
#include "link_rig.hpp"
#include "stub_program.hpp"

namespace haloscope::test {
namespace {

Grid<2> small_grid() { return {MPI_COMM_WORLD, {.cells = {64, 48}, .periodic = {true, false}}}; }

/// Expect the same text on all ranks.
void expect_same(const std::string& text) {
  int length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::string first = text;
  first.resize(static_cast<std::size_t>(length));
  MPI_Bcast(first.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD);
  EXPECT_EQ(text, first);
}

/// Exit code and text of what best() throws here.
std::string thrown(const BestOptions& options, const std::string& profile = toy_profile()) {
  try {
    best<double>(small_grid(), profile, options);
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.exit_code())) + ": " + error.what();
  }
  return "no error";
}

/// A script, and options that ask it. Rank 0 asks; other ranks have one that fails.
struct Asked {
  StubProgram stub;
  BestOptions options;
  explicit Asked(const std::string& script) : stub(world_rank() == 0 ? script : "exit 9") {
    options.program = stub.path();
  }
};

/// Whether all ranks can open and use what was chosen.
template <int D>
void expect_usable(const Grid<D>& grid, const FieldRef& field, const Best& found) {
  Exchange halo = make_exchange(grid, {field}, found.choice.strategy, {.width = found.halo});
  for (int slot : {0, 1}) halo.exchange(slot);
  EXPECT_EQ(halo.plan().spec.low[0], found.halo);
  Stepper stepper(grid, {field}, found.choice, [](const SweepArgs&) {});
  EXPECT_EQ(stepper.run(5), 1);
}

TEST(Best, IsTheSameOnAllRanksAndOnlyRankZeroAsks) {
  const Asked asked(answering);
  const Best found = best<double>(small_grid(), "machine.json", asked.options);
  EXPECT_EQ(to_string(found.choice.strategy), "ordered/shared");
  EXPECT_EQ(found.equals.size(), 1u);
  expect_same(found.choice.schedule->name + found.reason + std::to_string(found.time_s));
}

TEST(Best, AsksWhatGridAndFieldSay) {
  const Asked asked(answering);
  BestOptions options = asked.options;
  options.app = "laplace2d";
  options.seconds_per_cell = 2e-9;
  options.threads = 3;
  const Grid<2> grid = small_grid();
  const Field<float, 2> u(grid, {.halo = 3, .slots = 2});
  best(grid, u, "machine.json", options);
  if (world_rank() != 0) return;
  const auto request = nlohmann::json::parse(asked.stub.file("asked"));
  EXPECT_EQ(request["cells"], (std::vector<int>{64, 48}));
  EXPECT_EQ(request["periodic"], (std::vector<bool>{true, false}));
  EXPECT_EQ(request["ranks"], world_size());
  const ProcessGrid& ranks = grid.layout().ranks();
  EXPECT_EQ(request["process_grid"], std::to_string(ranks[0]) + "x" + std::to_string(ranks[1]));
  EXPECT_EQ(request["profile"], "machine.json");
  EXPECT_EQ(request["app"], "laplace2d");
  EXPECT_EQ(request["real"], "f32");
  EXPECT_EQ(request["halo"], 3);
  EXPECT_EQ(request["shared_memory"], false);
  EXPECT_EQ(request["threads"], 3);
  EXPECT_EQ(request["seconds_per_cell"], 2e-9);
  EXPECT_FALSE(request.contains("depths"));
  EXPECT_FALSE(request["here"]["mpi_library"].get<std::string>().empty());
}

TEST(Best, SeesThatAFieldIsInSharedMemory) {
  const Asked asked(answering);
  const Grid<2> grid = small_grid();
  const Field<double, 2> u(grid, {.halo = 1, .memory = MemoryKind::shared});
  best(grid, u, "machine.json", asked.options);
  if (world_rank() == 0) {
    EXPECT_EQ(nlohmann::json::parse(asked.stub.file("asked"))["shared_memory"], true);
  }
}

TEST(Best, ErrorsAreThrownOnAllRanksAlike) {
  for (int code : {1, 2, 3}) {
    const Asked asked("echo 'haloscope: no' >&2; exit " + std::to_string(code));
    EXPECT_EQ(thrown(asked.options), std::to_string(code) + ": no");
  }
  for (const char* script : {"exit 7", "echo nonsense", "sleep 30"}) {
    Asked asked(script);
    asked.options.limit_s = 0.5;
    const std::string text = thrown(asked.options);
    EXPECT_EQ(text.substr(0, 3), "1: ") << text;
    expect_same(text);
  }
  const std::string absent = thrown({.program = "/nowhere/haloscope"});
  EXPECT_EQ(absent.substr(0, 3), "3: ") << absent;
  expect_same(absent);
  const std::string foreign = thrown({}, HALOSCOPE_DATA "/record.schema.json");
  EXPECT_NE(foreign.find("is not valid: it is no machine profile"), std::string::npos) << foreign;
  expect_same(foreign);
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
