// Partitioned messages on random exchanges, with one partition or several, made ready by one thread or by each.
#include "haloscope/error.hpp"
#include "haloscope/haloscope.hpp"
#include "random_case.hpp"

namespace haloscope::test {
namespace {

#if HALOSCOPE_HAVE_PARTITIONED

std::vector<Case> partitioned_variants() {
  std::vector<Case> list;
  for (const bool late : {false, true})
    for (const int threads : {1, 2, 3}) {
      Case c{.transport = "partitioned"};
      if (late) c.options.push_back("late");
      c.threads = threads;
      list.push_back(c);
    }
  return list;
}

void check_random_exchanges(int rounds, int delay_us) {
  std::mt19937 random(60 + world_size() + delay_us);
  for (int i = 0; i < rounds && !testing::Test::HasFailure(); ++i)
    for (const Case& variant : partitioned_variants()) {
      Case c = random_case(random, variant);
      c.delay_us = delay_us;
      c.poll = c.poll && delay_us == 0;
      expect_right_halos(c);
    }
}

/// Both ends share several messages, in rounds or concurrently, in two slots.
void check_periodic_cubes() {
  for (const Case& variant : partitioned_variants())
    for (int split : {0, 1, 2})
      for (Pattern pattern : {Pattern::ordered, Pattern::direct}) {
        if (world_size() > 4 && split != 1) continue;  // oversubscribed: keep it short
        Case c = variant;
        c.spec.pattern = pattern;
        c.spec.merge = Merge::none;
        c.spec.quantities = {{"u", 8, ScalarType::real, Centring::cell}, {"v", 4, ScalarType::real, Centring::node}};
        expect_right_halos(periodic_cube(split, c));
      }
}

void check_two_slots_in_flight() {
  for (const Case& variant : partitioned_variants())
    expect_right_in_flight(periodic_cube(0, variant), world_rank() % 2 ? std::vector{1, 0} : std::vector{0, 1});
}

// The next two come first: Open MPI sets up its partitioned messages once in a program, for all ranks together.
TEST(Partitioned, HalfOfTheRanksExchangeOrAreRefused) {
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, 0, &half);
  if (world_rank() % 2 == 0) try {
      const Grid<2> grid(half, {.cells = {16, 17}, .periodic = {true, true}});
      Field<double, 2> u(grid, {.halo = 1});
      u[0](0, 0) = 7;
      make_exchange(grid, {u}, "direct/partitioned").exchange();
      EXPECT_EQ(u[0](grid.cells()[0], 0), 7);
    } catch (const UnavailableError& error) {
      const std::string whole = "on all " + std::to_string(world_size()) + " ranks of MPI_COMM_WORLD";
      EXPECT_PART(error.what(), whole);
      EXPECT_GT(world_size(), 1);
    }
  MPI_Comm_free(&half);
}

TEST(Partitioned, NonblockingCallsOfTheProgramKeepTheirOrderAfterTheFirstLinkIsOpened) {
  Case c{.transport = "partitioned"};
  Rig rig(periodic_cube(0, c));
  for (int i = 0; i < 10; ++i) {
    int polls = (world_rank() + i) % 2 * 1000, there = 0, sum = world_rank();  // MPI may continue its set-up in each
    for (; polls > 0; --polls) MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &there, MPI_STATUS_IGNORE);
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(sum, world_size() * (world_size() - 1) / 2);
  }
  rig.fill(0, 1);
  rig.exchange(0);
  EXPECT_EQ(rig.wrong_points(0, 1), 0);
}

TEST(Partitioned, EveryGhostPointHoldsTheIdOfThePointItMirrors) {
  check_random_exchanges(world_size() <= 2 ? 20 : 5, 0);
}
TEST(Partitioned, RanksMayUseDifferentNumbersOfThreads) {
  for (Case variant : partitioned_variants()) {
    variant.threads += world_rank() % 3;
    for (Pattern pattern : {Pattern::ordered, Pattern::direct}) {
      variant.spec.pattern = pattern;
      expect_right_halos(periodic_cube(1, variant));
    }
  }
}

TEST(Partitioned, DelaysOfAnyRankAnywhereDoNotChangeTheHalos) {
  check_random_exchanges(world_size() <= 4 ? 4 : 1, 400);
}
TEST(Partitioned, PeerThatIsSeveralNeighboursGetsEachBlockWhereItBelongs) { check_periodic_cubes(); }
TEST(Partitioned, ExchangesOfTwoSlotsMayBeInFlightAndEndInAnyOrder) { check_two_slots_in_flight(); }

TEST(Partitioned, LinkDestroyedInFlightCompletesItsMessages) {
  for (const Case& variant : partitioned_variants()) {
    end_in_flight(periodic_cube(0, variant));
    expect_right_halos(periodic_cube(0, variant));
  }
}

TEST(Partitioned, SteadyStateAllocatesNothingOutsideMpi) {
  for (const Case& variant : partitioned_variants()) expect_no_allocations(periodic_cube(0, variant));
}

/// The same with MPI initialised for calls from several threads: each makes ready the partitions that it has packed.
class PartitionedByThreads : public testing::Test {
 protected:
  void SetUp() override {
    int level = 0;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) GTEST_SKIP() << "run this suite alone: --gtest_filter=PartitionedByThreads.*";
  }
};

TEST_F(PartitionedByThreads, EveryGhostPointHoldsTheIdOfThePointItMirrors) {
  check_random_exchanges(world_size() <= 2 ? 20 : 5, 0);
}
TEST_F(PartitionedByThreads, DelaysOfAnyRankAnywhereDoNotChangeTheHalos) {
  check_random_exchanges(world_size() <= 4 ? 4 : 1, 400);
}
TEST_F(PartitionedByThreads, PeerThatIsSeveralNeighboursGetsEachBlockWhereItBelongs) { check_periodic_cubes(); }
TEST_F(PartitionedByThreads, ExchangesOfTwoSlotsMayBeInFlightAndEndInAnyOrder) { check_two_slots_in_flight(); }

#else

TEST(Partitioned, LibraryWithoutItIsNamedAsTheReason) {
  Case c{.transport = "partitioned"};
  EXPECT_PART(error_of<UnavailableError>([&] { Rig rig(periodic_cube(0, c)); }), "MPI_Psend_init");
}

#endif

TEST(Partitioned, BadOptionsAreRefusedWithWhatToDoInstead) {
  Case c{.transport = "partitioned", .options = {"lat"}};
  EXPECT_PART(error_of([&] { Rig rig(periodic_cube(0, c)); }), "options of partitioned: late");
}

}  // namespace
}  // namespace haloscope::test
