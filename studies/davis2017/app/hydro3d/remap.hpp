// Kernels of hydro3d's remap: the volumes swept by faces carry mass, energy, fractions and momentum, one dimension at a
// time. Donor cells and nodes have limited slopes (van Leer 1977); slopes of nodes are of fourth order where smooth
// (Colella & Woodward 1984).
// Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include "davis2017/app/hydro3d/rows.hpp"

namespace haloscope::HALOSCOPE_ISA::hydro {

/// The fields of a set that the remap reads or writes.
struct Set {
  int rho, e, share, size, v;  // accelerations follow velocities
};
HALOSCOPE_INLINE Set set_of(bool other) {
  return other ? Set{other_density, other_energy, other_fraction, other_volume, other_velocity}
               : Set{density, energy, fraction, volume, velocity};
}

/// The work of a kernel of the remap: the dimension, and whether it reads the other set and writes the first one.
struct Turn {
  int d;
  bool back;
};

HALOSCOPE_INLINE void fetch([[maybe_unused]] const double* from) {
#if HALOSCOPE_SIMD
  __builtin_prefetch(from);
#endif
}

template <int N>
HALOSCOPE_INLINE Vec<double, N> with_sign(Vec<double, N> sign, Vec<double, N> size) {
  return where_positive(sign, size, splat<N>(0) - size);
}

/// Returns a slope from upwind to downwind: no steeper than twice either difference, 0 at an extremum.
template <int N>
HALOSCOPE_INLINE Vec<double, N> limited(Vec<double, N> up, Vec<double, N> here, Vec<double, N> down,
                                        Vec<double, N> central) {
  using V = Vec<double, N>;
  const V back = here - up, forward = down - here;
  const V most = splat<N>(2) * smaller_of(magnitude(back), magnitude(forward));
  const V wanted = larger_of(with_sign(back, central), splat<N>(0));
  return where_positive(back * forward, with_sign(back, smaller_of(wanted, most)), splat<N>(0));
}

/// The values around a face along the flow: two of the upwind side and one of the downwind side, or one more of each.
template <int N>
struct Upwind {
  Vec<double, N> up, here, down;
  HALOSCOPE_INLINE Upwind(Vec<double, N> flow, const double* right, std::int64_t s)
      : up(where_positive(flow, load<N>(right - 2 * s), load<N>(right + s))),
        here(where_positive(flow, load<N>(right - s), load<N>(right))),
        down(where_positive(flow, load<N>(right), load<N>(right - s))) {}
  HALOSCOPE_INLINE Vec<double, N> slope() const { return limited(up, here, down, splat<N>(0.5) * (down - up)); }
  HALOSCOPE_INLINE Vec<double, N> smooth_slope(Vec<double, N> flow, const double* right, std::int64_t s) const {
    const auto farther = where_positive(flow, load<N>(right - 3 * s), load<N>(right + 2 * s));
    const auto beyond = where_positive(flow, load<N>(right + s), load<N>(right - 2 * s));
    return limited(up, here, down, splat<N>(1.0 / 12) * (splat<N>(8) * (down - up) - (beyond - farther)));
  }
};

/// The flows through the faces of one row.
struct FaceRow {
  double *mass, *energy, *fraction, *volume;
  HALOSCOPE_INLINE FaceRow next() const { return {mass + 1, energy + 1, fraction + 1, volume + 1}; }
};

template <class Way>
class CellRemap {
 public:
  HALOSCOPE_INLINE CellRemap(const KernelArgs& args, Turn turn)
      : f_(args),
        weights_(args.weights),
        d_(turn.d),
        from_(set_of(turn.back)),
        to_(set_of(!turn.back)),
        points_(args.points),
        region_(args.region) {}

  /// Returns the volumes swept by faces, as a field.
  HALOSCOPE_INLINE double* volumes(std::int64_t x0, std::int64_t y, std::int64_t z) const {
    return f_.to(volume_flux + d_, x0, y, z);
  }

