// Kernels of hydro3d's Lagrangian step: artificial viscosity, predictor, acceleration, corrector, equation of state.
// Included through kernels/apps.hpp only (see simd.hpp for why).
#pragma once

#include "haloscope/apps/hydro3d/rows.hpp"

namespace haloscope::HALOSCOPE_ISA::hydro {

/// The nine derivatives of the velocity in a cell.
template <int N>
struct Gradient {
  Vec<double, N> d[3][3];  // [component][dimension]

  HALOSCOPE_INLINE Gradient(const VectorRow& rows, const double* inverse_sizes, std::int64_t x) {
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) {
      const Corners<N> c = rows.of[i].template at<N>(x);
      d[i][0] = splat<N>(0.25 * inverse_sizes[0]) * c.template difference<0>();
      d[i][1] = splat<N>(0.25 * inverse_sizes[1]) * c.template difference<1>();
      d[i][2] = splat<N>(0.25 * inverse_sizes[2]) * c.template difference<2>();
    }
  }
  HALOSCOPE_INLINE Vec<double, N> divergence() const { return (d[0][0] + d[1][1]) + d[2][2]; }
};

/// Where compressed: density times (c2 w^2 + c1 sound |w|), w the velocity difference across the cell in the direction
/// of the pressure gradient (von Neumann & Richtmyer 1950; that direction and width: Wilkins 1980).
template <int Most>
void viscosity_of_cells(const KernelArgs& args) {
  const Fields f(args);
  const double* w = args.weights;
  double least_width = 1 / w[inverse_size];
  for (int d = 1; d < 3; ++d)
    if (1 / w[inverse_size + d] < least_width) least_width = 1 / w[inverse_size + d];
  each_row(args.region, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const VectorRow v(f, velocity, x0, y, z);
    const double *p = f.from(pressure, x0, y, z), *rho = f.from(density, x0, y, z), *c = f.from(sound, x0, y, z);
    double* q = f.to(viscosity, x0, y, z);
    const std::int64_t row = f.stride(pressure, 1), plane = f.stride(pressure, 2);
    along<Most>(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      using V = Vec<double, N>;
      const Gradient<N> g(v, w + inverse_size, x);
      const V slope[3] = {splat<N>(w[inverse_size]) * (load<N>(p + x + 1) - load<N>(p + x - 1)),
                          splat<N>(w[inverse_size + 1]) * (load<N>(p + x + row) - load<N>(p + x - row)),
                          splat<N>(w[inverse_size + 2]) * (load<N>(p + x + plane) - load<N>(p + x - plane))};
      const V squares[3] = {slope[0] * slope[0], slope[1] * slope[1], slope[2] * slope[2]};
      const V sum = (squares[0] + squares[1]) + squares[2];
      const V strain =
          ((squares[0] * g.d[0][0] + squares[1] * g.d[1][1]) + squares[2] * g.d[2][2]) +
          ((slope[0] * slope[1] * (g.d[0][1] + g.d[1][0]) + slope[0] * slope[2] * (g.d[0][2] + g.d[2][0])) +
           slope[1] * slope[2] * (g.d[1][2] + g.d[2][1]));
      const V divergence = g.divergence(), zero = splat<N>(0), tiny = splat<N>(1e-200);
      // Along a unit vector n the cell is as wide as the least extent / n component; without a slope, the strain is
      // that of the whole cell.
      const V steepest = larger_of(larger_of(squares[0] * splat<N>(w[inverse_size] * w[inverse_size]),
                                             squares[1] * splat<N>(w[inverse_size + 1] * w[inverse_size + 1])),
                                   squares[2] * splat<N>(w[inverse_size + 2] * w[inverse_size + 2]));
      const V flat = steepest - tiny;  // positive where there is a slope
      const V along_slope = where_positive(flat, strain / larger_of(sum, tiny), divergence);
      const V width_squared =
          where_positive(flat, sum / larger_of(steepest, tiny), splat<N>(least_width * least_width));
      const V squeeze = larger_of(zero - along_slope, zero);
      const V jump_squared = width_squared * (squeeze * squeeze);
      const V value = load<N>(rho + x) * (splat<N>(w[quadratic]) * jump_squared +
                                          splat<N>(w[linear]) * load<N>(c + x) * square_root(jump_squared));
      where_positive(zero - divergence, value, zero).store(q + x);
    });
  });
}

