// Kernels of hydro3d's Lagrangian step: artificial viscosity, compression of cells, equation of state, acceleration.
// Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include "davis2017/app/hydro3d/rows.hpp"

namespace haloscope::HALOSCOPE_ISA::hydro {

/// The nine derivatives of the velocity in a cell.
template <int N>
struct Gradient {
  Vec<double, N> d[3][3];  // [component][dimension]

  /// Sets the sums of the differences at the cell's four edges in the dimension; scale() makes them derivatives.
  HALOSCOPE_INLINE Gradient(const VectorRow& rows, std::int64_t x) {
    HALOSCOPE_UNROLLED(3)
    for (int i = 0; i < 3; ++i) {
      const Corners<N> c = rows.of[i].template at<N>(x);
      d[i][0] = c.template difference<0>();
      d[i][1] = c.template difference<1>();
      d[i][2] = c.template difference<2>();
    }
  }
  HALOSCOPE_INLINE Gradient(const VectorRow& rows, const double* inverse_sizes, std::int64_t x) : Gradient(rows, x) {
    scale(inverse_sizes);
  }
  HALOSCOPE_INLINE void scale(const double* inverse_sizes) {
    HALOSCOPE_UNROLLED(9)
    for (int i = 0; i < 9; ++i) d[i / 3][i % 3] = splat<N>(0.25 * inverse_sizes[i % 3]) * d[i / 3][i % 3];
  }
  HALOSCOPE_INLINE Vec<double, N> divergence() const { return (d[0][0] + d[1][1]) + d[2][2]; }
};

/// The artificial pressure of the cells of a row. Where compressed: density times (c2 w^2 + c1 sound |w|), w the
/// velocity difference across the cell in the direction of the pressure gradient (von Neumann & Richtmyer 1950; that
/// direction and width: Wilkins 1980).
class ViscosityRow {
 public:
  HALOSCOPE_INLINE ViscosityRow(const Fields& f, const double* weights, std::int64_t x0, std::int64_t y, std::int64_t z)
      : w_(weights),
        p_(f.from(pressure, x0, y, z)),
        rho_(f.from(density, x0, y, z)),
        c_(f.from(sound, x0, y, z)),
        row_(f.stride(pressure, 1)),
        plane_(f.stride(pressure, 2)),
        least_width_(1 / w_[inverse_size]) {
    for (int d = 1; d < 3; ++d)
      if (1 / w_[inverse_size + d] < least_width_) least_width_ = 1 / w_[inverse_size + d];
  }

  template <int N>
  HALOSCOPE_INLINE Vec<double, N> at(std::int64_t x, const Gradient<N>& g) const {
    using V = Vec<double, N>;
    const double* p = p_ + x;
    const V slope[3] = {splat<N>(w_[inverse_size]) * (load<N>(p + 1) - load<N>(p - 1)),
                        splat<N>(w_[inverse_size + 1]) * (load<N>(p + row_) - load<N>(p - row_)),
                        splat<N>(w_[inverse_size + 2]) * (load<N>(p + plane_) - load<N>(p - plane_))};
    const V squares[3] = {slope[0] * slope[0], slope[1] * slope[1], slope[2] * slope[2]};
    const V sum = (squares[0] + squares[1]) + squares[2];
    const V strain = ((squares[0] * g.d[0][0] + squares[1] * g.d[1][1]) + squares[2] * g.d[2][2]) +
                     ((slope[0] * slope[1] * (g.d[0][1] + g.d[1][0]) + slope[0] * slope[2] * (g.d[0][2] + g.d[2][0])) +
                      slope[1] * slope[2] * (g.d[1][2] + g.d[2][1]));
    const V divergence = g.divergence(), zero = splat<N>(0), tiny = splat<N>(1e-200);
    // The width of the cell along a unit vector n is the least extent / n component; without a slope, the strain of
    // the whole cell counts.
    const V steepest = larger_of(larger_of(squares[0] * splat<N>(w_[inverse_size] * w_[inverse_size]),
                                           squares[1] * splat<N>(w_[inverse_size + 1] * w_[inverse_size + 1])),
                                 squares[2] * splat<N>(w_[inverse_size + 2] * w_[inverse_size + 2]));
    const V flat = steepest - tiny;  // positive where there is a slope
    const V along_slope = where_positive(flat, strain / larger_of(sum, tiny), divergence);
    const V width_squared =
        where_positive(flat, sum / larger_of(steepest, tiny), splat<N>(least_width_ * least_width_));
    const V squeeze = larger_of(zero - along_slope, zero);
    const V jump_squared = width_squared * (squeeze * squeeze);
    const V value = load<N>(rho_ + x) * (splat<N>(w_[quadratic]) * jump_squared +
                                         splat<N>(w_[linear]) * load<N>(c_ + x) * square_root(jump_squared));
    return where_positive(zero - divergence, value, zero);
  }

