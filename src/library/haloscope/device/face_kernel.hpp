// Boundary faces on a device: kernels read halos where messages have arrived, and write results both to the field and
// to the buffers of the next exchange (White & Dongarra 2011, IV-F).
#pragma once

#include "haloscope/device/geometry.hpp"
#include "haloscope/device/team.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

/// Number of an element, counted from the begin of a table entry's data.
HALOSCOPE_FUNCTION std::int64_t offset(const FaceTable::Place& place, std::int32_t x, std::int32_t y, std::int32_t z) {
  return place.first + x + y * place.row + z * place.plane;
}

/// The cells around one, `k` layers further in the last dimension.
template <class Form>
struct Surroundings {
  using T = typename Form::Real;
  const FaceTable& table;
  const T* field;
  std::int64_t row, plane;
  std::int32_t x, y, z;

  HALOSCOPE_FUNCTION static int side(std::int32_t p, std::int32_t extent) { return p < 0 ? 0 : p < extent ? 1 : 2; }
  HALOSCOPE_FUNCTION T operator()(int i, int j, int k) const {
    const std::int32_t px = x + i, py = y + (Form::dims == 2 ? k : j), pz = z + (Form::dims == 2 ? 0 : k);
    const int from = side(px, table.cells[0]) + 3 * side(py, table.cells[1]) + 9 * side(pz, table.cells[2]);
    const FaceTable::Place& halo = table.halo[from];
    if (halo.data == nullptr) return load(field + (px + py * row + pz * plane));
    return load(static_cast<const T*>(halo.data) + offset(halo, px, py, pz));
  }
};

/// A thread per cell of two boxes.
template <class Form>
struct FaceSweep {
  using T = typename Form::Real;
  static constexpr int threads = 128;
  struct Part {
    std::int32_t lo[3], extent[3], cells;
  };
  Form form;
  const T* in;
  T* out;
  std::int64_t row, plane;
  Part region, twin;
  const FaceTable *arrived, *leaving;

  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    team.each([&](int thread) {
      const std::int32_t n = team.block() * threads + thread;
      if (n < region.cells) return sweep(region, n);
      if (n - region.cells < twin.cells) sweep(twin, n - region.cells);
    });
  }

  HALOSCOPE_FUNCTION void sweep(const Part& part, std::int32_t n) const {
    const std::int32_t line = n / part.extent[0], layer = line / part.extent[1];
    const std::int32_t x = part.lo[0] + n - line * part.extent[0];
    const std::int32_t y = part.lo[1] + line - layer * part.extent[1], z = part.lo[2] + layer;
    const Surroundings<Form> around{*arrived, in, row, plane, x, y, z};
    T value = form.template layer<-1>([&](int i, int j) { return around(i, j, -1); }, T{});
    value = form.template layer<0>([&](int i, int j) { return around(i, j, 0); }, value);
    value = form.template layer<1>([&](int i, int j) { return around(i, j, 1); }, value);
    out[x + y * row + z * plane] = value;
    for (int m = 0; m < leaving->sent_count; ++m) {
      const FaceTable::Sent& sent = leaving->sent[m];
      if (x >= sent.lo[0] && x < sent.hi[0] && y >= sent.lo[1] && y < sent.hi[1] && z >= sent.lo[2] && z < sent.hi[2])
        static_cast<T*>(sent.place.data)[offset(sent.place, x, y, z)] = value;
    }
  }
};

/// @throws UsageError for boxes of more cells than a launch has threads.
template <class Form>
FaceSweep<Form> face_sweep(const SweepLaunch& s, const Form& form) {
  using Sweep = FaceSweep<Form>;
  using T = typename Form::Real;
  const auto part = [](const Box& box) {
    typename Sweep::Part p{};
    for (int d = 0; d < 3; ++d) p.lo[d] = narrow(box.lo[d]), p.extent[d] = narrow(box.extent(d));
    p.cells = narrow(box.volume());
    return p;
  };
  return {form,
          static_cast<const T*>(s.in),
          static_cast<T*>(s.out),
          s.row,
          s.plane,
          part(s.region),
          part(s.twin),
          s.arrived,
          s.leaving};
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
