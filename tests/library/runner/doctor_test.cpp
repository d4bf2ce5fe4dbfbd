// The doctor as a library call: the same answer about this machine on all ranks.
#include "haloscope/doctor.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/text.hpp"
#include "link_rig.hpp"

namespace haloscope::test {
namespace {

TEST(Doctor, TellsAllRanksTheSameInTheOrderOfTheCommand) {
  const std::vector<Diagnosis> checks = doctor(MPI_COMM_WORLD);
  std::string all;
  for (const Diagnosis& check : checks)
    all += check.name + "|" + to_word(check.verdict) + "|" + check.found + "|" + check.remedy + "\n";
  EXPECT_EQ(all, text_of_rank(MPI_COMM_WORLD, 0, all));
  ASSERT_EQ(checks.size(), 4u);
  EXPECT_EQ(checks[0].name, "pinning");
  EXPECT_EQ(checks[3].name, "exchange");
  EXPECT_EQ(checks[3].verdict, Verdict::ok) << checks[3].found;
  for (const Diagnosis& check : checks) {
    EXPECT_FALSE(check.found.empty()) << check.name;
    EXPECT_EQ(check.remedy.empty(), check.verdict == Verdict::ok) << all;
  }
}

TEST(Doctor, NamesRanksThatTakeTurns) {
  const Diagnosis pinning = doctor(MPI_COMM_WORLD).front();
  const bool crowded = more_ranks_than_cores(MPI_COMM_WORLD);
  EXPECT_EQ(has_part(pinning.found, "take turns"), crowded) << pinning.found;
}

TEST(Doctor, TakesACommunicatorOfSomeRanks) {
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, 0, &half);
  EXPECT_EQ(doctor(half).back().verdict, Verdict::ok);
  MPI_Comm_free(&half);
}

}  // namespace
}  // namespace haloscope::test
