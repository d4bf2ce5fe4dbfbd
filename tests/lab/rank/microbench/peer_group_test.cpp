// Senders and receivers in micro-benchmarks.
#include <gtest/gtest.h>

#include <vector>

#include "haloscope/rank/microbench/transfer.hpp"

namespace haloscope {
namespace {

TEST(PeerGroup, DB4_PairsWithAFixedGapSendAllTrafficOfANodeToOneOtherNode) {
  const auto pairs = [](int ranks, int gap) {
    std::vector<std::vector<int>> found(static_cast<std::size_t>(ranks / 2), std::vector<int>(2));
    for (int rank = 0; rank < ranks; ++rank) {
      const Paired p = find_pair(rank, gap);
      found.at(static_cast<std::size_t>(p.pair)).at(static_cast<std::size_t>(p.side)) = rank;
      EXPECT_EQ(find_pair(p.partner, gap).partner, rank);
    }
    return found;
  };
  using Pairs = std::vector<std::vector<int>>;
  EXPECT_EQ(pairs(16, 4), (Pairs{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}}));
  EXPECT_EQ(pairs(6, 3), (Pairs{{0, 3}, {1, 4}, {2, 5}}));
  for (int rank = 0; rank < 128; ++rank)  // 16 ranks a node
    EXPECT_EQ(find_pair(rank, 16).partner / 16, (rank / 16) ^ 1);
}

}  // namespace
}  // namespace haloscope