/// Numbers of cells with a volume or an energy that is not positive, as reductions find one of them: twice 1 + the
/// cell's number in the grid, and 1 more for the energy.
class Faults {
 public:
  explicit Faults(const KernelArgs& args) : args_(args) {
    if (args.reduced && args.reduced[0] < 0) args.reduced[0] = 0;
  }
  template <int N>
  HALOSCOPE_INLINE void look(Vec<double, N> cell_volume, Vec<double, N> cell_energy) {
    const auto good = where_positive(cell_volume, where_positive(cell_energy, splat<N>(1), splat<N>(0)), splat<N>(0));
    for (int i = 0; i < N; ++i) bad_ |= good.lane(i) == 0;
  }
  /// After a row: finds the faulty cells.
  template <class Volume, class Energy>
  HALOSCOPE_INLINE void end_row(std::int64_t x0, std::int64_t y, std::int64_t z, std::int64_t n, const Volume& volumes,
                                const Energy& energies) {
    if (!bad_) return;
    bad_ = false;
    if (!args_.reduced) return;
    const double* w = args_.weights;
    for (std::int64_t x = 0; x < n; ++x) {
      const bool empty = !(volumes(x) > 0);
      if (!empty && energies(x) > 0) continue;
      const double cell = w[code_first] + static_cast<double>(x0 + x) + w[code_row] * static_cast<double>(y) +
                          w[code_plane] * static_cast<double>(z);
      const double code = 2 * cell + (empty ? 0 : 1);
      if (code > args_.reduced[0]) args_.reduced[0] = code;
    }
  }

 private:
  const KernelArgs& args_;
  bool bad_ = false;
};

/// Density and energy half a sub-cycle later, by the velocity a quarter of it later.
template <int Most>
void predict_cells(const KernelArgs& args) {
  const Fields f(args);
  const double* w = args.weights;
  Faults faults(args);
  each_row(args.region, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const VectorRow v(f, velocity, x0, y, z);
    const VectorRow a(f, acceleration, x0, y, z);
    const double *p = f.from(pressure, x0, y, z), *q = f.from(viscosity, x0, y, z), *rho = f.from(density, x0, y, z);
    const double *e = f.from(energy, x0, y, z), *size = f.from(volume, x0, y, z);
    double *half_rho = f.to(other_density, x0, y, z), *half_e = f.to(other_energy, x0, y, z);
    along<Most>(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      using V = Vec<double, N>;
      const V growth = growth_of<N>(v, w + area, x) + splat<N>(0.25 * w[sub_step]) * growth_of<N>(a, w + area, x);
      const V more = splat<N>(0.5 * w[sub_step]) * growth;
      const V cell_mass = load<N>(rho + x) * load<N>(size + x), half_volume = load<N>(size + x) + more;
      const V half_energy = load<N>(e + x) - (load<N>(p + x) + load<N>(q + x)) * more / cell_mass;
      (cell_mass / half_volume).store(half_rho + x);
      half_energy.store(half_e + x);
      faults.look(half_volume, half_energy);
    });
    faults.end_row(
        x0, y, z, n, [&](auto x) HALOSCOPE_LAMBDA { return half_rho[x]; },
        [&](auto x) HALOSCOPE_LAMBDA { return half_e[x]; });
  });
}

/// p = (gamma - 1) rho e, sound^2 = gamma p / rho.
template <int Most, int Density, int Energy>
void state_of_cells(const KernelArgs& args) {
  const Fields f(args);
  const double* gammas = args.weights + gamma_less_one;
  each_row(args.region, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const double *rho = f.from(Density, x0, y, z), *e = f.from(Energy, x0, y, z);
    const std::int32_t* of = f.integers(material, x0, y, z);
    double *p = f.to(pressure, x0, y, z), *c = f.to(sound, x0, y, z);
    along<Most>(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      using V = Vec<double, N>;
      double chosen[N];
      for (int i = 0; i < N; ++i) chosen[i] = of[x + i] > 0 ? gammas[1] : gammas[0];
      const V less_one = load<N>(chosen), per_mass = less_one * load<N>(e + x);  // p / rho
      (load<N>(rho + x) * per_mass).store(p + x);
      square_root((less_one + splat<N>(1)) * per_mass).store(c + x);
    });
  });
}

