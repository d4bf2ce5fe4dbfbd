// The summary of a step of hydro3d: printed properties of the gas, gathered in one pass over cells.
// Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include "davis2017/app/hydro3d/gather.hpp"

namespace haloscope::HALOSCOPE_ISA::hydro {

struct Smaller {
  template <int N>
  HALOSCOPE_INLINE Vec<double, N> operator()(Vec<double, N> a, Vec<double, N> b) const {
    return smaller_of(a, b);
  }
};

/// The findings of a thread so far, without the sketch.
template <int Most>
struct Findings {
  Gathered<Most, counted_count> counts;
  Gathered<Most, observed_count> sums;
  Gathered<Most, observed_count> largest = Gathered<Most, observed_count>::from(-__builtin_inf());
  Gathered<Most, observed_count> least = Gathered<Most, observed_count>::from(__builtin_inf());
  Gathered<Most, directed_count> directed;

  HALOSCOPE_INLINE void finish(double* into) const {
    if (!into) return;
    counts.finish(into + summary_counts, Plus{});
    sums.finish(into + summary_sums, Plus{});
    largest.finish(into + summary_largest, Larger{});
    least.finish(into + summary_least, Smaller{});
    directed.finish(into + summary_directed, Plus{});
  }
};

/// One cell, or several adjacent cells, as numbers of the summary.
template <int N>
struct Cell {
  using V = Vec<double, N>;
  V of[observed_count];
  V velocities[3], squares[3];  // means over the nodes

  HALOSCOPE_INLINE Cell(const Fields& f, const VectorRow& v, const double* w, std::int64_t x0, std::int64_t y,
                        std::int64_t z, std::int64_t x) {
    const auto at = [&](int field) HALOSCOPE_LAMBDA { return load<N>(f.from(field, x0, y, z) + x); };
    for (int d = 0; d < 3; ++d) {
      Corners<N> corners = v.of[d].template at<N>(x);
      velocities[d] = splat<N>(0.125) * corners.sum();
      for (int i = 0; i < 8; ++i) corners.v[i] = corners.v[i] * corners.v[i];
      squares[d] = splat<N>(0.125) * corners.sum();
    }
    const V square = (squares[0] + squares[1]) + squares[2];
    of[observed_density] = at(density);
    of[observed_energy] = at(energy);
    of[observed_pressure] = at(pressure);
    of[observed_fraction] = at(fraction);
    of[observed_sound] = at(sound);
    of[observed_speed] = square_root(square);
    of[observed_growth] = growth_of<N>(v, w + area, x) / splat<N>(w[cell_volume]);
    of[mass] = of[observed_density] * splat<N>(w[cell_volume]);
    of[internal_energy] = of[mass] * of[observed_energy];
    of[kinetic_energy] = splat<N>(0.5) * of[mass] * square;
    for (int d = 0; d < 3; ++d) of[momentum + d] = of[mass] * velocities[d];
    of[fraction_mass] = of[mass] * of[observed_fraction];
  }
};

template <int Most, class Lanes>
HALOSCOPE_INLINE void take_cell(Findings<Most>& found, const Cell<Lanes::count>& cell, double whole, Lanes lanes) {
  constexpr int N = Lanes::count;
  const Plus plus;
  const auto count = [&](int which, Vec<double, N> positive) HALOSCOPE_LAMBDA {
    found.counts.take(which, lanes.fresh(where_positive(positive, splat<N>(1), splat<N>(0))), plus);
  };
  for (int i = 0; i < observed_count; ++i) {
    found.sums.take(i, lanes.fresh(cell.of[i]), plus);
    found.largest.take(i, cell.of[i], Larger{});
    found.least.take(i, cell.of[i], Smaller{});
  }
  count(cells_all, splat<N>(1));
  const auto share = cell.of[observed_fraction];
  count(cells_of_material_1, share - splat<N>(0.5));
  count(cells_mixed, share * (splat<N>(1) - share));
  count(cells_supersonic, cell.of[observed_speed] - cell.of[observed_sound]);
  for (int d = 0; d < 3; ++d) {
    count(cells_rising + d, cell.velocities[d]);
    const auto add = [&](int which, Vec<double, N> value)
                         HALOSCOPE_LAMBDA { found.directed.take(which + d, lanes.fresh(value), plus); };
    add(directed_energy, splat<N>(0.5) * cell.of[mass] * cell.squares[d]);
    add(directed_momentum, magnitude(cell.of[momentum + d]));
    add(directed_power, splat<N>(whole) * cell.of[observed_pressure] * cell.velocities[d]);
  }
}

/// Finds the largest densities of a row, by letter of the sketch. In rows with fewer cells a cell has several letters.
/// @param first  global number of the row's first cell, of `cells`.
HALOSCOPE_INLINE void sketch_row(const double* densities, std::int64_t first, std::int64_t n, std::int64_t cells,
                                 double* largest) {
  for (std::int64_t letter = 0; letter < sketch_letters; ++letter) {
    const std::int64_t from = letter * cells / sketch_letters, next = (letter + 1) * cells / sketch_letters;
    const std::int64_t to = next > from ? next : from + 1;
    for (std::int64_t x = from > first ? from : first; x < (to < first + n ? to : first + n); ++x)
      if (densities[x - first] > largest[letter]) largest[letter] = densities[x - first];
  }
}

HALOSCOPE_INLINE double letter_of(double of_density) {
  int letter = 'a';
  constexpr double least = 0.018581361171917516;  // 2^-5.75
  for (double next = least; letter < 'z' && of_density > next; next *= 1.4142135623730951) ++letter;
  return letter;
}

template <class Way>
HALOSCOPE_KERNEL void gather_summary(const KernelArgs& args) {
  const Fields f(args);
  const double* w = args.weights;
  Findings<Way::lanes> found;
  double densest[sketch_letters] = {};
  each_row(args.region, [&](auto x0, auto y, auto z, std::int64_t n) HALOSCOPE_LAMBDA {
    const VectorRow v(f, velocity, x0, y, z);
    Way::along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      take_cell(found, Cell<decltype(lanes)::count>(f, v, w, x0, y, z, x), w[cell_volume], lanes);
    });
    sketch_row(f.from(density, x0, y, z), static_cast<std::int64_t>(w[first_x]) + x0, n,
               static_cast<std::int64_t>(w[code_row]), densest);
  });
  found.finish(args.reduced);
  if (!args.reduced) return;
  double* sketch = args.reduced + summary_sketch;
  for (int i = 0; i < sketch_letters; ++i)
    if (densest[i] > 0 && letter_of(densest[i]) > sketch[i]) sketch[i] = letter_of(densest[i]);
}

}  // namespace haloscope::HALOSCOPE_ISA::hydro
