// A schedule that is not part of this library: the boundary before the interior, registered by its name.
#include "haloscope/core/check.hpp"
#include "haloscope/schedule/builder.hpp"
#include "step_rig.hpp"

namespace haloscope::test {
namespace {

Program make_shell_first(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  const ExchangeOps exchange = b.exchange();
  const Box inner = b.interior();
  std::vector<int> done;
  for (const Box& box : b.shell(inner)) done.push_back(b.first_sweep(box, Part::outer, {exchange.ready()}));
  done.push_back(b.first_sweep(inner, Part::inner, {exchange.ready()}));
  b.later_sweeps(done, exchange);
  return b.take();
}

std::string refuse_three_dimensions(const Candidate& c) {
  return c.layout.dims() < 3 ? "" : "schedule 'test-shell-first' is for two dimensions; use another schedule";
}

const Schedule shell_first{.name = "test-shell-first",
                           .summary = "the boundary, then the interior",
                           .colour = "#000000",
                           .make = make_shell_first,
                           .illegal = refuse_three_dimensions};

class AddedSchedule : public testing::Test {
 protected:
  static void SetUpTestSuite() { add_schedule(shell_first); }
};

TEST_F(AddedSchedule, RunsAppsByTransportsAndDepthsLikeReference) {
  for (const auto& periodic : periodicities)
    for (int depth : {1, 3}) {
      Choice c = flat_choice("laplace2d", periodic, {29, 23, 1});
      c.depth = depth;
      c.strategy = "reference";
      const std::uint64_t expected = checksum_of(c);
      c.schedule = "test-shell-first";
      for (const char* strategy : {"ordered/p2p", "direct/persistent", "direct:merged/rma-fence", "ordered/shared"}) {
        c.strategy = strategy;
        EXPECT_EQ(checksum_of(c), expected) << describe(c);
      }
    }
}

TEST_F(AddedSchedule, IsListedFoundOnceAndSaysItselfWhatItCannotArrange) {
  EXPECT_EQ(schedules().back(), &shell_first);
  EXPECT_EQ(&find_schedule("test-shell-first"), &shell_first);
  EXPECT_THROW(add_schedule(shell_first), UsageError);
  Choice c{.grid = {3, {9, 9, 9}, {}}, .ranks = world_size(), .schedule = "test-shell-first"};
  EXPECT_EQ(illegal(c), "schedule 'test-shell-first' is for two dimensions; use another schedule");
}

}  // namespace
}  // namespace haloscope::test
