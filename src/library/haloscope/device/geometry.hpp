// Geometry of sweeps: blocks of threads that a region is cut into, and the neighbours of a thread.
#pragma once

#include <cstdlib>
#include <limits>

#include "haloscope/device/kernels.hpp"
#include "haloscope/device/team.hpp"
#include "haloscope/error.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

/// A sweep as the kernels see it: cells of a layer are numbered by x and y (y is 0 in two dimensions), layers by the
/// last dimension.
template <class T>
struct Geometry {
  const T* in;
  T* out;
  std::int64_t row, layer;                 // elements between neighbours in y and in the last dimension
  std::int32_t x0, x1, y0, y1, l0, l1;     // cells written
  std::int32_t wrap_x, wrap_y, wrap_l;     // 0: neighbours beyond the edge lie in the halo
  std::int32_t sx, sy, sl;                 // threads of a block in x and y, layers it passes through
  std::int32_t margin, margin_y;           // threads at each side of a block that write no cell
  std::int32_t tiles_x, tiles_y, tiles_l;  // blocks
  std::int32_t lead;                       // cells before the region that the first thread of a row has

  struct Cell {
    std::int32_t x, y, begin, end;  // begin and end: layers
  };

  /// The cell of a thread in its block's first layer, of several the first; it may lie outside the region.
  template <int width = 1, int rows = 1>
  HALOSCOPE_FUNCTION Cell cell(int block, int thread) const {
    const std::int32_t rest = block / tiles_x, bl = rest / tiles_y;
    const std::int32_t bx = block - rest * tiles_x, by = rest - bl * tiles_y;
    Cell c;
    c.x = x0 - lead + (bx * (sx - 2 * margin) - margin + thread % sx) * width;
    c.y = y0 + (by * (sy - 2 * margin_y) - margin_y + thread / sx) * rows;
    c.begin = l0 + bl * sl;
    c.end = l1 - c.begin > sl ? c.begin + sl : l1;
    return c;
  }
  HALOSCOPE_FUNCTION bool written(const Cell& c) const { return c.x >= x0 && c.x < x1 && c.y >= y0 && c.y < y1; }
  /// A position of a dimension, wrapped once around where it wraps.
  HALOSCOPE_FUNCTION static std::int32_t wrapped(std::int32_t p, std::int32_t extent) {
    if (extent == 0) return p;
    return p < 0 ? p + extent : p >= extent ? p - extent : p;
  }
  HALOSCOPE_FUNCTION const T* layer_of(std::int32_t l) const { return in + wrapped(l, wrap_l) * layer; }
  HALOSCOPE_FUNCTION std::int64_t place(std::int32_t x, std::int32_t y) const {
    return wrapped(x, wrap_x) + wrapped(y, wrap_y) * row;
  }
};

/// A layer, and the following ones in turn.
template <class T>
struct LayerWalk {
  std::int32_t number;
  const T* at;

  HALOSCOPE_FUNCTION LayerWalk(const Geometry<T>& g, std::int32_t l)
      : number(g.wrapped(l, g.wrap_l)), at(g.in + number * g.layer) {}
  HALOSCOPE_FUNCTION void go_on(const Geometry<T>& g) {
    ++number;
    if (number == g.wrap_l) number = 0;
    at = number == 0 ? g.in : at + g.layer;
  }
};

/// Reads a cell's neighbours in one layer straight from memory: the cache serves the data that neighbouring threads
/// also read. Without wrapping, the distances from the cell to all of them are constants but for the row length.
template <class T, bool Wraps = true>
struct Column {
  std::int64_t own, x[3], y[3];  // offsets of the cell in its layer, and from there of the neighbours at -1, 0, +1
  const T* here;                 // the cell

  HALOSCOPE_FUNCTION Column(const Geometry<T>& g, std::int32_t cx, std::int32_t cy)
      : own(cx + cy * g.row), here(nullptr) {
    for (int i = -1; i <= 1; ++i) x[i + 1] = Wraps ? g.wrapped(cx + i, g.wrap_x) - cx : i;
    for (int j = -1; j <= 1; ++j) y[j + 1] = (Wraps ? g.wrapped(cy + j, g.wrap_y) - cy : j) * g.row;
  }
  HALOSCOPE_FUNCTION void go(const T* layer) { here = layer + own; }
  HALOSCOPE_FUNCTION void step(std::int64_t elements) { here += elements; }
  HALOSCOPE_FUNCTION T operator()(int i, int j) const { return load(here + (x[i + 1] + y[j + 1])); }
};

/// @throws UsageError for a position that does not fit the integers that kernels count with.
inline std::int32_t narrow(std::int64_t position) {
  if (std::abs(position) > (1 << 30)) throw UsageError("a device sweeps at most 2^30 cells in a dimension");
  return static_cast<std::int32_t>(position);
}

/// @param levels  max time steps that the kernel fuses
/// @param width, rows  cells of a thread in x and y; the first ones begin at a multiple of their bytes
template <class Form>
Geometry<typename Form::Real> geometry(const SweepLaunch& s, const BlockShape& usual, int levels = 1, int width = 1,
                                       int rows = 1) {
  using T = typename Form::Real;
  constexpr bool flat = Form::dims == 2;
  const int last = Form::dims - 1, margin = levels > 1 ? s.levels : 0;
  const BlockShape shape = shape_of(s, usual, Form::dims, levels);
  Geometry<T> g{};
  g.in = static_cast<const T*>(s.in);
  g.out = static_cast<T*>(s.out);
  g.x0 = narrow(s.region.lo[0]), g.x1 = narrow(s.region.hi[0]);
  g.y0 = flat ? 0 : narrow(s.region.lo[1]), g.y1 = flat ? 1 : narrow(s.region.hi[1]);
  g.l0 = narrow(s.region.lo[last]), g.l1 = narrow(s.region.hi[last]);
  g.row = flat ? 0 : s.row, g.layer = flat ? s.row : s.plane;
  g.wrap_x = narrow(s.wrap[0]), g.wrap_y = flat ? 0 : narrow(s.wrap[1]), g.wrap_l = narrow(s.wrap[last]);
  g.sx = shape.x, g.sy = shape.y, g.sl = shape.layers;
  g.margin = margin, g.margin_y = flat ? 0 : margin;
  const auto bytes = reinterpret_cast<std::uintptr_t>(g.in + g.x0);
  g.lead = static_cast<std::int32_t>(bytes / sizeof(T) % static_cast<unsigned>(width));
  double blocks = 1;
  const auto tiles = [&](std::int64_t cells, std::int64_t of) {
    blocks *= static_cast<double>((cells + of - 1) / of);
    return static_cast<std::int32_t>((cells + of - 1) / of);
  };
  g.tiles_x = tiles(g.lead + s.region.extent(0), std::int64_t{width} * (g.sx - 2 * margin));
  g.tiles_y = tiles(flat ? 1 : s.region.extent(1), std::int64_t{rows} * (g.sy - 2 * g.margin_y));
  g.tiles_l = tiles(s.region.extent(last), g.sl);
  if (blocks > std::numeric_limits<std::int32_t>::max())
    throw UsageError("the block shape cuts the sweep into more than 2^31 - 1 blocks; take larger blocks");
  return g;
}

/// The form with the weights of a launch, rounded to its type as the CPU's kernels round them.
template <class Form>
Form weighted(const SweepLaunch& s) {
  Form form{};
  for (int i = 0; i < Form::weights; ++i) form.w[i] = static_cast<typename Form::Real>(s.weights[i]);
  return form;
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