 private:
  const double *w_, *p_, *rho_, *c_;
  std::int64_t row_, plane_;
  double least_width_;
};

template <class Way>
HALOSCOPE_KERNEL void viscosity_of_cells(const KernelArgs& args) {
  const Fields f(args);
  each_row(args.region, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const VectorRow v(f, velocity, x0, y, z);
    const ViscosityRow viscous(f, args.weights, x0, y, z);
    double* q = f.to(viscosity, x0, y, z);
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      viscous.template at<N>(x, Gradient<N>(v, args.weights + inverse_size, x)).store(q + x);
    });
  });
}

/// Numbers of cells with a density or an energy that is not positive, or that have no volume left, as reductions find
/// one of them: twice 1 + the cell's number in the grid, and 1 more for the energy.
template <int Most>
class Faults {
 public:
  HALOSCOPE_INLINE explicit Faults(const KernelArgs& args) : args_(args), good_(splat<Most>(1)), good_alone_{1} {
    if (args.reduced && args.reduced[0] < 0) args.reduced[0] = 0;
  }
  template <int N>
  HALOSCOPE_INLINE void look(Vec<double, N> cell_density, Vec<double, N> cell_energy) {
    const auto none = splat<N>(0), finite = splat<N>(most_density) - cell_density;
    const auto good = where_positive(
        cell_density, where_positive(finite, where_positive(cell_energy, splat<N>(1), none), none), none);
    if constexpr (N == Most)
      good_ = smaller_of(good_, good);
    else
      good_alone_ = smaller_of(good_alone_, good);
  }
  /// After a row: finds the faulty cells.
  HALOSCOPE_INLINE void end_row(std::int64_t x0, std::int64_t y, std::int64_t z, std::int64_t n,
                                const double* densities, const double* energies) {
    bool bad = good_alone_.v == 0;
    for (int i = 0; i < Most; ++i) bad |= good_.lane(i) == 0;
    if (!bad || !args_.reduced) return;
    good_ = splat<Most>(1);
    good_alone_ = splat<1>(1);
    const double* w = args_.weights;
    for (std::int64_t x = 0; x < n; ++x) {
      const bool dense = densities[x] > 0 && densities[x] < most_density;
      if (dense && energies[x] > 0) continue;
      const double cell = w[code_first] + static_cast<double>(x0 + x) + w[code_row] * static_cast<double>(y) +
                          w[code_plane] * static_cast<double>(z);
      const double code = 2 * cell + (dense ? 1 : 0);
      if (code > args_.reduced[0]) args_.reduced[0] = code;
    }
  }

 private:
  static constexpr double most_density = 1e300;
  const KernelArgs& args_;
  Vec<double, Most> good_;  // 0 or 1, over the row
  Vec<double, 1> good_alone_;
};

/// Pressure and sound speed of a cell: p = (gamma - 1) rho e, sound^2 = gamma p / rho.
class GasRow {
 public:
  HALOSCOPE_INLINE GasRow(const Fields& f, const double* weights, std::int64_t x0, std::int64_t y, std::int64_t z)
      : gammas_(weights + gamma_less_one),
        of_(f.integers(material, x0, y, z)),
        p_(f.to(pressure, x0, y, z)),
        c_(f.to(sound, x0, y, z)) {}

  template <class Lanes, int N>
  HALOSCOPE_INLINE void set(Lanes lanes, std::int64_t x, Vec<double, N> rho, Vec<double, N> e, bool with_sound) const {
    const auto less_one = where_positive(load<N>(of_ + x), splat<N>(gammas_[1]), splat<N>(gammas_[0]));
    const auto per_mass = less_one * e;  // p / rho
    lanes.put(rho * per_mass, p_ + x);
    if (with_sound) lanes.put(square_root((less_one + splat<N>(1)) * per_mass), c_ + x);
  }

 private:
  const double* gammas_;
  const std::int32_t* of_;
  double *p_, *c_;
};

template <class Way, int Density, int Energy>
HALOSCOPE_KERNEL void state_of_cells(const KernelArgs& args) {
  const Fields f(args);
  each_row(args.region, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const double *rho = f.from(Density, x0, y, z), *e = f.from(Energy, x0, y, z);
    const GasRow gas(f, args.weights, x0, y, z);
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      gas.set(lanes, x, load<N>(rho + x), load<N>(e + x), true);
    });
  });
}

/// When cells are compressed: half a sub-cycle later than the fields, by the velocity a quarter of it later; or a whole
/// one later, by the mean of the velocities before and after it.
enum class Moment { half, whole };
/// Results kept at the half moment: density and energy, or only the pressure. At the whole moment: whether pressure and
/// sound are computed in the same pass.
enum class Gas { apart, at_once };