/// The mass of a node is an eighth of the cells around it; it has not been displaced yet.
template <int Most>
void gather_nodes(const KernelArgs& args) {
  const Fields f(args);
  const double eighth = 0.125 * args.weights[cell_volume];
  each_row(args.points, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const CornerRow rho(f, density, x0 - 1, y - 1, z - 1);
    double* m = f.to(node_mass, x0, y, z);
    double* moved[3];
    for (int d = 0; d < 3; ++d) moved[d] = f.to(displacement + d, x0, y, z);
    along<Most>(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      (splat<N>(eighth) * rho.at<N>(x).sum()).store(m + x);
      for (int d = 0; d < 3; ++d) splat<N>(0).store(moved[d] + x);
    });
  });
}

/// Nodes are accelerated by the pressures around them, move with the mean of old and new velocity, and keep the
/// acceleration for the next predictor.
template <int Most>
void accelerate_nodes(const KernelArgs& args) {
  const Fields f(args);
  const double* w = args.weights;
  each_row(args.points, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const CornerRow p(f, pressure, x0 - 1, y - 1, z - 1), q(f, viscosity, x0 - 1, y - 1, z - 1);
    const double* m = f.from(node_mass, x0, y, z);
    double *a[3], *v[3], *moved[3];
    for (int d = 0; d < 3; ++d) {
      a[d] = f.to(acceleration + d, x0, y, z);
      v[d] = f.to(velocity + d, x0, y, z);
      moved[d] = f.to(displacement + d, x0, y, z);
    }
    along<Most>(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      using V = Vec<double, N>;
      Corners<N> around = p.at<N>(x);
      const Corners<N> artificial = q.at<N>(x);
      for (int i = 0; i < 8; ++i) around.v[i] = around.v[i] + artificial.v[i];
      const V differences[3] = {around.template difference<0>(), around.template difference<1>(),
                                around.template difference<2>()};
#pragma GCC unroll 3
      for (int d = 0; d < 3; ++d) {
        const V rate = splat<N>(-0.25 * w[area + d]) * differences[d] / load<N>(m + x);
        const V before = load<N>(v[d] + x), after = before + splat<N>(w[sub_step]) * rate;
        rate.store(a[d] + x);
        after.store(v[d] + x);
        (load<N>(moved[d] + x) + splat<N>(0.5 * w[sub_step]) * (before + after)).store(moved[d] + x);
      }
    });
  });
}

/// Volume, density and energy after the sub-cycle, by the mean velocity.
template <int Most>
void correct_cells(const KernelArgs& args) {
  const Fields f(args);
  const double* w = args.weights;
  Faults faults(args);
  each_row(args.region, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const VectorRow v(f, velocity, x0, y, z);
    const VectorRow a(f, acceleration, x0, y, z);
    const double *p = f.from(pressure, x0, y, z), *q = f.from(viscosity, x0, y, z);
    double *rho = f.to(density, x0, y, z), *e = f.to(energy, x0, y, z), *size = f.to(volume, x0, y, z);
    along<Most>(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      using V = Vec<double, N>;
      const V growth = growth_of<N>(v, w + area, x) - splat<N>(0.5 * w[sub_step]) * growth_of<N>(a, w + area, x);
      const V more = splat<N>(w[sub_step]) * growth;
      const V cell_mass = load<N>(rho + x) * load<N>(size + x), new_volume = load<N>(size + x) + more;
      const V new_energy = load<N>(e + x) - (load<N>(p + x) + load<N>(q + x)) * more / cell_mass;
      new_volume.store(size + x);
      (cell_mass / new_volume).store(rho + x);
      new_energy.store(e + x);
      faults.look(new_volume, new_energy);
    });
    faults.end_row(
        x0, y, z, n, [&](auto x) HALOSCOPE_LAMBDA { return size[x]; }, [&](auto x) HALOSCOPE_LAMBDA { return e[x]; });
  });
}

/// The volume that each face has swept: its area times the mean displacement of its nodes.
template <int Most, int D>
void sweep_faces(const KernelArgs& args) {
  const Fields f(args);
  constexpr int a = D == 0 ? 1 : 0, b = D == 2 ? 1 : 2;
  const std::int64_t right = f.stride(displacement + D, a), above = f.stride(displacement + D, b);
  const double quarter = 0.25 * args.weights[area + D];
  each_row(args.points, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const double* moved = f.from(displacement + D, x0, y, z);
    double* swept = f.to(volume_flux + D, x0, y, z);
    along<Most>(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      const double* node = moved + x;
      (splat<N>(quarter) *
       ((load<N>(node) + load<N>(node + right)) + (load<N>(node + above) + load<N>(node + right + above))))
          .store(swept + x);
    });
  });
}

}  // namespace haloscope::HALOSCOPE_ISA::hydro
