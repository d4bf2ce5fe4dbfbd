// Neighbourhood collectives on random exchanges, and in cases that libraries get wrong: one rank is every neighbour of
// another.
#include "haloscope/error.hpp"
#include "haloscope/extend/candidate.hpp"
#include "random_case.hpp"

namespace haloscope::test {
namespace {

#if HALOSCOPE_HAVE_NEIGHBOR_INIT
constexpr bool has_persistent = true;
#else
constexpr bool has_persistent = false;
#endif

/// Every form, from field memory and packed, that this MPI has.
std::vector<Case> neighbor_variants() {
  std::vector<Case> list;
  for (const char* form : {"", "blocking", "persistent"})
    for (bool packed : {false, true}) {
      if (std::string(form) == "persistent" && !has_persistent) continue;
      Case c{.transport = "neighbor"};
      if (*form) c.options.push_back(form);
      if (packed) c.options.push_back("packed");
      list.push_back(c);
    }
  return list;
}

bool blocking(const Case& c) { return !c.options.empty() && c.options[0] == "blocking"; }

TEST(Neighbor, EveryGhostPointHoldsTheIdOfThePointItMirrors) {
  std::mt19937 random(40 + world_size());
  const int rounds = world_size() <= 2 ? 20 : world_size() <= 4 ? 8 : 3;
  for (int i = 0; i < rounds && !HasFailure(); ++i)
    for (const Case& variant : neighbor_variants()) {
      Case c = random_case(random, variant);
      c.poll = c.poll && !blocking(c);  // the blocking form arrives in wait() only
      expect_right_halos(c);
    }
}

TEST(Neighbor, DelaysOfAnyRankAnywhereDoNotChangeTheHalos) {
  std::mt19937 random(50 + world_size());
  for (int i = 0; i < (world_size() <= 4 ? 6 : 2); ++i)
    for (const Case& variant : neighbor_variants()) {
      Case c = random_case(random, variant);
      c.poll = false;
      c.delay_us = 400;
      expect_right_halos(c);
    }
}

/// Two ranks, or rows of one: the low and the high neighbour are the same rank. Blocks must not be swapped.
TEST(Neighbor, PeerThatIsSeveralNeighboursGetsEachBlockWhereItBelongs) {
  for (const Case& variant : neighbor_variants())
    for (int split : {0, 1, 2})
      for (Pattern pattern : {Pattern::ordered, Pattern::direct})
        for (bool merged : {false, true}) {
          if (world_size() > 4 && split != 1) continue;  // oversubscribed: keep it short
          Case c = variant;
          c.spec.pattern = pattern;
          c.spec.merge_peers = merged;
          c.spec.merge = Merge::none;
          c.spec.quantities = {{"u", 8, ScalarType::real, Centring::cell}, {"v", 4, ScalarType::real, Centring::node}};
          expect_right_halos(periodic_cube(split, c));
        }
}

/// Ghosts on one side only of a grid with edges: the last rank only sends, the first only receives, the others both.
TEST(Neighbor, RanksThatOnlySendOrOnlyReceiveKeepUp) {
  for (const Case& variant : neighbor_variants())
    for (int low : {0, 1})
      for (int delay_us : {0, 300}) {
        Case c = periodic_cube(0, variant);
        c.grid.periodic = {false, true, false};
        c.spec.low = {low, 1, 1};
        c.spec.high = {1 - low, 1, 1};
        c.delay_us = delay_us;
        expect_right_halos(c);
      }
}

TEST(Neighbor, ExchangesOfSeveralSlotsMayBeInFlightAndEndInAnyOrder) {
  for (const Case& variant : neighbor_variants()) {
    // The blocking form is collective where it is awaited: in one order on all ranks.
    const bool backwards = world_rank() % 2 && !blocking(variant);
    expect_right_in_flight(periodic_cube(0, variant), backwards ? std::vector{2, 1, 0} : std::vector{0, 1, 2});
  }
}

TEST(Neighbor, LinkDestroyedInFlightCompletesItsMessages) {
  for (const Case& variant : neighbor_variants()) {
    end_in_flight(periodic_cube(0, variant));
    expect_right_halos(periodic_cube(0, variant));
  }
}

TEST(Neighbor, SteadyStateAllocatesNothingOutsideMpi) {
  for (const Case& variant : neighbor_variants()) expect_no_allocations(periodic_cube(0, variant));
}

TEST(Neighbor, PeerOfAnIncompleteRoundIsNamed) {
  if (world_size() < 2) GTEST_SKIP() << "needs a peer";
  for (const Case& variant : neighbor_variants()) {
    Case c = periodic_cube(0, variant);
    Rig rig(c);
    rig.fill(0, 0);
    const int last = world_size() - 1;
    if (world_rank() == last) MPI_Recv(nullptr, 0, MPI_BYTE, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    rig.start(0, 0);
    if (world_rank() == 0) {
      EXPECT_FALSE(rig.link->test(rig.in(0), 0)) << "the last rank has not begun";
      EXPECT_EQ(rig.link->waiting_for(rig.in(0), 0), rig.plan.messages[rig.in(0)[0]].peer);
      MPI_Send(nullptr, 0, MPI_BYTE, last, 99, MPI_COMM_WORLD);
    }
    rig.finish(0, 0);
    EXPECT_EQ(rig.link->waiting_for(rig.in(0), 0), -1);
  }
}

TEST(Neighbor, BadOptionsAreRefusedWithWhatToDoInstead) {
  const auto refusal = [](const std::vector<std::string>& words) -> std::string {
    Case c{.transport = "neighbor", .options = words};
    return error_of<Error>([&] { Rig rig(periodic_cube(0, c)); });
  };
  EXPECT_PART(refusal({"persistant"}), "did you mean persistent");
  EXPECT_PART(refusal({"blocking", "persistent"}), "exclude each other");
  EXPECT_EQ(refusal({"blocking", "packed"}), "no error");
  EXPECT_EQ(has_part(refusal({"persistent"}), "MPI_Neighbor_alltoallw_init"), !has_persistent);
}

}  // namespace
}  // namespace haloscope::test
