// Kernels that combine numbers of many threads: blocks combine them in the order of threads, then a second kernel does,
// so that sums are the same in every run. Included once per back end, after its launches.
#pragma once

#include <cstring>

#include "haloscope/core/combine.hpp"
#include "haloscope/device/kernels.hpp"
#include "haloscope/device/team.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

/// Combines the results of blocks into one, with a block for each number.
struct CombineBlocks {
  static constexpr int threads = 256;
  PassNumbers numbers;
  std::int32_t blocks;

  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    const int number = team.block();
    const ReduceOp op = numbers.ops[number];
    double* const parts = team.shared<double>();
    team.each([&](int thread) {
      double sum = identity_of(op);
      for (std::int64_t b = thread; b < blocks; b += threads)
        sum = combined(op, sum, numbers.partials[b * numbers.count + number]);
      parts[thread] = sum;
    });
    team.sync();
    team.one([&] {
      double sum = identity_of(op);
      for (int t = 0; t < threads; ++t) sum = combined(op, sum, parts[t]);
      numbers.all[number] = sum;
    });
  }
};

inline void combine_blocks(Stream& stream, const PassNumbers& numbers, int blocks) {
  if (numbers.count > 0)
    launch(stream, numbers.count, CombineBlocks::threads, sizeof(double) * CombineBlocks::threads,
           CombineBlocks{numbers, blocks});
}

/// Combines the contributions of a box's cells to reductions, number by number: a block combines gathered_cells of
/// them.
struct GatherBlocks {
  static constexpr int threads = gather_threads;
  PassNumbers numbers;
  const double* values;
  std::int64_t cells;

  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    double* const parts = team.shared<double>();
    const std::int64_t first = std::int64_t{team.block()} * gathered_cells;
    const std::int64_t end = first + gathered_cells < cells ? first + gathered_cells : cells;
    team.each([&](int thread) {
      for (int i = 0; i < numbers.count; ++i) {
        double sum = identity_of(numbers.ops[i]);
        for (std::int64_t cell = first + thread; cell < end; cell += threads)
          sum = combined(numbers.ops[i], sum, load(values + i * cells + cell));
        parts[i * threads + thread] = sum;
      }
    });
    team.sync();
    team.each([&](int thread) {
      for (int i = thread; i < numbers.count; i += threads) {
        double sum = identity_of(numbers.ops[i]);
        for (int t = 0; t < threads; ++t) sum = combined(numbers.ops[i], sum, parts[i * threads + t]);
        numbers.partials[std::int64_t{team.block()} * numbers.count + i] = sum;
      }
    });
  }
};

inline void launch_gather(Stream& stream, const PassNumbers& numbers, const double* values, std::int64_t cells) {
  const int blocks = gather_blocks(cells);
  if (blocks > 0)
    launch(stream, blocks, GatherBlocks::threads,
           sizeof(double) * GatherBlocks::threads * static_cast<std::size_t>(numbers.count),
           GatherBlocks{numbers, values, cells});
  combine_blocks(stream, numbers, blocks);
}

/// Finds the first point of a box that holds poison, by its position in it: a block checks gathered_cells of them.
struct PoisonBlocks {
  static constexpr int threads = gather_threads;
  PoisonSearch s;

  template <class Bits>
  HALOSCOPE_FUNCTION bool is_poison(const std::byte* at) const {
    Bits value;
    memcpy(&value, at, sizeof value);
    return s.bits.is_in(value);
  }
  HALOSCOPE_FUNCTION bool holds_poison(std::int64_t place) const {
    const std::int64_t line = place / s.extent[0], z = line / s.extent[1];
    const std::byte* const at =
        s.first + (place - line * s.extent[0]) * s.point + (line - z * s.extent[1]) * s.row + z * s.plane;
    for (std::int32_t b = 0; b < s.point; b += s.bits.bytes)
      if (s.bits.bytes == 8 ? is_poison<std::uint64_t>(at + b) : is_poison<std::uint32_t>(at + b)) return true;
    return false;
  }
  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    double* const least = team.shared<double>();
    const std::int64_t points = s.extent[0] * s.extent[1] * s.extent[2];
    const std::int64_t first = std::int64_t{team.block()} * gathered_cells;
    const std::int64_t end = first + gathered_cells < points ? first + gathered_cells : points;
    team.each([&](int thread) {
      least[thread] = identity_of(ReduceOp::min);
      for (std::int64_t place = first + thread; place < end; place += threads)
        if (holds_poison(place)) {
          least[thread] = static_cast<double>(place);
          break;
        }
    });
    team.sync();
    team.one([&] {
      double found = least[0];
      for (int t = 1; t < threads; ++t) found = combined(ReduceOp::min, found, least[t]);
      s.found.partials[team.block()] = found;
    });
  }
};

inline void launch_poison_search(Stream& stream, const PoisonSearch& s) {
  const int blocks = gather_blocks(s.extent[0] * s.extent[1] * s.extent[2]);
  if (blocks > 0)
    launch(stream, blocks, PoisonBlocks::threads, sizeof(double) * PoisonBlocks::threads, PoisonBlocks{s});
  combine_blocks(stream, s.found, blocks);
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
