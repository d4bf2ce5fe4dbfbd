// The remap of hydro3d part by part: each part covers the whole region and leaves its results in arrays of that size
// for the next part; updated values are copied last (Davis 2017, section 6.2.2, variant C).
// Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include "davis2017/app/hydro3d/remap.hpp"

namespace haloscope::HALOSCOPE_ISA::hydro {

/// Arrays of a box and one point around it, one after the other.
class Arrays {
 public:
  HALOSCOPE_INLINE Arrays(void* memory, const Bounds& box)
      : origin_(static_cast<double*>(memory)),
        row_(box.hi[0] - box.lo[0] + 2),
        plane_(row_ * (box.hi[1] - box.lo[1] + 2)),
        size_(plane_ * (box.hi[2] - box.lo[2] + 2)) {
    origin_ += (1 - box.lo[0]) + (1 - box.lo[1]) * row_ + (1 - box.lo[2]) * plane_;
  }
  HALOSCOPE_INLINE double* at(int array, std::int64_t x, std::int64_t y, std::int64_t z) const {
    return origin_ + array * size_ + x + y * row_ + z * plane_;
  }
  HALOSCOPE_INLINE std::int64_t stride(int d) const { return d == 0 ? 1 : d == 1 ? row_ : plane_; }

 private:
  double* origin_;
  std::int64_t row_, plane_, size_;
};

/// Returns a box with further layers in one dimension.
HALOSCOPE_INLINE Bounds grown(const Box& box, int d, std::int64_t low, std::int64_t high) {
  Bounds more(box);
  more.lo[d] -= low;
  more.hi[d] += high;
  return more;
}

/// Runs the last part: copies arrays, `first` and following, to the fields of the remap's results.
template <class Way, class Remap>
HALOSCOPE_INLINE void copy_from(const Arrays& arrays, int first, const Box& box, const Remap& remap) {
  each_row(box, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    double* to[Remap::updated];
    remap.targets(x0, y, z, to);
    for (int k = 0; k < Remap::updated; ++k) {
      const double* from = arrays.at(first + k, x0, y, z);
      Way::along(n, [&](auto lanes, std::int64_t x)
                        HALOSCOPE_LAMBDA { load<decltype(lanes)::count>(from + x).store(to[k] + x); });
    }
  });
}

template <class Remap>
HALOSCOPE_INLINE void rows_of(const Arrays& arrays, int first, std::int64_t x, std::int64_t y, std::int64_t z,
                              double** to) {
  for (int k = 0; k < Remap::updated; ++k) to[k] = arrays.at(first + k, x, y, z);
}

template <class Way>
HALOSCOPE_KERNEL void remap_cells_in_arrays(const KernelArgs& args, Turn turn) {
  using Remap = CellRemap<Way>;
  const Remap remap(args, turn);
  const Arrays arrays(args.scratch, Bounds(args.region));
  const int d = turn.d;
  const std::int64_t end = remap.region().hi[d];
  const auto faces = [&](std::int64_t x, std::int64_t y, std::int64_t z) HALOSCOPE_LAMBDA {
    return FaceRow{arrays.at(0, x, y, z), arrays.at(1, x, y, z), arrays.at(2, x, y, z), remap.volumes(x, y, z)};
  };
  each_row(grown(args.region, d, 0, 1), [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const bool beyond = d == 0 || (d == 1 ? y : z) == end;  // the last face, or row of faces, may be another part's
    const std::int64_t owned = remap.has_end() || !beyond ? n : d == 0 ? n - 1 : 0;
    FaceRow row = faces(x0, y, z);
    remap.flow(x0, y, z, n, owned, row);
  });
  constexpr int fluxes = 3;
  each_row(args.region, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    double* to[Remap::updated];
    rows_of<Remap>(arrays, fluxes, x0, y, z, to);
    remap.update(x0, y, z, n, faces(x0, y, z), faces(x0 + (d == 0), y + (d == 1), z + (d == 2)), to);
  });
  copy_from<Way>(arrays, fluxes, args.region, remap);
}

template <class Way>
HALOSCOPE_KERNEL void remap_nodes_in_arrays(const KernelArgs& args, Turn turn) {
  using Remap = NodeRemap<Way>;
  const Remap remap(args, turn);
  const Arrays arrays(args.scratch, Bounds(args.points));
  const int d = turn.d;
  const auto nodes = [&](std::int64_t x, std::int64_t y, std::int64_t z) HALOSCOPE_LAMBDA {
    NodeFlow row;
    row.masses = arrays.at(0, x, y, z);
    for (int k = 0; k < NodeFlow::count; ++k) row.of[k] = arrays.at(1 + k, x, y, z);
    return row;
  };
  each_row(grown(args.points, d, 1, 1), [&](auto x0, auto y, auto z, std::int64_t n)
                                            HALOSCOPE_LAMBDA { remap.weigh(x0, y, z, n, nodes(x0, y, z).masses); });
  each_row(grown(args.points, d, 0, 1), [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const NodeFlow row = nodes(x0, y, z);
    remap.flow(x0, y, z, n, row.masses - arrays.stride(d), row);
  });
  constexpr int flows = 1 + NodeFlow::count;
  each_row(args.points, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    double* to[Remap::updated];
    rows_of<Remap>(arrays, flows, x0, y, z, to);
    remap.update(x0, y, z, n, nodes(x0, y, z), nodes(x0 + (d == 0), y + (d == 1), z + (d == 2)), to);
  });
  copy_from<Way>(arrays, flows, args.points, remap);
  static_assert(flows + Remap::updated == kept_arrays);
}

}  // namespace haloscope::HALOSCOPE_ISA::hydro
