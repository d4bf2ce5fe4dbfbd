// Launches of the kernels of a form. Included once per back end, after its launch():
//   template <class Body> void launch(Stream&, int blocks, int threads, std::size_t shared_bytes, Body);
//   template <class Body> void launch_resident(Stream&, int blocks, int threads, Body);  // all blocks concurrently
//   template <class Body> int most_resident(int threads);                                // ... the max number of them
//
// A form defines a stencil layer by layer of the last dimension, with the operations of a point in the order that
// defines its bits (kernels/kernel.hpp): a layer's part of a sum does not depend on which thread adds the others.
//
// Every form: `sum` plus the part of layer K (-1, 0, +1) in a point; K = -1 begins the sum. at(i, j) is the cell i
// further in x (and, in three dimensions, j further in y) of that layer, for the (i, j) that reads() has. `ahead`:
// layers that a thread can hold in registers while a thousand threads still fit. `fused`: most time steps that one
// launch fuses, 1 where a stencil reads too much for that. `rows`: of cells, that a thread sweeps in one pass.
#pragma once

#include <algorithm>
#include <type_traits>

#include "haloscope/device/copy_kernel.hpp"
#include "haloscope/device/face_kernel.hpp"
#include "haloscope/device/sweep_kernels.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

inline void launch_copies(Stream& stream, const CopyLaunch& c) {
  if (c.count == 0) return;
  if (c.stores)
    launch(stream, c.count, StoreBlocks::threads, 0, StoreBlocks{c.pieces});
  else
    launch(stream, c.count, CopyBlocks::threads, 0, CopyBlocks{c.pieces});
}

template <class T>
int blocks_of(const Geometry<T>& g) {
  return g.tiles_x * g.tiles_y * g.tiles_l;
}

template <class Sweep, class Form>
void launch_plain(Stream& stream, const SweepLaunch& s) {
  const auto g = geometry<Form>(s, Sweep::usual);
  std::size_t shared = 0;
  if constexpr (requires { Sweep::shared_bytes(g); }) shared = Sweep::shared_bytes(g);
  if (!s.region.empty()) launch(stream, blocks_of(g), g.sx * g.sy, shared, Sweep{weighted<Form>(s), g});
}

/// The sweep of several cells a thread.
template <class Form>
using WideOf = std::conditional_t<Form::dims == 2, FlatSweep<Form>, WideSweep<Form>>;

/// True if it can run the sweep, and each of its threads has more than a cell or two.
template <class Form>
bool is_wide(const SweepLaunch& s) {
  using Sweep = WideOf<Form>;
  constexpr auto pack = sizeof(typename Form::Real) * Sweep::width;
  const auto strides = static_cast<std::uint64_t>(s.row) | static_cast<std::uint64_t>(Form::dims == 3 ? s.plane : 0);
  const auto apart = reinterpret_cast<std::uintptr_t>(s.in) - reinterpret_cast<std::uintptr_t>(s.out);
  return s.wrap == Index{0, 0, 0} && strides % Sweep::width == 0 && apart % pack == 0 &&
         s.region.extent(0) >= 2 * Sweep::width && (Form::dims == 2 || s.region.extent(1) >= Sweep::rows);
}

/// Blocks of the default shape, of fewer layers where there would be too few threads to keep a large GPU busy.
template <class Form>
auto wide_geometry(const SweepLaunch& s) {
  using Sweep = WideSweep<Form>;
  constexpr std::int64_t many_threads = 1 << 17;
  constexpr int min_layers = 4;
  BlockShape usual = Sweep::usual;
  for (;; usual.layers /= 2) {
    const auto g = geometry<Form>(s, usual, 1, Sweep::width, Sweep::rows);
    const auto threads = std::int64_t{blocks_of(g)} * g.sx * g.sy;
    if (s.shape.layers > 0 || usual.layers <= min_layers || threads >= many_threads) return g;
  }
}

template <class Form>
void launch_wide(Stream& stream, const SweepLaunch& s) {
  using Sweep = WideOf<Form>;
  if constexpr (Form::dims == 2) {
    const auto g = geometry<Form>(s, Sweep::usual, 1, Sweep::width);
    const int deep = std::clamp(g.sl / Sweep::rows, 1, std::max(1, Sweep::many_threads / g.sx));
    launch(stream, blocks_of(g), g.sx * deep, 0, Sweep{weighted<Form>(s), g, deep});
  } else {
    const auto g = wide_geometry<Form>(s);
    launch(stream, blocks_of(g), g.sx * g.sy, 0, Sweep{weighted<Form>(s), g});
  }
}

/// Most sweeps wrap nothing around; a kernel that cannot wrap saves a good part of its instructions.
template <class Form>
void launch_stream(Stream& stream, const SweepLaunch& s) {
  if (is_wide<Form>(s)) return launch_wide<Form>(stream, s);
  if (s.wrap == Index{0, 0, 0}) return launch_plain<StreamSweep<Form, false>, Form>(stream, s);
  launch_plain<StreamSweep<Form, true>, Form>(stream, s);
}

/// Few block shapes are so small that two cells a thread do not stage a buffer: each thread of a block has at most
/// three in each dimension.
template <class Form>
void launch_shared(Stream& stream, const SweepLaunch& s) {
  using Sweep = SharedSweep<Form>;
  const auto g = geometry<Form>(s, Sweep::usual);
  if (Sweep::cells(g) <= 2 * g.sx * g.sy) return launch_plain<Sweep, Form>(stream, s);
  launch_plain<SharedSweep<Form, Form::dims == 2 ? 3 : 9>, Form>(stream, s);
}

template <class Form, int Levels = Form::fused>
void launch_fused(Stream& stream, const SweepLaunch& s) {
  if constexpr (Levels > 1)
    if (s.levels < Levels) return launch_fused<Form, Levels - 1>(stream, s);
  using Sweep = FusedSweep<Form, Levels>;
  const auto g = geometry<Form>(s, Sweep::usual, Form::fused);
  if (!s.region.empty()) launch(stream, blocks_of(g), g.sx * g.sy, Sweep::shared_bytes(g), Sweep{weighted<Form>(s), g});
}

template <class Form>
void launch_faces(Stream& stream, const SweepLaunch& s) {
  const auto sweep = face_sweep(s, weighted<Form>(s));
  const std::int32_t cells = narrow(std::int64_t{sweep.region.cells} + sweep.twin.cells);
  if (cells > 0) launch(stream, (cells + sweep.threads - 1) / sweep.threads, sweep.threads, 0, sweep);
}

template <class Form>
void add_form(Kernels& kernels, const char* form, const char* real) {
  kernels.sweeps.push_back({form, real, "stream", launch_stream<Form>});
  kernels.sweeps.push_back({form, real, "shared", launch_shared<Form>});
  kernels.sweeps.push_back({form, real, "naive", launch_plain<NaiveSweep<Form>, Form>});
  if constexpr (Form::fused > 1) kernels.sweeps.push_back({form, real, "fused", launch_fused<Form>});
  kernels.faces.push_back({form, real, "", launch_faces<Form>});
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
