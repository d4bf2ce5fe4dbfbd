// Several time steps of a 2D stencil in one pass over memory: temporal blocking in the second-level cache.
// Included for one instruction set at a time (see simd.hpp for why).
//
// The box is cut into x tiles. In a tile, time level t computes the columns and rows that level t + 1 will read (one
// more on each side per level) and runs one row behind level t - 1 as a wavefront down y. Each inner level keeps only
// the last Form::rows + 2 rows in a ring; the last level is stored to memory. Points near tile edges are computed
// twice, by the same operations, so the bits are equal to single sweeps.
#pragma once

#include "haloscope/kernels/jam.hpp"

namespace haloscope::HALOSCOPE_ISA {

template <class T>
constexpr std::int64_t fused_tile_width = 4096 / sizeof(T);

template <class T>
HALOSCOPE_INLINE std::int64_t round_up_lanes(std::int64_t n) {
  constexpr std::int64_t lanes = 64 / sizeof(T);
  return (n + lanes - 1) / lanes * lanes;
}

/// The rings of one tile, carved out of the caller's scratch. Level t, 1 <= t < levels, has rows of `pitch` elements.
template <class T, int Rows>
struct Rings {
  static constexpr int depth = Rows + 2;
  T* base;
  std::int64_t left;   ///< elements before column 0 of the tile, a multiple of 64 bytes
  std::int64_t pitch;  ///< an odd number of cache lines

  HALOSCOPE_INLINE static Rings shape(std::int64_t width, int levels) {
    constexpr std::int64_t lanes = 64 / sizeof(T);
    const std::int64_t left = round_up_lanes<T>(levels);
    const std::int64_t lines = (left + round_up_lanes<T>(width + levels)) / lanes;
    return {nullptr, left, (lines | 1) * lanes};
  }
  HALOSCOPE_INLINE std::int64_t elements(int levels) const { return (levels - 1) * depth * pitch; }
  /// Column 0 of row y (>= 0, counted from the first row the tile reads) at level t.
  HALOSCOPE_INLINE T* at(int t, std::int64_t y) const { return base + ((t - 1) * depth + y % depth) * pitch + left; }
};

/// Row pointers of one tile step, as the source (offset 1: row -1 comes first) or target of tile().
template <class T, int Count, int Offset>
struct RowTable {
  struct Rows {
    const RowTable& table;
    std::int64_t x;
    HALOSCOPE_INLINE T* operator()(int j) const { return table.p[j + Offset] + x; }
  };
  T* p[Count];
  HALOSCOPE_INLINE Rows plane(int, std::int64_t x) const { return {*this, x}; }
};

/// One x tile: `in` and `out` point to its column 0 in row 0, the tile's rows are [levels, levels + rows) of the input.
template <int N, class Form>
struct FusedTile {
  using T = typename Form::Real;
  const Form& form;
  const T* in;  ///< first row read
  T* out;       ///< first row written
  std::int64_t row, width, rows;
  int levels;
  Store store;
  Rings<T, Form::rows> rings;

  /// JY rows of level t from row y on. Rows count from the first one read: level t has rows [t, rows + 2 levels - t).
  template <int JY>
  HALOSCOPE_INLINE void step(int t, std::int64_t y) const {
    const std::int64_t reach = levels - t;
    if (t == 1) return put<JY>(t, y, FetchedAhead<Form, JY, T>{{in + y * row - reach, row, 0}});
    RowTable<const T, JY + 2, 1> src;
    for (int j = 0; j < JY + 2; ++j) src.p[j] = rings.at(t - 1, y - 1 + j) - reach;
    put<JY>(t, y, src);
  }

