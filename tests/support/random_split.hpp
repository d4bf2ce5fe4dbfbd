// Splits of a grid by random cuts.
#pragma once

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "haloscope/layout.hpp"

namespace haloscope::test {

inline int pick(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

/// The blocks of a grid between random cuts, `most` at most.
inline std::vector<Box> random_blocks(std::mt19937& random, const GridSpec& grid, int most) {
  std::array<std::vector<std::int64_t>, 3> cuts;
  int blocks = 1;
  for (int d = 0; d < 3; ++d) {
    cuts[d] = {0, grid.cells[d]};
    for (int n = pick(random, 0, 3); n > 0 && d < grid.dims; --n) {
      const std::int64_t cut = pick(random, 1, std::max(1, static_cast<int>(grid.cells[d]) - 1));
      const int parts = static_cast<int>(cuts[d].size()) - 1;
      if (grid.cells[d] < 2 || std::find(cuts[d].begin(), cuts[d].end(), cut) != cuts[d].end() ||
          blocks / parts * (parts + 1) > most)
        continue;
      blocks = blocks / parts * (parts + 1);
      cuts[d].insert(std::upper_bound(cuts[d].begin(), cuts[d].end(), cut), cut);
    }
  }
  std::vector<Box> boxes;
  for (std::size_t z = 1; z < cuts[2].size(); ++z)
    for (std::size_t y = 1; y < cuts[1].size(); ++y)
      for (std::size_t x = 1; x < cuts[0].size(); ++x)
        boxes.push_back({{cuts[0][x - 1], cuts[1][y - 1], cuts[2][z - 1]}, {cuts[0][x], cuts[1][y], cuts[2][z]}});
  return boxes;
}

/// Deals random blocks of a grid to ranks, in random order: several to some, none to others, and with `holes` some
/// blocks to no rank.
inline Layout random_deal(std::mt19937& random, const GridSpec& grid, int ranks, int most_blocks, bool holes) {
  std::vector<Box> blocks = random_blocks(random, grid, most_blocks);
  std::shuffle(blocks.begin(), blocks.end(), random);
  if (holes && blocks.size() > 2) blocks.pop_back();
  std::vector<std::vector<Box>> owned(static_cast<std::size_t>(ranks));
  for (const Box& block : blocks) owned[static_cast<std::size_t>(pick(random, 0, ranks - 1))].push_back(block);
  return Layout::of_blocks(grid, owned, holes);
}

}  // namespace haloscope::test
