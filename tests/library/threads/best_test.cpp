// The library call in a process without MPI_Init.
#include "haloscope/best.hpp"

#include <gtest/gtest.h>

#include "haloscope/error.hpp"
#include "haloscope/extend/candidate.hpp"
#include "texts.hpp"
#include "toy_profile.hpp"

namespace haloscope {
namespace {

using test::error_of;

BestRequest small() {
  return {.grid = {2, {64, 64, 1}, {true, true, false}}, .ranks = 4, .profile = test::toy_profile()};
}

TEST(BestBeforeMpi, GivesTheWholeChoiceOfTheModel) {
  BestRequest request = small();
  request.options.depths = {1, 2};
  request.shared_memory = false;
  const Best found = best(request);
  EXPECT_EQ(found.choice.app, "laplace2d");
  EXPECT_EQ(found.choice.ranks, 4);
  EXPECT_EQ(illegal(found.choice), "");
  EXPECT_FALSE(needs_shared_fields(found.choice.strategy));
  EXPECT_EQ(found.halo, found.choice.depth);
  EXPECT_EQ(found.memory, MemoryKind::own);
  EXPECT_EQ(found.profile, "toy");
  EXPECT_GT(found.time_s, 1e-7);
  EXPECT_LT(found.time_s, 1e-3);
  EXPECT_NE(found.reason, "");
  ASSERT_FALSE(found.notes.empty());
  EXPECT_PART(found.notes[0], "the sweep of laplace2d");
  for (const Choice& other : found.equals) EXPECT_EQ(illegal(other), "");
}

TEST(BestBeforeMpi, RefusesRequestsThatCannotBeRight) {
  BestRequest request = small();
  request.profile = "/nowhere/machine.json";
  EXPECT_PART(error_of([&] { best(request); }), "cannot read the profile /nowhere/machine.json");
  request.profile = "";
  EXPECT_PART(error_of([&] { best(request); }), "haloscope calibrate");
  const Layout layout({2, {64, 64, 1}, {}}, {2, 2, 1});
  const Quantity pairs{"pairs", 16};
  EXPECT_PART(error_of([&] { best_request(layout, pairs, "p"); }), "this field has 16");
}

TEST(BestBeforeMpi, AProfileWithoutTheKernelNeedsTheProgramsOwnCost) {
  BestRequest request = small();
  request.grid = {3, {32, 32, 32}, {true, true, true}};
  request.options.depths = {1};
  const std::string text = error_of<UnavailableError>([&] { best(request); });
  EXPECT_PART(text, "no cost of kernel 'laplace3d/star/f64'");
  EXPECT_PART(text, "seconds_per_cell");
  request.options.seconds_per_cell = 1e-6;  // 8192 cells a rank: more expensive than all messages together
  const Best found = best(request);
  EXPECT_GE(found.time_s, 8192e-6);
  EXPECT_LT(found.time_s, 1.1 * 8192e-6);
}

}  // namespace
}  // namespace haloscope
