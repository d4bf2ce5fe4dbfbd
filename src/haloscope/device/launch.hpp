// How the kernels of a form are launched. Included once per back end, after its launch():
//   template <class Body> void launch(Stream&, int blocks, int threads, std::size_t shared_bytes, Body);
//   template <class Body> void launch_resident(Stream&, int blocks, int threads, Body);  // all blocks at once
//   template <class Body> int most_resident(int threads);                                // ... of which so many can be
#pragma once

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

/// Most sweeps wrap nothing around; a kernel that cannot wrap saves a good part of its instructions.
template <class Form>
void launch_stream(Stream& stream, const SweepLaunch& s) {
  if (s.wrap == Index{0, 0, 0}) return launch_plain<StreamSweep<Form, false>, Form>(stream, s);
  launch_plain<StreamSweep<Form, true>, Form>(stream, s);
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
  const int cells = sweep.region.cells + sweep.twin.cells;
  if (cells > 0) launch(stream, (cells + sweep.threads - 1) / sweep.threads, sweep.threads, 0, sweep);
}

template <class Form>
void add_form(Kernels& kernels, const char* form, const char* real) {
  kernels.sweeps.push_back({form, real, "stream", launch_stream<Form>});
  kernels.sweeps.push_back({form, real, "shared", launch_plain<SharedSweep<Form>, Form>});
  kernels.sweeps.push_back({form, real, "naive", launch_plain<NaiveSweep<Form>, Form>});
  if constexpr (Form::fused > 1) kernels.sweeps.push_back({form, real, "fused", launch_fused<Form>});
  kernels.faces.push_back({form, real, "", launch_faces<Form>});
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
