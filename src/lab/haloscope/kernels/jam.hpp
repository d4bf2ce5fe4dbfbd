// The one sweep: a box cut into tiles of a few rows and planes that advance along x together.
// Included for one instruction set at a time (see simd.hpp for why).
//
// Tiles: one core is limited by cache lines in flight, so several read and write streams run faster than one, and
// each source line is fetched about 1.5 times instead of 3 (fast for memory and for L1 alike).
//
// A form of a stencil defines the computation of a tile of JY rows x JZ planes for N neighbouring cells in x. It also
// fixes the order of operations of a point: tile shape, vector width and instruction set never change it, so every
// kernel of a form gives the bits of the plain loop with one fma per term. `src.plane(k, x)(j)` points to cell x of the
// row j rows and k planes away from the tile's first one. `emit(j, k, value)` takes a finished row: as early as
// possible, so that stores are spread evenly over the work. `rows` and `planes` shape the tile of large boxes;
// `fetch_bytes` is the prefetch distance along x for a source in memory (all measured, on one server core).
#pragma once

#include "haloscope/kernels/bounds.hpp"
#include "haloscope/kernels/kernel.hpp"
#include "haloscope/kernels/simd.hpp"

namespace haloscope::HALOSCOPE_ISA {

/// Rows at fixed distances: the source of a form or the target of a tile.
///
/// The compiler must not see that plane(k, x) moves along with x: it would keep one running pointer per row and plane,
/// two dozen for a 27-point tile, all spilled. One opaque pointer per plane and a few row offsets fit the registers.
template <class T>
struct Strided {
  struct Rows {
    T* p;
    std::int64_t stride;
    HALOSCOPE_INLINE T* operator()(int j) const { return p + j * stride; }
  };
  T* p;
  std::int64_t row_stride, plane_stride;

  HALOSCOPE_INLINE Rows plane(int k, std::int64_t x) const { return {opaque(p + k * plane_stride + x), row_stride}; }
  HALOSCOPE_INLINE Strided moved(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return {p + x + y * row_stride + z * plane_stride, row_stride, plane_stride};
  }
};

enum class Store {
  plain,
  stream,  ///< non-temporal; all rows of a tile lie alike relative to vector boundaries
  shifted  ///< non-temporal; rows lie differently, so results are joined to aligned vectors in registers
};

/// Calls f(j, k, address of cell x) for every row of a tile.
template <int JY, int JZ, class Target, class F>
HALOSCOPE_INLINE void each_row(const Target& dst, std::int64_t x, const F& f) {
#pragma GCC unroll 8
  for (int k = 0; k < JZ; ++k) {
    const auto rows = dst.plane(k, x);
#pragma GCC unroll 8
    for (int j = 0; j < JY; ++j) f(j, k, rows(j));
  }
}

/// One tile, n >= N cells long, ordinary stores. The last vector overlaps the one before instead of being partial.
template <int N, int JY, int JZ, class Form, class Source, class Target>
HALOSCOPE_INLINE void tile_plain(const Form& form, const Source& src, const Target& dst, std::int64_t n) {
  using V = Vec<typename Form::Real, N>;
  const int head = n >= 8 * N ? to_boundary<N>(dst.plane(0, 0)(0)) : 0;  // short rows do not repay alignment
  std::int64_t next = head ? head : N;
  for (std::int64_t x = 0;; next = x + N) {
    form.template apply<N, JY, JZ>(src, x, [&](int j, int k, V v) HALOSCOPE_LAMBDA { v.store(dst.plane(k, x)(j)); });
    if (x == n - N) return;
    x = next < n - N ? next : n - N;
  }
}

/// A source in memory that also prefetches, a few vectors ahead, the rows that this tile is the first to read: the
/// core's own prefetchers follow fewer streams than a tile has (measured: 5-20 % of the whole sweep).
template <class Form, int JY, class T>
struct FetchedAhead {
  static constexpr std::int64_t distance = Form::fetch_bytes / sizeof(T);
  Strided<const T> src;

