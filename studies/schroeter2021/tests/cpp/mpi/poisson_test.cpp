// poisson2d in iteration mode: bytes and residuals of the plain sequential loops, over every way to move lines.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <map>
#include <vector>

#include "haloscope/error.hpp"
#include "haloscope/rank/watch/inject.hpp"
#include "link_rig.hpp"
#include "pmpi_counter.hpp"
#include "poisson_rig.hpp"

namespace haloscope {
namespace {

using namespace test;

TEST(Poisson, SA3_SB1_JacobiGivesTheBytesOfTheSequentialLoop) {
  for (int function : {1, 2})
    for (const char* strategy : {"ordered/p2p", "direct/persistent"})
      for (const char* schedule : {"bulk", "split"}) {
        Choice c = choice_of("jacobi", world_size() <= 3 ? 2 : 1);
        c.strategy = strategy;
        c.schedule = schedule;
        expect_sequential(c, 9, function);
      }
}

/// All of them on one rank and in the long tests, otherwise a fixed sample.
TEST(Poisson, SB1_SC1_SC2_SC3_SC4_EveryLegalStrategyScheduleAndDepthGivesTheBytesOfJacobi) {
  const int stride = thorough() || world_size() == 1 ? 1 : world_size() <= 4 ? 7 : 31;
  int number = 0, ran = 0;
  for (const auto& strategy : strategy_names())
    for (const Schedule* schedule : schedules())
      for (int depth : {1, 2}) {
        Choice c = choice_of("jacobi", 2);
        c.strategy = strategy;
        c.schedule = schedule->name;
        c.depth = depth;
        c.threads = schedule->name == "comm-thread" ? 2 : 1;
        if (!illegal(c).empty() || number++ % stride != 0) continue;
        try {
          expect_sequential(c, 5, 2);
          ++ran;
        } catch (const UnavailableError&) {  // this MPI lacks it
        }
      }
  EXPECT_GT(number, 100);
  EXPECT_GE(ran, number / stride / 2);
}

TEST(Poisson, SC4_JacobiWithBarriersAroundGetsGivesTheSameBytes) {
  for (const char* strategy : {"direct/rma-lock:get,barrier", "direct/rma-lockall:get,barrier"})
    for (const char* schedule : {"bulk", "split"}) {
      Choice c = choice_of("jacobi", 1);
      c.strategy = strategy;
      c.schedule = schedule;
      ASSERT_EQ(illegal(c), "") << strategy;
      expect_sequential(c, 5, 1);
    }
}

TEST(Poisson, SB1_JacobiOnA2dProcessGridGivesTheSameBytes) {
  Choice c = choice_of("jacobi", 2);
  c.process_grid = "square";
  expect_sequential(c, 9, 1);
  expect_sequential(c, 9, 2);
}

TEST(Poisson, JacobiWithDeepHalosGivesTheSameBytesAndResidual) {
  Choice c = choice_of("jacobi", 3);
  c.depth = 2;
  for (Substeps substeps : {Substeps::full, Substeps::shrink}) {
    c.substeps = substeps;
    expect_sequential(c, 7, 2);
  }
}

TEST(Poisson, SA3_SB2_GaussSeidelGivesTheBytesOfTheSequentialLoop) {
  for (int function : {1, 2})
    for (const char* strategy : {"ordered/p2p", "direct/p2p:testany", "ordered/persistent"})
      for (std::int64_t iterations : {1, 2, 9}) {
        Choice c = choice_of("gauss-seidel", world_size() <= 3 ? 2 : 1);
        c.strategy = strategy;
        expect_sequential(c, iterations, function);
      }
}

/// One-sided lines: with exposures alone, with flags, with empty messages, under one lock_all, by request; then others.
TEST(Poisson, SC5_SC6_SC7_SC8_SC9_EveryTransportOfSingleMessagesCarriesThePipeline) {
  const char* const some[] = {"ordered/rma-pscw:per-message",
                              "ordered/rma-pscw:per-message,get",
                              "ordered/rma-lock:get,flag",
                              "ordered/rma-lock:get,message",
                              "ordered/rma-lock",
                              "ordered/rma-lockall:get,flag",
                              "ordered/rma-lockall",
                              "ordered/rma-lockall:rget",
                              "ordered/shared",
                              "ordered/shared:pull",
                              "ordered/shared:packed",
                              "ordered/partitioned"};
  for (const char* strategy : some) {
    Choice c = choice_of("gauss-seidel", 1);
    c.strategy = strategy;
    ASSERT_EQ(illegal(c), "") << strategy;
    try {
      expect_sequential(c, 6, 1);
    } catch (const UnavailableError& error) {  // partitioned communication on an MPI without it
      EXPECT_STREQ(strategy, "ordered/partitioned") << error.what();
    }
  }
}

TEST(Poisson, SC6_SC7_DelaysDoNotBreakTheReadinessOfLines) {
  for (const char* strategy : {"ordered/rma-lock:get,flag", "ordered/rma-lock:get,message", "ordered/shared"})
    for (int slow = 0; slow < std::min(world_size(), 4); ++slow) {
      Fault fault = Fault::parse("delay:rank=0,step=-1,seconds=0.001,op=sweep");
      RunnerOptions options;
      if (world_rank() == slow) options.injection = {&Fault::before, &fault};
      Choice c = choice_of("gauss-seidel", 1);
      c.strategy = strategy;
      expect_sequential(c, 4, 1, options);
    }
}

TEST(Poisson, SC7_ThePipelineAnnouncesItsLinesByMessagesOfLength0) {
  const auto sent_in = [&](std::int64_t iterations) {
    Choice c = choice_of("gauss-seidel", 1);
    c.strategy = "ordered/rma-lock:get,message";
    test::sent() = {};
    solve(start_from(c, "random"), iterations);
    return test::sent();
  };
  const Sent few = sent_in(10), many = sent_in(30);
  const int neighbours = (world_rank() > 0) + (world_rank() + 1 < world_size());
  EXPECT_EQ(many.messages - few.messages, 20 * 2 * neighbours) << "that a line is ready, and that it has been read";
  EXPECT_EQ(many.bytes, few.bytes);
}

TEST(Poisson, SC7_TagsOfTheMessagesOfLength0HoldTheIteration) {
  constexpr int iterations = 20;
  for (const char* strategy : {"ordered/rma-lock:get,message", "ordered/rma-lockall:get,message"}) {
    Choice c = choice_of("gauss-seidel", 1);
    c.strategy = strategy;
    std::map<std::pair<int, int>, std::vector<int>> tags;  // by peer and end: of a line to it, or from it
    test::on_isend() = [&](const void*, int count, MPI_Datatype, int to, int tag) {
      if (count == 0) tags[{to, tag % 2}].push_back(tag);
    };
    solve(start_from(c, "random"), iterations);
    test::on_isend() = {};
    const int neighbours = (world_rank() > 0) + (world_rank() + 1 < world_size());
    EXPECT_EQ(static_cast<int>(tags.size()), 2 * neighbours) << strategy;
    for (const auto& [end, list] : tags) {
      ASSERT_GE(static_cast<int>(list.size()), iterations) << strategy;  // and lines of the initial data
      for (std::size_t k = 0; k < list.size(); ++k)
        EXPECT_EQ(list[k] - list[0], 2 * static_cast<int>(k % MessageTags::laps)) << strategy << " " << k;
    }
  }
}

TEST(Poisson, SC5_SC8_ThePipelineOverOneSidedLinesNeedsNoMessageAndNoCollective) {
  const auto count = [&](const char* strategy, std::int64_t iterations) {
    Choice c = choice_of("gauss-seidel", 1);
    c.strategy = strategy;
    test::sent() = {};
    test::calls() = {};
    solve(start_from(c, "random"), iterations);
    return std::pair(test::sent().messages, test::calls());
  };
  const auto few = count("ordered/rma-pscw:per-message", 10), many = count("ordered/rma-pscw:per-message", 30);
  EXPECT_EQ(many.first, few.first) << "messages beside the exposures";
  EXPECT_EQ(many.second.collectives, few.second.collectives);
  EXPECT_EQ(many.second.atomics, few.second.atomics) << "flags beside the exposures";
  const auto all = count("ordered/rma-lockall", 30);
  EXPECT_EQ(all.second.lock_alls, all.second.unlock_alls);
  EXPECT_EQ(all.second.lock_alls, count("ordered/rma-lockall", 10).second.lock_alls) << "once, not per access";
}

TEST(Poisson, SA6_RanksOfOneLineKeepTheOrder) {
  if (world_size() > 7) {
    EXPECT_NE(illegal(choice_of("gauss-seidel", 0)).find("use fewer ranks"), std::string::npos);
    return;
  }
  expect_sequential(choice_of("gauss-seidel", 0), 6, 1);  // 7 lines: one per rank at 7 ranks, mixed at 4
}

TEST(Poisson, SB2_DelaysOfAnyRankDoNotChangeTheBytes) {
  for (int slow = 0; slow < world_size(); ++slow) {
    Fault fault = Fault::parse("delay:rank=0,step=-1,seconds=0.002");
    RunnerOptions options;
    if (world_rank() == slow) options.injection = {&Fault::before, &fault};
    expect_sequential(choice_of("gauss-seidel", 1), 3, 1, options);
  }
}

}  // namespace
}  // namespace haloscope
