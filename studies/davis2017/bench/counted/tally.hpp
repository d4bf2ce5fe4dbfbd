// Counts of a kernel: operations, loads and stores, and misses in two levels of cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace haloscope::counted {

constexpr std::uint64_t line_bytes = 64;

/// A cache of lines: sets of ways, of which the least recently used one is replaced.
class Cache {
 public:
  Cache(std::uint64_t bytes, std::size_t ways)
      : ways_(ways), sets_(bytes / line_bytes / ways), lines_(sets_ * ways, ~std::uint64_t{0}) {}

  /// Accesses a line. @return true if the cache holds it; if not, it does afterwards
  bool access(std::uint64_t line) {
    const auto set = lines_.begin() + static_cast<std::ptrdiff_t>((line % sets_) * ways_);
    const auto end = set + static_cast<std::ptrdiff_t>(ways_);
    const auto found = std::find(set, end, line);
    const bool hit = found != end;
    const auto last = hit ? found : end - 1;
    std::copy_backward(set, last, last + 1);
    *set = line;
    return hit;
  }

 private:
  std::size_t ways_;
  std::uint64_t sets_;
  std::vector<std::uint64_t> lines_;  // of a set, the most recently used one first
};

/// The counts, with the first two caches of a core of the study's machine (Intel X5650). Stores fetch the line that
/// they write; hardware prefetches are not modelled.
struct Tally {
  std::int64_t loads = 0, stores = 0, operations = 0, vector_operations = 0, l1_misses = 0, l2_misses = 0;
  Cache l1{32 * 1024, 8}, l2{256 * 1024, 8};

  void load(const void* at, std::size_t bytes) {
    ++loads;
    access(at, bytes);
  }
  void store(const void* at, std::size_t bytes) {
    ++stores;
    access(at, bytes);
  }
  void operate(int lanes) {
    operations += lanes;
    vector_operations += lanes > 1;
  }

 private:
  void access(const void* at, std::size_t bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(at);
    for (std::uint64_t line = first / line_bytes; line <= (first + bytes - 1) / line_bytes; ++line) {
      if (l1.access(line)) continue;
      ++l1_misses;
      if (!l2.access(line)) ++l2_misses;
    }
  }
};

/// Returns the counts of the present kernel.
inline Tally& tally() {
  static Tally all;
  return all;
}

}  // namespace haloscope::counted