  HALOSCOPE_INLINE auto plane(int k, std::int64_t x) const {
    const auto rows = src.plane(k, x);
#pragma GCC unroll 8
    for (int j = 1; j <= JY; ++j) __builtin_prefetch(rows(j) + distance);
    return rows;
  }
};

/// Sources in cache stay as they are.
template <class Form, int JY, class T>
HALOSCOPE_INLINE FetchedAhead<Form, JY, T> fetched_ahead(const Strided<const T>& src) {
  return {src};
}
template <class Form, int JY, class Source>
HALOSCOPE_INLINE const Source& fetched_ahead(const Source& src) {
  return src;
}

/// Fetches the partial vectors at the end of this tile's rows and at the start of the next tile's. Their ordinary
/// stores would otherwise wait for memory, and all later stores with them.
template <int N, int JY, int JZ, class T>
HALOSCOPE_INLINE void fetch_row_ends(const Strided<T>& dst, std::int64_t n) {
  each_row<JY, JZ>(dst, n, [](int, int, T* p) HALOSCOPE_LAMBDA {
    if (to_boundary<N>(p)) __builtin_prefetch(p - 1, 1);
  });
  each_row<JY, JZ>(dst.moved(0, JY, 0), 0, [](int, int, T* p) HALOSCOPE_LAMBDA {
    if (to_boundary<N>(p)) __builtin_prefetch(p, 1);
  });
}

/// One tile, non-temporal stores to whole vectors; the partial vectors at both ends are ordinary stores.
template <int N, int JY, int JZ, class Form, class Source, class Target>
HALOSCOPE_INLINE void tile_stream(const Form& form, const Source& src, const Target& dst, std::int64_t n) {
  using V = Vec<typename Form::Real, N>;
  const auto& ahead = fetched_ahead<Form, JY>(src);
  fetch_row_ends<N, JY, JZ>(dst, n);
  const auto part = [&](std::int64_t x, int first, int last) {
    form.template apply<N, JY, JZ>(
        src, x, [&](int j, int k, V v) HALOSCOPE_LAMBDA { store_lanes(dst.plane(k, x)(j), v, first, last); });
  };
  std::int64_t x = to_boundary<N>(dst.plane(0, 0)(0));
  if (x > 0) part(0, 0, static_cast<int>(x));
  for (; x + N <= n; x += N) {
    form.template apply<N, JY, JZ>(ahead, x,
                                   [&](int j, int k, V v) HALOSCOPE_LAMBDA { store_stream(dst.plane(k, x)(j), v); });
  }
  if (x < n) part(n - N, N - static_cast<int>(n - x), N);
}

#if defined(__AVX512F__)
/// As tile_stream for rows that lie differently: each store joins the end of the last result to the start of this one.
template <int N, int JY, int JZ, class Form, class Source, class Target>
HALOSCOPE_INLINE void tile_shifted(const Form& form, const Source& src, const Target& dst, std::int64_t n) {
  using T = typename Form::Real;
  using V = Vec<T, N>;
  V last[JZ][JY];
  Join<T> join[JZ][JY];
  const auto& ahead = fetched_ahead<Form, JY>(src);
  fetch_row_ends<N, JY, JZ>(dst, n);
  form.template apply<N, JY, JZ>(src, 0, [&](int j, int k, V v) HALOSCOPE_LAMBDA {
    T* p = dst.plane(k, 0)(j);
    join[k][j] = Join<T>::at(to_boundary<N>(p));
    store_lanes(p, v, 0, to_boundary<N>(p));
    last[k][j] = v;
  });
  std::int64_t x = N;
  for (; x + N <= n; x += N) {
    form.template apply<N, JY, JZ>(ahead, x, [&](int j, int k, V v) HALOSCOPE_LAMBDA {
      store_stream(vector_before<N>(dst.plane(k, x)(j)), join[k][j](last[k][j], v));
      last[k][j] = v;
    });
  }
  each_row<JY, JZ>(dst, x - N, [&](int j, int k, T* p) { store_lanes(p, last[k][j], to_boundary<N>(p), N); });
  if (x == n) return;
  form.template apply<N, JY, JZ>(src, n - N, [&](int j, int k, V v) HALOSCOPE_LAMBDA {
    store_lanes(dst.plane(k, n - N)(j), v, N - static_cast<int>(n - x), N);
  });
}
#endif

/// Not inlined: one copy of each tile loop per form, shape and store. A form that gathers something over its points
/// hands it over in finish().
template <Store S, int N, int JY, int JZ, class Form, class Source, class Target>
[[gnu::noinline]] void tile(const Form& form, Source src, Target dst, std::int64_t n) {
  const Form local = form;  // stores through dst cannot touch it, so the weights stay in registers
  if constexpr (S == Store::plain) tile_plain<N, JY, JZ>(local, src, dst, n);
  if constexpr (S == Store::stream) tile_stream<N, JY, JZ>(local, src, dst, n);
#if defined(__AVX512F__)
  if constexpr (S == Store::shifted) tile_shifted<N, JY, JZ>(local, src, dst, n);
#endif
  if constexpr (requires { local.finish(); }) local.finish();
}

/// The form for the points x columns and y rows further, where that makes a difference.
template <class Form>
HALOSCOPE_INLINE decltype(auto) form_at(const Form& form, [[maybe_unused]] std::int64_t x,
                                        [[maybe_unused]] std::int64_t y) {
  if constexpr (requires { form.moved(x, y); })
    return form.moved(x, y);
  else
    return (form);
}

/// JZ planes of a box: tiles of JY rows, then of JY/2, ... 1 for the rows left over.
template <Store S, int N, int JY, int JZ, class Form, class T>
void row_tiles(const Form& form, Strided<const T> src, Strided<T> dst, std::int64_t n, std::int64_t rows) {
  std::int64_t y = 0;
  for (; y + JY <= rows; y += JY) tile<S, N, JY, JZ>(form_at(form, 0, y), src.moved(0, y, 0), dst.moved(0, y, 0), n);
  if constexpr (JY > 1) {
    if (y == rows) return;
    row_tiles<S, N, JY / 2, JZ>(form_at(form, 0, y), src.moved(0, y, 0), dst.moved(0, y, 0), n, rows - y);
  }
}

struct Extent {
  std::int64_t x, y, z;
};

template <Store S, int N, int JZ, class Form, class T>
void plane_tiles(const Form& form, Strided<const T> src, Strided<T> dst, Extent extent) {
  for (; extent.z >= JZ; extent.z -= JZ) {
    row_tiles<S, N, Form::rows, JZ>(form, src, dst, extent.x, extent.y);
    src = src.moved(0, 0, JZ);
    dst = dst.moved(0, 0, JZ);
  }
  if constexpr (JZ > 1) {
    if (extent.z > 0) plane_tiles<S, N, JZ / 2>(form, src, dst, extent);
  }
}

/// The largest piece of a box whose rows and planes are still in the second-level cache when a tile reads them again.
template <class Form>
Extent cache_block(const Extent& extent) {
  constexpr std::int64_t size = sizeof(typename Form::Real);
  constexpr std::int64_t cache_bytes = 1 << 20, longest_row = cache_bytes / 8 / size;
  Extent block = extent;
  if (block.x > longest_row) block.x = longest_row;
  if (extent.z > 1) {
    const std::int64_t fit = cache_bytes / (size * block.x * (Form::planes + 2));
    const std::int64_t rows = fit < 8 ? 8 : fit / Form::rows * Form::rows;
    if (rows < block.y) block.y = rows;
  }
  return block;
}

template <Store S, int N, class Form, class T>
void blocks(const Form& form, const Strided<const T>& src, const Strided<T>& dst, const Extent& extent) {
  const Extent block = cache_block<Form>(extent);
  for (std::int64_t y = 0; y < extent.y; y += block.y) {
    const std::int64_t rows = extent.y - y < block.y ? extent.y - y : block.y;
    for (std::int64_t x = 0, length; x < extent.x; x += length) {
      // A last piece shorter than a vector would be slow: it joins the piece before.
      length = extent.x - x < 2 * block.x ? extent.x - x : block.x;
      plane_tiles<S, N, Form::planes>(form_at(form, x, y), src.moved(x, y, 0), dst.moved(x, y, 0),
                                      {length, rows, extent.z});
    }
  }
}

/// Vectors of N lanes, or of the widest that a box narrower than N cells holds.
template <int N, class Form, class T>
void sweep_narrow(const Form& form, Strided<const T> src, Strided<T> dst, const Extent& extent) {
  if (extent.x >= N) return blocks<Store::plain, N>(form, src, dst, extent);
  if constexpr (N > 1) sweep_narrow<N / 2>(form, src, dst, extent);
}

template <class Form>
Form load_form(const double* weights) {
  Form form;
  for (int i = 0; i < Form::weights; ++i) form.w[i] = static_cast<typename Form::Real>(weights[i]);
  return form;
}

/// One step of a form on the region of `args`.
template <class Form>
void sweep_form(const Form& form, const KernelArgs& args) {
  using T = typename Form::Real;
  constexpr int N = full_lanes<T>;
  const Bounds b(args.region);
  if (b.empty()) return;
  const std::int64_t first = b.lo[0] + b.lo[1] * args.row + b.lo[2] * args.plane;
  const Extent extent{b.hi[0] - b.lo[0], b.hi[1] - b.lo[1], b.hi[2] - b.lo[2]};
  const Strided<const T> src{static_cast<const T*>(args.in) + first, args.row, args.plane};
  const Strided<T> dst{static_cast<T*>(args.out) + first, args.row, args.plane};

  if (!can_stream || !args.stream || extent.x < 4 * N) return sweep_narrow<N>(form, src, dst, extent);
  if ((Form::rows == 1 || args.row % N == 0) && (Form::planes == 1 || args.plane % N == 0)) {
    blocks<Store::stream, N>(form, src, dst, extent);
  } else if constexpr (can_shift) {
    blocks<Store::shifted, N>(form, src, dst, extent);
  } else {
    return sweep_narrow<N>(form, src, dst, extent);
  }
  stream_fence();
}

/// Kernel::sweep.
template <class Form>
void sweep(const KernelArgs& args) {
  sweep_form(load_form<Form>(args.weights), args);
}

}  // namespace haloscope::HALOSCOPE_ISA