/// Computes volume, density and energy of cells that nodes compress.
template <class Way, Moment moment, Gas state>
HALOSCOPE_KERNEL void compress_cells(const KernelArgs& args) {
  const Fields f(args);
  const double* w = args.weights;
  constexpr bool half = moment == Moment::half;
  const double span = (half ? 0.5 : 1) * w[sub_step], later = (half ? 0.25 : -0.5) * w[sub_step];
  auto* kept = static_cast<double*>(args.scratch);
  Faults<Way::lanes> faults(args);
  each_row(args.region, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const VectorRow v(f, velocity, x0, y, z);
    const VectorRow a(f, acceleration, x0, y, z);
    const double *p = f.from(pressure, x0, y, z), *q = f.from(viscosity, x0, y, z), *rho = f.from(density, x0, y, z);
    const double *e = f.from(energy, x0, y, z), *size = f.from(volume, x0, y, z);
    double* new_rho = half ? f.to(other_density, x0, y, z) : f.to(density, x0, y, z);
    double* new_e = half ? f.to(other_energy, x0, y, z) : f.to(energy, x0, y, z);
    if (half && state == Gas::at_once) new_rho = kept, new_e = kept + kept_pitch(n);
    double* new_size = f.to(volume, x0, y, z);
    const GasRow gas(f, w, x0, y, z);
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      using V = Vec<double, N>;
      const V more = splat<N>(span) * (growth_of<N>(v, w + area, x) + splat<N>(later) * growth_of<N>(a, w + area, x));
      const V cell_mass = load<N>(rho + x) * load<N>(size + x), now_size = load<N>(size + x) + more;
      const V now_e = load<N>(e + x) - (load<N>(p + x) + load<N>(q + x)) * more / cell_mass;
      const V now_rho = cell_mass / now_size;
      if constexpr (!half) lanes.put(now_size, new_size + x);
      lanes.put(now_rho, new_rho + x);
      lanes.put(now_e, new_e + x);
      faults.look(now_rho, now_e);
      if constexpr (state == Gas::at_once) gas.set(lanes, x, now_rho, now_e, !half);
    });
    faults.end_row(x0, y, z, n, new_rho, new_e);
  });
}

/// Sets the mass of each node, an eighth of the cells around it, and its displacement, 0.
template <class Way>
HALOSCOPE_KERNEL void gather_nodes(const KernelArgs& args) {
  const Fields f(args);
  const double eighth = 0.125 * args.weights[cell_volume];
  each_row(args.points, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const CornerRow rho(f, density, x0 - 1, y - 1, z - 1);
    double* m = f.to(node_mass, x0, y, z);
    double* moved[3];
    for (int d = 0; d < 3; ++d) moved[d] = f.to(displacement + d, x0, y, z);
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      (splat<N>(eighth) * rho.at<N>(x).sum()).store(m + x);
      for (int d = 0; d < 3; ++d) splat<N>(0).store(moved[d] + x);
    });
  });
}

/// Accelerates nodes by the pressures around them, moves them with the mean of old and new velocity, and stores the
/// acceleration for the next predictor. @tparam first  of a step, without gather_nodes() before
template <class Way, bool first>
HALOSCOPE_KERNEL void accelerate_nodes(const KernelArgs& args) {
  const Fields f(args);
  const double* w = args.weights;
  const double eighth = 0.125 * w[cell_volume];
  each_row(args.points, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const CornerRow p(f, pressure, x0 - 1, y - 1, z - 1), q(f, viscosity, x0 - 1, y - 1, z - 1);
    const CornerRow rho(f, density, x0 - 1, y - 1, z - 1);
    double *m = f.to(node_mass, x0, y, z), *a[3], *v[3], *moved[3];
    for (int d = 0; d < 3; ++d) {
      a[d] = f.to(acceleration + d, x0, y, z);
      v[d] = f.to(velocity + d, x0, y, z);
      moved[d] = f.to(displacement + d, x0, y, z);
    }
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      constexpr int N = decltype(lanes)::count;
      using V = Vec<double, N>;
      Corners<N> around = p.at<N>(x);
      const Corners<N> artificial = q.at<N>(x);
      for (int i = 0; i < 8; ++i) around.v[i] = around.v[i] + artificial.v[i];
      const V differences[3] = {around.template difference<0>(), around.template difference<1>(),
                                around.template difference<2>()};
      const V weight = first ? splat<N>(eighth) * rho.at<N>(x).sum() : load<N>(m + x);
      if constexpr (first) weight.store(m + x);
      HALOSCOPE_UNROLLED(3)
      for (int d = 0; d < 3; ++d) {
        const V rate = splat<N>(-0.25 * w[area + d]) * differences[d] / weight;
        const V before = load<N>(v[d] + x), after = before + splat<N>(w[sub_step]) * rate;
        const V so_far = first ? splat<N>(0) : load<N>(moved[d] + x);
        rate.store(a[d] + x);
        lanes.put(after, v[d] + x);
        lanes.put(so_far + splat<N>(0.5 * w[sub_step]) * (before + after), moved[d] + x);
      }
    });
  });
}

template <class Way>
HALOSCOPE_KERNEL void sweep_faces(const KernelArgs& args, int d) {
  const Fields f(args);
  each_row(args.points, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const SweptRow row(f, args.weights, d, x0, y, z);
    double* swept = f.to(volume_flux + d, x0, y, z);
    Way::along(
        n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA { row.at<decltype(lanes)::count>(x).store(swept + x); });
  });
}

}  // namespace haloscope::HALOSCOPE_ISA::hydro
