// Openings that are refused: they end as if they had never been, at whatever point they fail.
#include <gtest/gtest.h>
#include <mpi.h>

#include <optional>
#include <string>
#include <vector>

#include "allocation_counter.hpp"
#include "haloscope/comm/set_up_messages.hpp"
#include "haloscope/haloscope.hpp"
#include "haloscope/stepper.hpp"
#include "pmpi_counter.hpp"
#include "tori.hpp"
#include "world.hpp"

namespace haloscope {
namespace {

using test::error_of;
using test::world_size;

/// A step of two stages, each by a separate strategy; the first one reduces.
std::vector<Stage> two_stages() {
  const auto stage = [](int from, int to) {
    const auto run = [=](const SweepArgs& args) {
      const auto in = args.read<double, 2>(from);
      const auto out = args.write<double, 2>(to);
      test::for_points(args.region, [&](auto i, auto j) {
        out(i, j) = in(i - 1, j);
        if (args.reduced != nullptr) *args.reduced += out(i, j);
      });
    };
    return Stage{.name = "from " + std::to_string(from),
                 .sweeps = {{.name = "move", .reads = {{from, 1}}, .writes = {to}, .run = run}}};
  };
  std::vector<Stage> stages{stage(0, 1), stage(1, 0)};
  stages.front().reductions = {{.name = "sum"}};
  return stages;
}

struct Opening {
  const char* strategy;
  MemoryKind memory = MemoryKind::own;
};

using Last = void (*)(const Grid<2>&, const std::vector<FieldRef>&, const char* strategy);

void step(const Grid<2>& grid, const std::vector<FieldRef>& fields, const char* strategy) {
  Choice choice{.strategy = Strategy(strategy)};
  Stepper(grid, fields, choice, two_stages(), {.guard = true}).run(2);
}

void exchange(const Grid<2>& grid, const std::vector<FieldRef>& fields, const char* strategy) {
  make_exchange(grid, fields, strategy, {.guard = true}).exchange();
}

/// Opens a grid, fields and `last`. Fields in shared memory stay where an exception of a program ends them, so they end
/// after it.
std::string error_of_opening(MPI_Comm comm, const Opening& opening, Last last) {
  std::optional<Grid<2>> grid;
  std::optional<Field<double, 2>> u, v;
  return error_of<Error>([&] {
    grid.emplace(test::small_torus(comm));
    u.emplace(*grid, FieldOptions{.halo = 1, .memory = opening.memory});
    v.emplace(*grid, FieldOptions{.halo = 1, .memory = opening.memory});
    last(*grid, {*u, *v}, opening.strategy);
  });
}

/// Opens on a communicator with call `number` that makes something refused; 0: none.
/// @returns true if there was such a call.
bool attempt(MPI_Comm users, const Opening& opening, Last last, std::int64_t number) {
  test::calls_until_refusal() = number - 1;
  const std::string error = error_of_opening(users, opening, last);
  const bool refused = number > 0 && test::calls_until_refusal() < 0;
  test::calls_until_refusal() = -1;
  EXPECT_TRUE(refused || error == "no error") << error;
  return refused;
}

/// @param open  makes attempt `number`, and frees everything that it has made for it.
/// @param kept  the max number of communicators that one of them may keep.
template <class Open>
void refuse_each(Open open, std::int64_t kept) {
  open(0);  // objects that are made once a process stay
  std::int64_t number = 1;
  for (bool refused = true; refused; ++number) {
    const test::Held before = test::held();
    refused = open(number);
    const test::Held after = test::held();
    ASSERT_GE(after.communicators, before.communicators) << "call " << number;
    ASSERT_LE(after.communicators, before.communicators + (refused ? kept : 0)) << "call " << number;
    ASSERT_EQ(after.windows, before.windows) << "call " << number;
    ASSERT_EQ(after.requests, before.requests) << "call " << number;
    ASSERT_EQ(after.groups, before.groups) << "call " << number;
    ASSERT_EQ(after.types, before.types) << "call " << number;
  }
  EXPECT_GT(number, 2);
}

void refuse_each(const Opening& opening, Last last) {
  MPI_Comm users;
  PMPI_Comm_dup(MPI_COMM_WORLD, &users);
  refuse_each([&](std::int64_t number) { return attempt(users, opening, last, number); }, 0);
  PMPI_Comm_free(&users);
}

/// Opens on a separate communicator, where the library makes everything it needs. It leaves its communicator, and the
/// communicators of the machine and the node, where messages of a refused opening may be in flight.
void refuse_each_on_a_new_communicator(const Opening& opening, Last last) {
  const auto open = [&](std::int64_t number) {
    MPI_Comm users;
    PMPI_Comm_dup(MPI_COMM_WORLD, &users);
    const bool refused = attempt(users, opening, last, number);
    PMPI_Comm_free(&users);
    return refused;
  };
  refuse_each(open, std::string(opening.strategy).starts_with("direct/shared") ? 3 : 1);
}

class RefusedOpening : public testing::TestWithParam<Opening> {
 protected:
  /// Where a window has a part of the ranks, ranks have not made the same calls before the one that is refused: the job
  /// ends.
  void SetUp() override {
    const std::string reason = test::lacking(GetParam().strategy, GetParam().memory);
    if (!reason.empty()) GTEST_SKIP() << reason;
    if (world_size() > 3 && std::string(GetParam().strategy).ends_with("split"))
      GTEST_SKIP() << "ranks make windows in different orders";
  }
};

TEST_P(RefusedOpening, OfAnExchangeLeavesNoHandleBehind) { refuse_each(GetParam(), exchange); }

TEST_P(RefusedOpening, OfAStepperLeavesNoHandleBehind) { refuse_each(GetParam(), step); }

TEST_P(RefusedOpening, OfTheFirstExchangeOnACommunicatorLeavesTheLibrarysAlone) {
  refuse_each_on_a_new_communicator(GetParam(), exchange);
}

TEST_P(RefusedOpening, OfTheFirstStepperOnACommunicatorLeavesTheLibrarysAlone) {
  refuse_each_on_a_new_communicator(GetParam(), step);
}

INSTANTIATE_TEST_SUITE_P(Strategies, RefusedOpening,
                         testing::Values(Opening{"ordered/p2p"}, Opening{"ordered/persistent"},
                                         Opening{"direct/p2p:datatype"}, Opening{"ordered/neighbor"},
                                         Opening{"direct/neighbor:persistent"}, Opening{"ordered/rma-fence"},
                                         Opening{"ordered/rma-fence:split"}, Opening{"ordered/rma-pscw"},
                                         Opening{"ordered/rma-lock"}, Opening{"ordered/rma-lockall:flag"},
                                         Opening{"reference"}, Opening{"direct/shared:packed"},
                                         Opening{"direct/shared", MemoryKind::shared}),
                         [](const auto& opening) { return test::test_name(opening.param.strategy); });

/// More openings than communicators, in the long tests.
int how_many() { return test::thorough() ? 3000 : 20; }

TEST(RefusedOpenings, OneAfterTheOtherOfAnExchangeLeaveRoomForAnother) {
  if (world_size() < 2) GTEST_SKIP() << "a lone rank shares no memory";
  const auto grid = test::small_torus(MPI_COMM_WORLD);
  const Field<double, 2> u(grid, {.halo = 1});
  make_exchange(grid, {u}, "direct/p2p").exchange();
  const auto refused = [&] {
    return error_of<Error>([&] { make_exchange(grid, {u}, "direct/shared", {.guard = true}); });
  };
  ASSERT_NE(refused(), "no error");  // the library keeps its objects of the node
  const test::Held before = test::held();
  for (int n = 0; n < how_many(); ++n) ASSERT_NE(refused(), "no error");
  EXPECT_EQ(test::held(), before);
  make_exchange(grid, {u}, "direct/p2p", {.guard = true}).exchange();
}

/// Refuses the last stage, when the first one is open.
TEST(RefusedOpenings, OneAfterTheOtherOfAStepperLeaveRoomForAnother) {
  if (world_size() < 2) GTEST_SKIP() << "a lone rank shares no memory";
  const auto grid = test::small_torus(MPI_COMM_WORLD);
  const Field<double, 2> u(grid, {.halo = 1}), v(grid, {.halo = 1});
  const auto open = [&](const char* last) {
    Choice choice{.strategy = Strategy("direct/p2p"), .stage_strategies = {{"from 1", Strategy(last)}}};
    Stepper(grid, {u, v}, choice, two_stages(), {.guard = true}).run(1);
  };
  open("direct/p2p");
  ASSERT_NE(error_of<Error>([&] { open("direct/shared"); }), "no error");
  const test::Held before = test::held();
  for (int n = 0; n < how_many(); ++n) ASSERT_NE(error_of<Error>([&] { open("direct/shared"); }), "no error");
  EXPECT_EQ(test::held(), before);
  open("ordered/rma-fence");
}

TEST(RefusedOpenings, BeforeTheirFirstMessageLeaveNoMemoryBehind) {
  const std::int64_t before = test::held_bytes();
  { const SetUpMessages<int> none(100); }
  EXPECT_EQ(test::held_bytes(), before);
}

}  // namespace
}  // namespace haloscope
