// Kernels of hydro3d that gather numbers: rates that limit the time step, and sums over the grid.
// Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include "davis2017/app/hydro3d/lagrange.hpp"

namespace haloscope::HALOSCOPE_ISA::hydro {

/// Numbers gathered lane by lane, then combined.
template <int Most, int Count>
struct Gathered {
  Vec<double, Most> wide[Count]{};
  double single[Count]{};

  HALOSCOPE_INLINE static Gathered from(double start) {
    Gathered all;
    for (int i = 0; i < Count; ++i) {
      all.wide[i] = Vec<double, Most>::splat(start);
      all.single[i] = start;
    }
    return all;
  }
  template <int N, class Combine>
  HALOSCOPE_INLINE void take(int number, Vec<double, N> value, const Combine& combine) {
    if constexpr (N == Most) {
      wide[number] = combine(wide[number], value);
    } else {
      single[number] = combine(Vec<double, 1>{single[number]}, value).v;
    }
  }
  template <class Combine>
  HALOSCOPE_INLINE void finish(double* into, const Combine& combine) const {
    if (!into) return;
    for (int i = 0; i < Count; ++i) {
      Vec<double, 1> all{into[i]};
      for (int l = 0; l < Most; ++l) all = combine(all, Vec<double, 1>{wide[i].lane(l)});
      into[i] = combine(all, Vec<double, 1>{single[i]}).v;
    }
  }
};

struct Larger {
  template <int N>
  HALOSCOPE_INLINE Vec<double, N> operator()(Vec<double, N> a, Vec<double, N> b) const {
    return larger_of(a, b);
  }
};
struct Plus {
  template <int N>
  HALOSCOPE_INLINE Vec<double, N> operator()(Vec<double, N> a, Vec<double, N> b) const {
    return a + b;
  }
};

/// Gathers the largest of each Rate.
template <class Way>
HALOSCOPE_KERNEL void gather_rates(const KernelArgs& args) {
  const Fields f(args);
  const double* w = args.weights;
  Gathered<Way::lanes, rate_count> found;
  each_row(args.region, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const VectorRow v(f, velocity, x0, y, z);
    const VectorRow a(f, acceleration, x0, y, z);
    const double *p = f.from(pressure, x0, y, z), *q = f.from(viscosity, x0, y, z), *rho = f.from(density, x0, y, z);
    const double *e = f.from(energy, x0, y, z), *c = f.from(sound, x0, y, z);
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      using V = Vec<double, N>;
      const Larger larger;
      const Gradient<N> g(v, w + inverse_size, x);
      for (int i = 0; i < 9; ++i) found.take(deformation + i, magnitude(g.d[i / 3][i % 3]), larger);
      const V divergence = g.divergence(), viscous = square_root(load<N>(q + x) / load<N>(rho + x));
      for (int d = 0; d < 3; ++d) {
        const V per_cell = splat<N>(w[inverse_size + d]);
        V fastest = splat<N>(0), pushed = fastest;
        const Corners<N> of_v = v.of[d].template at<N>(x), of_a = a.of[d].template at<N>(x);
        for (int i = 0; i < 8; ++i) {
          fastest = larger_of(fastest, magnitude(of_v.v[i]));
          pushed = larger_of(pushed, magnitude(of_a.v[i]));
        }
        found.take(sound_rate + d, per_cell * load<N>(c + x), larger);
        found.take(advection_rate + d, per_cell * fastest, larger);
        found.take(acceleration_rate + d, square_root(per_cell * pushed), larger);
        found.take(viscous_rate + d, per_cell * viscous, larger);
      }
      found.take(compression_rate, magnitude(divergence), larger);
      found.take(work_rate,
                 magnitude((load<N>(p + x) + load<N>(q + x)) * divergence / (load<N>(rho + x) * load<N>(e + x))),
                 larger);
    });
  });
  found.finish(args.reduced, Larger{});
}

/// Adds a cell's part of each Total. It has an eighth of each of its nodes.
template <int Most, int N>
HALOSCOPE_INLINE void take_totals(Gathered<Most, total_count>& found, Vec<double, N> cell_mass,
                                  Vec<double, N> cell_energy, Vec<double, N> share, const VectorRow& v,
                                  std::int64_t x) {
  const Plus plus;
  const auto of_node = splat<N>(0.125) * cell_mass;
  found.take(mass, cell_mass, plus);
  found.take(internal_energy, cell_mass * cell_energy, plus);
  found.take(fraction_mass, cell_mass * share, plus);
  auto squares = splat<N>(0);
  for (int d = 0; d < 3; ++d) {
    Corners<N> corners = v.of[d].template at<N>(x);
    found.take(momentum + d, of_node * corners.sum(), plus);
    for (int i = 0; i < 8; ++i) corners.v[i] = corners.v[i] * corners.v[i];
    squares = squares + corners.sum();
  }
  found.take(kinetic_energy, splat<N>(0.5) * of_node * squares, plus);
}

/// Gathers each Total of the first set of fields.
template <class Way>
HALOSCOPE_KERNEL void gather_totals(const KernelArgs& args) {
  const Fields f(args);
  const double whole = args.weights[cell_volume];
  Gathered<Way::lanes, total_count> found;
  each_row(args.region, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const VectorRow v(f, velocity, x0, y, z);
    const double *rho = f.from(density, x0, y, z), *e = f.from(energy, x0, y, z), *share = f.from(fraction, x0, y, z);
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      take_totals(found, lanes.fresh(load<N>(rho + x) * splat<N>(whole)), load<N>(e + x), load<N>(share + x), v, x);
    });
  });
  found.finish(args.reduced, Plus{});
}

}  // namespace haloscope::HALOSCOPE_ISA::hydro