  /// Computes the flow through the lower faces of n cells, of which the rank writes the first `owned`. Without an
  /// earlier sweep over faces, it computes their volumes too.
  HALOSCOPE_INLINE void flow(std::int64_t x0, std::int64_t y, std::int64_t z, std::int64_t n, std::int64_t owned,
                             FaceRow& to) const {
    double* swept_field = volumes(x0, y, z);
    if constexpr (!Way::joins_faces) to.volume = swept_field;
    const SweptRow swept(f_, weights_, d_, x0, y, z);
    const double *rho = f_.from(from_.rho, x0, y, z), *e = f_.from(from_.e, x0, y, z);
    const double *share = f_.from(from_.share, x0, y, z), *size = f_.from(from_.size, x0, y, z);
    const std::int64_t s_rho = f_.stride(from_.rho, d_), s_e = f_.stride(from_.e, d_);
    const std::int64_t s_share = f_.stride(from_.share, d_), s_size = f_.stride(from_.size, d_);
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      using V = Vec<double, N>;
      if constexpr (Way::joins_faces) swept.at<N>(x).store(to.volume + x);
      if constexpr (Way::fetches)
        if (d_ > 0) {
          fetch(rho + x + 2 * s_rho), fetch(e + x + 2 * s_e), fetch(share + x + 2 * s_share), fetch(size + x + s_size);
          fetch(f_.from(displacement + d_, x0 + x, y, z) + f_.stride(displacement + d_, d_));
        }
      const V flow = load<N>(to.volume + x), one = splat<N>(1), half = splat<N>(0.5);
      const Upwind<N> of_rho(flow, rho + x, s_rho), of_e(flow, e + x, s_e), of_share(flow, share + x, s_share);
      const V from_volume = where_positive(flow, load<N>(size + x - s_size), load<N>(size + x));
      const V gone = magnitude(flow) / from_volume;
      const V mass = flow * (of_rho.here + half * (one - gone) * of_rho.slope());
      const V gone_mass = magnitude(mass) / (of_rho.here * from_volume);
      mass.store(to.mass + x);
      (mass * (of_e.here + half * (one - gone_mass) * of_e.slope())).store(to.energy + x);
      (mass * (of_share.here + half * (one - gone_mass) * of_share.slope())).store(to.fraction + x);
    });
    double* kept = f_.to(mass_flux + d_, x0, y, z);
    Way::along(owned, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      load<N>(to.mass + x).store(kept + x);
      if constexpr (Way::joins_faces) load<N>(to.volume + x).store(swept_field + x);
    });
  }

  static constexpr int updated = 4;  ///< fields
  /// Returns the targets of update(): the other set.
  HALOSCOPE_INLINE void targets(std::int64_t x0, std::int64_t y, std::int64_t z, double** to) const {
    const int fields[updated]{to_.rho, to_.e, to_.share, to_.size};
    for (int k = 0; k < updated; ++k) to[k] = f_.to(fields[k], x0, y, z);
  }
  HALOSCOPE_INLINE void update(std::int64_t x0, std::int64_t y, std::int64_t z, std::int64_t n, const FaceRow& low,
                               const FaceRow& high, double* const* to) const {
    const double *rho = f_.from(from_.rho, x0, y, z), *e = f_.from(from_.e, x0, y, z);
    const double *share = f_.from(from_.share, x0, y, z), *size = f_.from(from_.size, x0, y, z);
    double *new_rho = to[0], *new_e = to[1], *new_share = to[2], *new_size = to[3];
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      using V = Vec<double, N>;
      const V before = load<N>(rho + x) * load<N>(size + x);
      const V after = before - (load<N>(high.mass + x) - load<N>(low.mass + x));
      const V left = load<N>(size + x) - (load<N>(high.volume + x) - load<N>(low.volume + x));
      left.store(new_size + x);
      (after / left).store(new_rho + x);
      ((before * load<N>(e + x) - (load<N>(high.energy + x) - load<N>(low.energy + x))) / after).store(new_e + x);
      ((before * load<N>(share + x) - (load<N>(high.fraction + x) - load<N>(low.fraction + x))) / after)
          .store(new_share + x);
    });
  }

  HALOSCOPE_INLINE void update(std::int64_t x0, std::int64_t y, std::int64_t z, std::int64_t n, const FaceRow& low,
                               const FaceRow& high) const {
    double* to[updated];
    targets(x0, y, z, to);
    update(x0, y, z, n, low, high, to);
  }

  /// Returns true if this part writes the upper faces of the last cells.
  HALOSCOPE_INLINE bool has_end() const { return points_.hi[d_] > region_.hi[d_]; }
#if HALOSCOPE_SIMD
  HALOSCOPE_INLINE const Bounds& region() const { return region_; }
#else  // a copy, which stores cannot change: loops over it are unrolled
  HALOSCOPE_INLINE Bounds region() const { return region_; }
#endif

 private:
  const Fields f_;
  const double* weights_;
  const int d_;
  const Set from_, to_;
  const Bounds points_, region_;
};

