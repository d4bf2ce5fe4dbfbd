// The exchanged buffers of `blocks`: each block of a GPU's threads has a buffer for another side's block of the same
// number (Vanecek 2020, sections 2.5 and 4.1). In the thesis a side has a separate process and GPU; here one process
// may have several sides on one device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "haloscope/extend/words.hpp"

namespace haloscope {

/// Blocks of a side with their threads and buffer sizes.
struct Workload {
  std::string name;
  int grid[3] = {1, 1, 1};             ///< of blocks; number b = x + y grid[0] + z grid[0] grid[1]
  int threads = 128;                   ///< of a block
  std::vector<std::int64_t> elements;  ///< of 8 bytes, by number of the block; 1 or more
  int blocks() const { return static_cast<int>(elements.size()); }
};

/// Returns a workload. @param name  XS, S, M, L or XL (table 4.1 and chapter 4). @throws UsageError for another.
Workload find_workload(const std::string& name);

/// The pairing of senders and receivers; the destination of a block is the side whose source it is.
enum class Scheme {
  pairs,  ///< side 2 i with side 2 i + 1; a last single one with itself
  ring,   ///< to the next side, from the one before
  mixed   ///< figure 2.6: block 0 as pairs, block 1 to the next side, the others to the one before
};
HALOSCOPE_WORDS(Scheme, "scheme", "pairs", "ring", "mixed");

int destination_of(Scheme scheme, int side, int sides, int block);
int source_of(Scheme scheme, int side, int sides, int block);

}  // namespace haloscope
