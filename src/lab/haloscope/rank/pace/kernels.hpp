// The kernels of a pace: a triad in the cache and through memory, and ping-pong of small and large messages.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <vector>

#include "haloscope/field/memory.hpp"
#include "haloscope/kernels/probe.hpp"
#include "haloscope/model/pace.hpp"

namespace haloscope {

/// Seconds of each kernel, by model::PaceKind; below 0: this rank has none.
using PaceRound = std::array<double, model::pace_kinds>;

/// Three arrays for a triad, each at another place of a page.
class TriadArrays {
 public:
  /// Writes them. @param bytes  of each.
  explicit TriadArrays(std::size_t bytes) : part_(bytes), memory_(3 * (bytes + 2 * small_page)) {
    std::size_t at = 0;
    for (std::uint64_t number = 0; number < 3; ++number) {
      at = staggered_offset(at, number);
      arrays_[number] = reinterpret_cast<double*>(memory_.data() + at);
      std::fill_n(arrays_[number], part_ / sizeof(double), 1.0);
      at += part_;
    }
  }
  /// The triad of the bytes from `begin` on.
  void run(MemoryPass triad, std::size_t begin, std::size_t bytes) const {
    const std::size_t first = begin / sizeof(double);
    triad(arrays_[0] + first, arrays_[1] + first, arrays_[2] + first, 0.5, bytes / sizeof(double));
  }

 private:
  std::size_t part_;
  Memory memory_;
  std::array<double*, 3> arrays_{};
};

/// All kernels, set up once: some milliseconds.
class PaceKernels {
 public:
  /// Collective over `comm`.
  explicit PaceKernels(MPI_Comm comm);
  /// Times the kernels. Collective: all ranks run them concurrently.
  PaceRound time();

 private:
  /// The ranks with which one plays ping-pong, on its node and on another; -1: none.
  struct Partners {
    int near = -1, far = -1;
  };
  Partners find_partners() const;
  void trip(int partner, int bytes);
  double half_trip(int partner, int bytes, int count);
  int agree_on_trips(int partner, int bytes);

  MPI_Comm comm_;
  int rank_ = 0;
  Partners partners_;
  TriadArrays near_, far_;
  MemoryPass triad_;
  std::vector<std::byte> message_;
  int passes_ = 1;
  std::array<int, 4> trips_{};
  std::size_t chunk_ = 0;
};

}  // namespace haloscope
