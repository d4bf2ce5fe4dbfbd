// Sizes that MPI cannot count on one rank alone: an error on all ranks, by every strategy.
#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <set>
#include <string>
#include <utility>

#include "haloscope/haloscope.hpp"
#include "haloscope/transport/twosided/datatype.hpp"
#include "world.hpp"

namespace haloscope {
namespace {

/// While it lives, MPI counts no further on this rank.
class Counting {
 public:
  explicit Counting(std::int64_t most) : before_(std::exchange(largest_count, most)) {}
  ~Counting() { largest_count = before_; }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

 private:
  std::int64_t before_;
};

/// The error of an exchange where rank 0 counts up to 3. Expects it on all ranks, or on none.
std::string error_where_rank_0_counts_to_3(const Grid<2>& grid, const FieldRef& u, const Strategy& strategy,
                                           const ExchangeOptions& options = {}) {
  std::string error = "no error";
  const Counting counting(grid.rank() == 0 ? 3 : largest_count);
  test::run_if_available([&] { error = test::error_of([&] { make_exchange(grid, {u}, strategy, options); }); });
  std::array<int, 2> refused{error != "no error", error == "no error"};
  MPI_Allreduce(MPI_IN_PLACE, refused.data(), 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  EXPECT_NE(refused[0], refused[1]) << error;
  if (refused[0]) {
    EXPECT_EQ(error.rfind("rank 0: ", 0) == 0, grid.rank() != 0) << error;
  }
  return error;
}

TEST(LargestCount, WhatOneRankCannotCountIsRefusedOnAll) {
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {12, 12}, .periodic = {true, true}}};
  const Field<double, 2> own{grid, {.halo = 1}}, shared{grid, {.halo = 1, .memory = MemoryKind::shared}};
  std::set<std::string> refused;
  for (const std::string& name : strategy_names()) {
    SCOPED_TRACE(name);
    const Strategy strategy(name);
    const std::string error =
        error_where_rank_0_counts_to_3(grid, needs_shared_fields(strategy) ? shared : own, strategy);
    if (error != "no error") refused.insert(name);
  }
  EXPECT_TRUE(refused.contains("reference"));
  EXPECT_EQ(refused.contains("direct/p2p:datatype"), test::world_size() > 1);
  EXPECT_FALSE(refused.contains("direct/p2p"));
  EXPECT_FALSE(refused.contains("direct/auto"));  // it skips such candidates
  auto halo = make_exchange(grid, {own}, "reference");
  halo.exchange();
}

TEST(LargestCount, WhatIsAskedOfOneRankIsRefusedOnAllToo) {
  if (test::world_size() == 1) return;
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {12, 12}, .process_grid = "1x" + std::to_string(test::world_size())}};
  const Field<double, 2> u{grid, {.halo = 1}};
  const ExchangeOptions from_below{.low = {0, 1, 0}, .high = {0, 0, 0}};  // rank 0 fills nothing
  EXPECT_PART(error_where_rank_0_counts_to_3(grid, u, Strategy("reference"), from_below),
              "too many for strategy 'reference'");
}

}  // namespace
}  // namespace haloscope
