// Choices that poisson2d refuses.
#include <gtest/gtest.h>

#include "haloscope/extend/candidate.hpp"

namespace haloscope {
namespace {

Choice poisson_choice(const std::string& method, const std::string& schedule) {
  Choice c;
  c.app = "poisson2d";
  c.form = method;
  c.grid = {2, {23, 23, 1}, {false, false, false}};
  c.ranks = 3;
  c.schedule = schedule;
  return c;
}

void expect_refused_with(const Choice& c, const std::string& reason) {
  EXPECT_NE(illegal(c).find(reason), std::string::npos) << "'" << illegal(c) << "'";
}

TEST(PoissonLegality, GaussSeidelNeedsThePipelineAndThePipelineGaussSeidel) {
  EXPECT_EQ(illegal(poisson_choice("gauss-seidel", "pipeline")), "");
  EXPECT_EQ(illegal(poisson_choice("jacobi", "bulk")), "");
  expect_refused_with(poisson_choice("gauss-seidel", "bulk"), "--schedule pipeline");
  expect_refused_with(poisson_choice("jacobi", "pipeline"), "in place");
}

TEST(PoissonLegality, SA1_TheGridHasFixedBordersAndEightIPlusNineLines) {
  Choice c = poisson_choice("gauss-seidel", "pipeline");
  c.grid.periodic[1] = true;
  expect_refused_with(c, "--periodic none");
  c = poisson_choice("gauss-seidel", "pipeline");
  c.grid.cells = {24, 24, 1};
  expect_refused_with(c, "8 I + 7");
  c.grid.cells = {23, 31, 1};
  expect_refused_with(c, "8 I + 7");
}

TEST(PoissonLegality, SA6_LinesAreSplitEvenlyAndMoreRanksThanLinesAreRefused) {
  const Layout five(GridSpec{2, {7, 5, 1}, {false, false, false}},
                    process_grid("slabs", 3, GridSpec{2, {7, 5, 1}, {}}));
  EXPECT_EQ(five.local_cells(0)[1], 2);
  EXPECT_EQ(five.local_cells(1)[1], 2);
  EXPECT_EQ(five.local_cells(2)[1], 1);
  Choice c = poisson_choice("gauss-seidel", "pipeline");
  for (int ranks = 1; ranks <= 23; ++ranks) {
    c.ranks = ranks;
    ASSERT_EQ(illegal(c), "");
    const Layout layout = make_layout(c);
    EXPECT_LE(layout.local_cells(0)[1] - layout.local_cells(ranks - 1)[1], 1);
    EXPECT_EQ(layout.local_cells(ranks - 1)[0], 23);
  }
  c.ranks = 24;
  expect_refused_with(c, "puts 24 ranks on 23 cells in y; use fewer ranks");
}

}  // namespace
}  // namespace haloscope