  /// Computes the rows of step() from `src` into the ring of level t or, at the last level, into memory.
  template <int JY, class Source>
  HALOSCOPE_INLINE void put(int t, std::int64_t y, const Source& src) const {
    if (t < levels) {
      const std::int64_t reach = levels - t;
      RowTable<T, JY, 0> dst;
      for (int j = 0; j < JY; ++j) dst.p[j] = rings.at(t, y + j) - reach;
      return tile<Store::plain, N, JY, 1>(form, src, dst, width + 2 * reach);
    }
    const Strided<T> dst{out + (y - levels) * row, row, 0};
    if constexpr (N == full_lanes<T>) {
      if (store == Store::stream) return tile<Store::stream, N, JY, 1>(form, src, dst, width);
      if (store == Store::shifted) return tile<Store::shifted, N, JY, 1>(form, src, dst, width);
    }
    tile<Store::plain, N, JY, 1>(form, src, dst, width);
  }

  template <int JY>
  void steps(int t, std::int64_t y, std::int64_t end) const {
    for (; y + JY <= end; y += JY) step<JY>(t, y);
    if constexpr (JY > 1) {
      if (y < end) steps<JY / 2>(t, y, end);
    }
  }

  void run() const {
    constexpr int R = Form::rows;
    const std::int64_t last = rows + 2 * levels;
    for (std::int64_t front = 2; front - levels < rows + levels; front += R) {
      for (int t = 1; t <= levels; ++t) {
        const std::int64_t y = front - t, first = y < t ? t : y;
        const std::int64_t end = y + R < last - t ? y + R : last - t;
        steps<R>(t, first, end);
      }
    }
  }
};

template <int N, class Form>
void fused_lanes(const Form& form, const KernelArgs& args, const Bounds& b, Store store) {
  using T = typename Form::Real;
  if constexpr (N > 1) {
    if (b.hi[0] - b.lo[0] < N) return fused_lanes<N / 2>(form, args, b, Store::plain);
  }
  const std::int64_t plane = b.lo[2] * args.plane;
  const T* in = static_cast<const T*>(args.in) + plane + (b.lo[1] - args.levels) * args.row;
  T* out = static_cast<T*>(args.out) + plane + b.lo[1] * args.row;
  const std::int64_t width = fused_tile_width<T>;
  for (std::int64_t x = b.lo[0]; x < b.hi[0];) {
    std::int64_t end = x + width + to_boundary<N>(out + x + width);
    if (b.hi[0] - end < width / 2) end = b.hi[0];
    auto rings = Rings<T, Form::rows>::shape(end - x, args.levels);
    rings.base = static_cast<T*>(args.scratch);
    FusedTile<N, Form>{form, in + x, out + x, args.row, end - x, b.hi[1] - b.lo[1], args.levels, store, rings}.run();
    x = end;
  }
}

/// Kernel::scratch_bytes.
template <class Form>
std::size_t fused_scratch(const Box& region, int levels) {
  using T = typename Form::Real;
  const Bounds b(region);
  const std::int64_t widest = fused_tile_width<T> * 3 / 2 + 64, width = b.hi[0] - b.lo[0];
  const auto rings = Rings<T, Form::rows>::shape(width < widest ? width : widest, levels);
  return b.empty() || levels < 2 ? 0 : static_cast<std::size_t>(rings.elements(levels)) * sizeof(T);
}

/// Kernel::fused.
template <class Form>
void fused(const KernelArgs& args) {
  constexpr int N = full_lanes<typename Form::Real>;
  const Bounds b(args.region);
  if (b.empty()) return;
  const bool stream = can_stream && args.stream && b.hi[0] - b.lo[0] >= 4 * N;
  const bool alike = args.row % N == 0;
  const Store store = stream && alike ? Store::stream : stream && can_shift ? Store::shifted : Store::plain;
  fused_lanes<N>(load_form<Form>(args.weights), args, b, store);
  if (store != Store::plain) stream_fence();
}

template <class Form>
Kernel sweep_and_fuse(const char* isa) {
  return {sweep<Form>, fused<Form>, fused_scratch<Form>, isa};
}

}  // namespace haloscope::HALOSCOPE_ISA
