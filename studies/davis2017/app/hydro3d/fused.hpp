// Kernels of hydro3d that join several sweeps into one pass over the fields.
// Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include "davis2017/app/hydro3d/gather.hpp"
#include "davis2017/app/hydro3d/remap.hpp"

namespace haloscope::HALOSCOPE_ISA::hydro {

/// Terms of the rates, largest values. Roots and factors of the cell's extents follow at the end: they keep the order
/// of numbers, so that each rate has the bits of the largest one of all cells.
enum Largest : int {
  velocity_difference,                ///< |sum over the corners|, nine
  fastest = velocity_difference + 9,  ///< |velocity|, by component
  most_pushed = fastest + 3,          ///< |acceleration|
  fastest_sound = most_pushed + 3,    ///< ...
  viscous_square,                     ///< q / rho
  compression,                        ///< |divergence|
  work_of_pressure,                   ///< |(p + q) divergence| / (rho e)
  largest_count
};

/// Computes the rates of a part from its largest values.
HALOSCOPE_INLINE void rates_of(const double* largest, const double* inverse_sizes, double* rates) {
  const auto raise = [&](int rate, double value) HALOSCOPE_LAMBDA {
    if (value > rates[rate]) rates[rate] = value;
  };
  const auto root = [](double value) HALOSCOPE_LAMBDA { return square_root(Vec<double, 1>{value}).v; };
  for (int d = 0; d < 3; ++d) {
    for (int i = 0; i < 3; ++i)
      raise(deformation + 3 * i + d, 0.25 * inverse_sizes[d] * largest[velocity_difference + 3 * i + d]);
    raise(sound_rate + d, inverse_sizes[d] * largest[fastest_sound]);
    raise(advection_rate + d, inverse_sizes[d] * largest[fastest + d]);
    raise(acceleration_rate + d, root(inverse_sizes[d] * largest[most_pushed + d]));
    raise(viscous_rate + d, inverse_sizes[d] * root(largest[viscous_square]));
  }
  raise(compression_rate, largest[compression]);
  raise(work_rate, largest[work_of_pressure]);
}

/// Computes the artificial viscosity and the largest of each Rate.
template <class Way>
HALOSCOPE_KERNEL void limit_cells(const KernelArgs& args) {
  const Fields f(args);
  const double* w = args.weights;
  const Bounds b(args.region);
  const Larger larger;
  Gathered<Way::lanes, largest_count> found;
  const auto of_nodes = [&](std::int64_t y, std::int64_t z) HALOSCOPE_LAMBDA {
    const double* v[6];
    for (int k = 0; k < 6; ++k) v[k] = f.from(velocity + k, b.lo[0], y, z);
    Way::along(b.hi[0] - b.lo[0] + 1, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      for (int k = 0; k < 6; ++k) found.take(fastest + k, magnitude(load<decltype(lanes)::count>(v[k] + x)), larger);
    });
  };
  each_row(args.region, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const VectorRow v(f, velocity, x0, y, z);
    const ViscosityRow viscous(f, w, x0, y, z);
    const double *p = f.from(pressure, x0, y, z), *rho = f.from(density, x0, y, z);
    const double *e = f.from(energy, x0, y, z), *c = f.from(sound, x0, y, z);
    double* q = f.to(viscosity, x0, y, z);
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      using V = Vec<double, N>;
      Gradient<N> g(v, x);
      for (int i = 0; i < 9; ++i) found.take(velocity_difference + i, magnitude(g.d[i / 3][i % 3]), larger);
      g.scale(w + inverse_size);
      const V artificial = viscous.template at<N>(x, g), density_here = load<N>(rho + x);
      artificial.store(q + x);
      const V divergence = g.divergence();
      found.take(fastest_sound, load<N>(c + x), larger);
      found.take(viscous_square, artificial / density_here, larger);
      found.take(compression, magnitude(divergence), larger);
      found.take(work_of_pressure,
                 magnitude((load<N>(p + x) + artificial) * divergence / (density_here * load<N>(e + x))), larger);
    });
    const std::int64_t y_end = y + 1 == b.hi[1] ? y + 2 : y + 1, z_end = z + 1 == b.hi[2] ? z + 2 : z + 1;
    for (std::int64_t k = z; k < z_end; ++k)
      for (std::int64_t j = y; j < y_end; ++j) of_nodes(j, k);
  });
  if (!args.reduced) return;
  double largest[largest_count] = {};
  found.finish(largest, larger);
  rates_of(largest, w + inverse_size, args.reduced);
}

/// The end of a step, in one pass over cells: heat_cells() where kinetic energy was lost, return_cells(), the state of
/// the gas and the totals.
template <class Way>
HALOSCOPE_KERNEL void return_gas(const KernelArgs& args) {
  const Fields f(args);
  const double whole = args.weights[cell_volume];
  const bool heats = args.weights[heated] > 0, gathers = args.reduced != nullptr;
  Gathered<Way::lanes, total_count> found;
  each_row(args.region, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const VectorRow v(f, other_velocity, x0, y, z);
    const CornerRow loss(f, node_loss, x0, y, z);
    const double *rho = f.from(other_density, x0, y, z), *size = f.from(other_volume, x0, y, z);
    const double* share = f.from(other_fraction, x0, y, z);
    double *e = f.to(other_energy, x0, y, z), *to_rho = f.to(density, x0, y, z), *to_size = f.to(volume, x0, y, z);
    double *to_e = f.to(energy, x0, y, z), *to_share = f.to(fraction, x0, y, z);
    std::int32_t* of = f.to_integers(material, x0, y, z);
    const GasRow gas(f, args.weights, x0, y, z);
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      using V = Vec<double, N>;
      const V mass_here = load<N>(rho + x) * load<N>(size + x), now_rho = mass_here / splat<N>(whole);
      V now_e = load<N>(e + x);
      if (heats) {
        now_e = now_e + splat<N>(0.125) * loss.at<N>(x).sum() / mass_here;
        lanes.put(now_e, e + x);
      }
      now_rho.store(to_rho + x);
      splat<N>(whole).store(to_size + x);
      lanes.put(now_e, to_e + x);
      load<N>(share + x).store(to_share + x);
      store(where_positive(load<N>(share + x) - splat<N>(0.5), splat<N>(1), splat<N>(0)), of + x);
      gas.set(lanes, x, now_rho, now_e, true);
      if (gathers) take_totals(found, lanes.fresh(now_rho * splat<N>(whole)), now_e, load<N>(share + x), v, x);
    });
  });
  found.finish(args.reduced, Plus{});
}

}  // namespace haloscope::HALOSCOPE_ISA::hydro