/// Loop orders of a remap: by rows, x innermost; along y or z line by line along the remap's own dimension; or each
/// part of it over all rows before the next part, see arrays.hpp.
enum class Order { rows, lines, arrays };

/// Calls visit(x, t, n) for the parts of a remap along d: whole rows of an outer loop over the third dimension t, or
/// lines, in the order of the modelled code's variant A (y: z, x; z: x, y).
template <Order order, class Visit>
HALOSCOPE_INLINE void each_strip(int d, const Bounds& b, const Visit& visit) {
  const int across = d == 1 ? 2 : 1;
  if constexpr (order == Order::rows) {
    for (std::int64_t t = b.lo[across]; t < b.hi[across]; ++t) visit(b.lo[0], t, b.hi[0] - b.lo[0]);
  } else if (d == 1) {
    for (std::int64_t t = b.lo[across]; t < b.hi[across]; ++t)
      for (std::int64_t x = b.lo[0]; x < b.hi[0]; ++x) visit(x, t, 1);
  } else {
    for (std::int64_t x = b.lo[0]; x < b.hi[0]; ++x)
      for (std::int64_t t = b.lo[across]; t < b.hi[across]; ++t) visit(x, t, 1);
  }
}

/// Remaps cells in one dimension: each row of faces is computed once and kept until both its cells have used it.
template <class Way, Order order>
HALOSCOPE_KERNEL void remap_cells(const KernelArgs& args, Turn turn) {
  const CellRemap<Way> remap(args, turn);
  const int d = turn.d;
  const auto& b = remap.region();
  const std::int64_t n = b.hi[0] - b.lo[0], pitch = kept_pitch(n);
  auto* kept = static_cast<double*>(args.scratch);
  FaceRow low{kept, kept + pitch, kept + 2 * pitch, kept + 3 * pitch};
  FaceRow high{kept + 4 * pitch, kept + 5 * pitch, kept + 6 * pitch, kept + 7 * pitch};
  if (d == 0) {
    each_row(args.region, [&](auto x0, auto y, auto z, std::int64_t) HALOSCOPE_LAMBDA {
      remap.flow(x0, y, z, n + 1, n + remap.has_end(), low);
      remap.update(x0, y, z, n, low, low.next());
    });
  } else {
    each_strip<order>(d, b, [&](std::int64_t x, std::int64_t t, std::int64_t length) HALOSCOPE_LAMBDA {
      const auto row_of = [&](std::int64_t r) HALOSCOPE_LAMBDA { return d == 1 ? r : t; };
      const auto plane_of = [&](std::int64_t r) HALOSCOPE_LAMBDA { return d == 1 ? t : r; };
      HALOSCOPE_UNROLLED_ON_DEVICE
      for (std::int64_t r = b.lo[d]; r <= b.hi[d]; ++r) {
        remap.flow(x, row_of(r), plane_of(r), length, r < b.hi[d] || remap.has_end() ? length : 0, high);
        if (r > b.lo[d]) remap.update(x, row_of(r - 1), plane_of(r - 1), length, low, high);
        const FaceRow next = low;
        low = high;
        high = next;
      }
    });
  }
}

/// The flows between the nodes of one row and the nodes before them: each component times mass, and kinetic energy.
struct NodeFlow {
  static constexpr int components = 6, count = components + 1;
  double* masses;  ///< of the nodes themselves
  double* of[count];
  HALOSCOPE_INLINE NodeFlow next() const {
    NodeFlow flow = *this;
    for (double*& one : flow.of) ++one;
    return flow;
  }
};

template <class Way>
class NodeRemap {
 public:
  HALOSCOPE_INLINE NodeRemap(const KernelArgs& args, Turn turn)
      : f_(args), d_(turn.d), from_(set_of(turn.back)), to_(set_of(!turn.back)) {}

