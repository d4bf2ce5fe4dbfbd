// Hashes of sequences of numbers, to find equal ones.
#pragma once

#include <bit>
#include <cstdint>

namespace haloscope::model {

/// A hash of a sequence of numbers, different for different sequences (but for one case in 10^19).
class Hash {
 public:
  void add(std::uint64_t number) {
    state_ = std::rotl(state_ ^ (number * 0x9E3779B97F4A7C15u), 29) * 0xBF58476D1CE4E5B9u;
    state_ ^= state_ >> 32;
  }
  std::uint64_t take() const { return state_; }

 private:
  std::uint64_t state_ = 0x94D049BB133111EBu;
};

}  // namespace haloscope::model