  HALOSCOPE_INLINE void weigh(std::int64_t x0, std::int64_t y, std::int64_t z, std::int64_t n, double* to) const {
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      fetch_next(x0 + x, y, z, from_.rho, from_.size, mass_flux + d_);
      mass_of<decltype(lanes)::count>(from_, x0 + x, y, z).store(to + x);
    });
  }

  /// Computes the flow between each of n nodes and the one before it in dimension d; `before`: masses of the latter.
  HALOSCOPE_INLINE void flow(std::int64_t x0, std::int64_t y, std::int64_t z, std::int64_t n, const double* before,
                             const NodeFlow& to) const {
    const CornerRow carried(f_, mass_flux + d_, x0 - 1, y - 1, z - 1);
    const double* v[6];
    std::int64_t s[6];
    for (int k = 0; k < 6; ++k) v[k] = f_.from(from_.v + k, x0, y, z), s[k] = f_.stride(from_.v + k, d_);
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      using V = Vec<double, N>;
      const V flow = splat<N>(0.125) * carried.at<N>(x).sum();
      const V gone = magnitude(flow) / where_positive(flow, load<N>(before + x), load<N>(to.masses + x));
      const V keep = splat<N>(0.5) * (splat<N>(1) - gone);
      V squares = splat<N>(0);
      HALOSCOPE_UNROLLED(6)
      for (int k = 0; k < 6; ++k) {
        if constexpr (Way::fetches)
          if (d_ > 0) fetch(v[k] + x + 3 * s[k]);
        const Upwind<N> of(flow, v[k] + x, s[k]);
        const V carried_value = of.here + keep * of.smooth_slope(flow, v[k] + x, s[k]);
        if (k < 3) squares = squares + carried_value * carried_value;
        (flow * carried_value).store(to.of[k] + x);
      }
      (splat<N>(0.5) * flow * squares).store(to.of[NodeFlow::components] + x);
    });
  }

  static constexpr int updated = NodeFlow::components + 1;  ///< fields
  /// Returns the targets of update(): the other set, and the lost energy.
  HALOSCOPE_INLINE void targets(std::int64_t x0, std::int64_t y, std::int64_t z, double** to) const {
    for (int k = 0; k < NodeFlow::components; ++k) to[k] = f_.to(to_.v + k, x0, y, z);
    to[NodeFlow::components] = f_.to(node_loss, x0, y, z);
  }
  HALOSCOPE_INLINE void update(std::int64_t x0, std::int64_t y, std::int64_t z, std::int64_t n, const NodeFlow& low,
                               const NodeFlow& high) const {
    double* to[updated];
    targets(x0, y, z, to);
    update(x0, y, z, n, low, high, to);
  }
  HALOSCOPE_INLINE void update(std::int64_t x0, std::int64_t y, std::int64_t z, std::int64_t n, const NodeFlow& low,
                               const NodeFlow& high, double* const* to) const {
    const double* v[6];
    double *next[6], *loss = to[NodeFlow::components];
    for (int k = 0; k < 6; ++k) v[k] = f_.from(from_.v + k, x0, y, z), next[k] = to[k];
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      using V = Vec<double, N>;
      fetch_next(x0 + x, y, z, to_.rho, to_.size, node_loss);
      for (int k = 0; k < 6; ++k) fetch_next(x0 + x, y, z, to_.v + k);
      const V before = load<N>(low.masses + x), after = mass_of<N>(to_, x0 + x, y, z);
      V squares_before = splat<N>(0), squares = squares_before;
      HALOSCOPE_UNROLLED(6)
      for (int k = 0; k < 6; ++k) {
        const V old = load<N>(v[k] + x);
        const V now = (before * old - (load<N>(high.of[k] + x) - load<N>(low.of[k] + x))) / after;
        if (k < 3) squares_before = squares_before + old * old, squares = squares + now * now;
        now.store(next[k] + x);
      }
      const V gone = load<N>(high.of[NodeFlow::components] + x) - load<N>(low.of[NodeFlow::components] + x);
      (splat<N>(0.5) * (before * squares_before - after * squares) - gone).store(loss + x);
    });
  }

 private:
  /// Prefetches fields at the same position of the next row.
  template <class... Field>
  HALOSCOPE_INLINE void fetch_next(std::int64_t x, std::int64_t y, std::int64_t z, Field... fields) const {
    if constexpr (Way::fetches)
      if (d_ > 0) (fetch(f_.from(fields, x, y, z) + f_.stride(fields, d_)), ...);
  }

  template <int N>
  HALOSCOPE_INLINE Vec<double, N> mass_of(const Set& of, std::int64_t x, std::int64_t y, std::int64_t z) const {
    Corners<N> cells = CornerRow(f_, of.rho, x - 1, y - 1, z - 1).template at<N>(0);
    const Corners<N> sizes = CornerRow(f_, of.size, x - 1, y - 1, z - 1).template at<N>(0);
    for (int i = 0; i < 8; ++i) cells.v[i] = cells.v[i] * sizes.v[i];
    return splat<N>(0.125) * cells.sum();
  }

  const Fields f_;
  const int d_;
  const Set from_, to_;
};

/// Remaps velocities and accelerations in one dimension, like remap_cells().
template <class Way, Order order>
HALOSCOPE_KERNEL void remap_nodes(const KernelArgs& args, Turn turn) {
  const NodeRemap<Way> remap(args, turn);
  const int d = turn.d;
  const Bounds b(args.points);
  const std::int64_t n = b.hi[0] - b.lo[0], pitch = kept_pitch(n);
  auto* kept = static_cast<double*>(args.scratch) + 8;
  NodeFlow low, high;
  for (NodeFlow* flow : {&low, &high}) {
    flow->masses = kept;
    for (int k = 0; k < NodeFlow::count; ++k) flow->of[k] = kept + (k + 1) * pitch;
    kept += (NodeFlow::count + 1) * pitch;
  }
  if (d == 0) {
    each_row(args.points, [&](auto x0, auto y, auto z, std::int64_t) HALOSCOPE_LAMBDA {
      remap.weigh(x0 - 1, y, z, n + 2, low.masses - 1);
      remap.flow(x0, y, z, n + 1, low.masses - 1, low);
      remap.update(x0, y, z, n, low, low.next());
    });
  } else {
    each_strip<order>(d, b, [&](std::int64_t x, std::int64_t t, std::int64_t length) HALOSCOPE_LAMBDA {
      const auto row_of = [&](std::int64_t r) HALOSCOPE_LAMBDA { return d == 1 ? r : t; };
      const auto plane_of = [&](std::int64_t r) HALOSCOPE_LAMBDA { return d == 1 ? t : r; };
      remap.weigh(x, row_of(b.lo[d] - 1), plane_of(b.lo[d] - 1), length, low.masses);
      HALOSCOPE_UNROLLED_ON_DEVICE
      for (std::int64_t r = b.lo[d]; r <= b.hi[d]; ++r) {
        remap.weigh(x, row_of(r), plane_of(r), length, high.masses);
        remap.flow(x, row_of(r), plane_of(r), length, low.masses, high);
        if (r > b.lo[d]) remap.update(x, row_of(r - 1), plane_of(r - 1), length, low, high);
        const NodeFlow next = low;
        low = high;
        high = next;
      }
    });
  }
}

/// Adds the kinetic energy that nodes have lost to the internal energy of the cells around them (DeBar 1974).
template <class Way>
HALOSCOPE_KERNEL void heat_cells(const KernelArgs& args, bool other) {
  const Fields f(args);
  const Set set = set_of(other);
  each_row(args.region, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const CornerRow loss(f, node_loss, x0, y, z);
    const double *rho = f.from(set.rho, x0, y, z), *size = f.from(set.size, x0, y, z);
    double* e = f.to(set.e, x0, y, z);
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      const auto gained = splat<N>(0.125) * loss.at<N>(x).sum();
      lanes.put(load<N>(e + x) + gained / (load<N>(rho + x) * load<N>(size + x)), e + x);
    });
  });
}

/// Puts cells back in their places: the other set becomes the first one.
template <class Way>
HALOSCOPE_KERNEL void return_cells(const KernelArgs& args) {
  const Fields f(args);
  const double whole = args.weights[cell_volume];
  each_row(args.region, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const double *rho = f.from(other_density, x0, y, z), *size = f.from(other_volume, x0, y, z);
    const double *e = f.from(other_energy, x0, y, z), *share = f.from(other_fraction, x0, y, z);
    double *to_rho = f.to(density, x0, y, z), *to_size = f.to(volume, x0, y, z);
    double *to_e = f.to(energy, x0, y, z), *to_share = f.to(fraction, x0, y, z);
    std::int32_t* of = f.to_integers(material, x0, y, z);
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      (load<N>(rho + x) * load<N>(size + x) / splat<N>(whole)).store(to_rho + x);
      splat<N>(whole).store(to_size + x);
      load<N>(e + x).store(to_e + x);
      load<N>(share + x).store(to_share + x);
      store(where_positive(load<N>(share + x) - splat<N>(0.5), splat<N>(1), splat<N>(0)), of + x);
    });
  });
}

template <class Way>
HALOSCOPE_KERNEL void return_nodes(const KernelArgs& args) {
  const Fields f(args);
  each_row(args.points, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    for (int k = 0; k < 6; ++k) {
      const double* from = f.from(other_velocity + k, x0, y, z);
      double* to = f.to(velocity + k, x0, y, z);
      Way::along(n, [&](auto lanes, std::int64_t x)
                        HALOSCOPE_LAMBDA { load<decltype(lanes)::count>(from + x).store(to + x); });
    }
  });
}

}  // namespace haloscope::HALOSCOPE_ISA::hydro
