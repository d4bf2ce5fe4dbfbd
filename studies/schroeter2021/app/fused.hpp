// Many Gauss-Seidel sweeps of poisson2d in one pass over memory.
// Included for one instruction set at a time (see simd.hpp for why).
//
// A flight is N sweeps in the N lanes of a vector. In wave w at step s, sweep t (from 0) computes line w - t, column
// s - t. Its four neighbours are available:
//   W  its result one step ago
//   N  its result at this step of the last wave: `trail[s]`
//   E  the result of sweep t - 1 at this step of the last wave; for sweep 0 from memory, line w, column s + 1
//   S  the result of sweep t - 1 one step ago; for sweep 0 from memory, line w + 1, column s
// Sweep t is lane N - 1 - t: E and S are one shift each, and only lane 0, the last sweep, goes to memory. J waves
// advance together, each a step behind the one before, and so do two flights, the second N + J lines behind: their
// chains of additions are independent of each other.
//
// Before wave N - 1 some sweeps have no line yet: single sweeps first compute the lines [0, N - 1 - t) of sweep t, and
// after the last wave the lines [lines - t, lines). In both cases every line in memory holds exactly the sweep that the
// flight expects there or leaves there.
#pragma once

#include "schroeter2021/app/skewed.hpp"

namespace haloscope::HALOSCOPE_ISA {

/// N sweeps in flight over a patch.
template <int N>
struct Flight {
  using V = Vec<double, N>;
  enum class State { waiting, under_way, landed };

  const Patch& patch;
  const double* columns;  ///< factor of column 0, with N - 1 zeros before the first and after the last
  double* trail;          ///< N numbers per step
  double* residuals;      ///< of its N sweeps, or null
  State state = State::waiting;
  std::int64_t next = N - 1;        ///< line of sweep 0 in the next wave
  V left{}, right{}, row_factor{};  ///< border values and factor of the lines of the last wave
  V largest{};

  std::int64_t steps() const { return patch.columns + N - 1; }

  /// Returns the lines, from the first, that all its sweeps have passed.
  std::int64_t finished() const {
    return state == State::waiting ? 0 : state == State::landed ? patch.lines : next - (N - 1);
  }

  template <bool Source, bool Residual>
  void single_sweep(int t, std::int64_t first, std::int64_t count) {
    const Patch part = patch.part(0, first, patch.columns, count);
    double most = 0;
    each_block<8, Source, Residual>(0, count, [&](std::int64_t y, double (*block)(Patch), int lines) {
      most = larger(most, block(part.part(0, y, part.columns, lines)));
    });
    if constexpr (Residual) residuals[t] = larger(residuals[t], most);
  }

  /// Needs lines [0, N] of the patch (as far as it has them) as the flight before left them.
  template <bool Source, bool Residual>
  void take_off() {
    for (int t = 0; t < N - 1; ++t) single_sweep<Source, Residual>(t, 0, N - 1 - t);
    const std::int64_t n = patch.columns;
    for (int lane = 0; lane < N; ++lane) {  // line lane - 1 has seen the sweeps up to N - 1 - lane
      const double* line = patch.u + (lane - 1) * patch.row;
      for (std::int64_t s = 0; s < steps(); ++s) {
        std::int64_t x = s - (N - 1 - lane);
        if (x < -1) x = -1;
        if (x > n) x = n;
        trail[s * N + lane] = lane == 0 && (x < 0 || x == n) ? 0 : line[x];  // corners may not exist
      }
      left.v[lane] = lane ? line[-1] : 0;
      right.v[lane] = lane ? line[n] : 0;
      if constexpr (Source) row_factor.v[lane] = lane ? patch.row_factor[lane - 1] : 0;
    }
    state = State::under_way;
  }

  template <bool Source, bool Residual>
  void land() {
    for (int t = 0; t < N - 1; ++t) {
      double* line = patch.u + (patch.lines - 1 - t) * patch.row;
      for (std::int64_t x = 0; x < patch.columns; ++x) line[x] = trail[(x + t) * N + N - 1 - t];
    }
    for (int t = 1; t < N; ++t) single_sweep<Source, Residual>(t, patch.lines - t, t);
    if constexpr (Residual)
      for (int t = 0; t < N; ++t) residuals[t] = larger(residuals[t], largest.lane(N - 1 - t));
    state = State::landed;
  }
};

/// J waves of one flight while they advance: the values in registers.
template <int N, int J, bool Source, bool Residual>
struct Waves {
  using V = Vec<double, N>;
  Flight<N>& flight;
  double* cell;  ///< line `next`, column 0
  double* trail;
  std::int64_t row, columns;
  V found[J], east_before[J], left[J], right[J], row_factor[J], largest;

  HALOSCOPE_INLINE explicit Waves(Flight<N>& f)
      : flight(f),
        cell(f.patch.u + f.next * f.patch.row),
        trail(f.trail),
        row(f.patch.row),
        columns(f.patch.columns),
        largest(f.largest) {
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      const double* line = cell + j * row;
      found[j] = left[j] = shift_in(j ? left[j - 1] : f.left, line[-1]);
      right[j] = shift_in(j ? right[j - 1] : f.right, line[columns]);
      east_before[j] = V::splat(line[0]);
      if constexpr (Source)
        row_factor[j] = shift_in(j ? row_factor[j - 1] : f.row_factor, f.patch.row_factor[f.next + j]);
    }
  }

  /// Advances all waves by one step; at the ends of the lines (s < N + J - 2 or s >= columns) some sweeps are outside.
  template <bool AtEnds>
  HALOSCOPE_INLINE void step(std::int64_t s0) {
#pragma GCC unroll 4
    for (int j = J - 1; j >= 0; --j) {  // downwards, so that found[j - 1] is still its result one step ago
      const std::int64_t s = s0 - j;
      if (AtEnds && (s < 0 || s >= columns + N - 1)) continue;
      const std::int64_t x = AtEnds && s > columns ? columns : s, x_east = AtEnds && s >= columns ? columns : s + 1;
      const V before = j == 0 ? V::load(trail + s * N) : found[j - 1];
      const V east = shift_in(before, cell[j * row + x_east]);
      const V south = shift_in(found[j], cell[(j + 1) * row + x]);
      V next = (((found[j] + east) + south) + before) * V::splat(0.25);
      if constexpr (Source) next = next + row_factor[j] * V::load(flight.columns + s - (N - 1));
      V change = Residual ? magnitude(east_before[j] - next) : V{};
      if constexpr (AtEnds) {
        for (int lane = 0; lane < N; ++lane) {
          const std::int64_t column = s - (N - 1 - lane);
          if (column >= 0 && column < columns) continue;
          next.v[lane] = column < 0 ? left[j].v[lane] : right[j].v[lane];
          change.v[lane] = 0;
        }
      }
      if constexpr (Residual) largest = larger(largest, change), east_before[j] = east;
      if (j == J - 1) next.store(trail + s * N);
      if (!AtEnds || s >= N - 1) cell[(j - (N - 1)) * row + s - (N - 1)] = next.lane(0);
      found[j] = next;
    }
  }

  HALOSCOPE_INLINE void finish() const {
    flight.left = left[J - 1], flight.right = right[J - 1], flight.largest = largest;
    if constexpr (Source) flight.row_factor = row_factor[J - 1];
    flight.next += J;
  }
};

/// Runs J waves of one flight.
template <int J, bool Source, bool Residual, int N>
[[gnu::noinline]] void fly(Flight<N>& flight) {
  Waves<N, J, Source, Residual> waves(flight);
  const std::int64_t inside = N + J - 2, columns = waves.columns;
  std::int64_t s = 0;
  for (; s < inside; ++s) waves.template step<true>(s);
  for (; s < columns; ++s) waves.template step<false>(s);
  for (; s < columns + inside; ++s) waves.template step<true>(s);
  waves.finish();
}

/// Runs J waves of two flights, step by step.
template <int J, bool Source, bool Residual, int N>
[[gnu::noinline]] void fly(Flight<N>& first, Flight<N>& second) {
  Waves<N, J, Source, Residual> a(first), b(second);
  const std::int64_t inside = N + J - 2, columns = a.columns;
  std::int64_t s = 0;
  for (; s < inside; ++s) a.template step<true>(s), b.template step<true>(s);
  for (; s < columns; ++s) a.template step<false>(s), b.template step<false>(s);
  for (; s < columns + inside; ++s) a.template step<true>(s), b.template step<true>(s);
  a.finish(), b.finish();
}

/// One pass over the patch with one or two flights.
template <int N, bool Source, bool Residual>
struct Pass {
  static constexpr int jam = 2;
  using State = typename Flight<N>::State;

  Flight<N> flights[2];
  int count;
  std::int64_t lines;

  HALOSCOPE_INLINE Flight<N>& last() { return flights[count - 1]; }

  /// Advances one flight by one piece. `ready(lines)` returns once the pass before has finished that many lines.
  template <class Ready>
  void advance(Flight<N>& f, const Ready& ready) {
    if (f.state == State::waiting) {
      if (&f == flights) ready(N);
      f.template take_off<Source, Residual>();
    } else {
      const bool jammed = f.next + jam <= lines;
      if (&f == flights) ready(f.next + (jammed ? jam : 1) + 1);
      if (jammed)
        fly<jam, Source, Residual>(f);
      else
        fly<1, Source, Residual>(f);
    }
    if (f.next == lines) f.template land<Source, Residual>();
  }

  /// Runs the next piece of work. A second flight needs the lines of its next waves, and one below, from the first.
  template <class Ready>
  void work(const Ready& ready) {
    Flight<N>&a = flights[0], &b = flights[1];
    if (count == 1 || a.state == State::waiting) return advance(a, ready);
    if (a.state == State::landed) return advance(b, ready);
    const std::int64_t needed = b.state == State::waiting ? N : b.next + jam + 1;
    if (a.finished() < needed || a.next + jam > lines) return advance(a, ready);
    if (b.state == State::waiting) return advance(b, ready);
    ready(a.next + jam + 1);
    fly<jam, Source, Residual>(a, b);
    if (a.next == lines) a.template land<Source, Residual>();
  }
};

/// The positions of a member's trails and factors in its scratch space. Trails start at different offsets into a page,
/// or the loads of one would seem to depend on the stores of the other.
struct FusedScratch {
  static constexpr int N = full_lanes<double>;
  std::int64_t trail, columns, all;  ///< in doubles

  explicit FusedScratch(std::int64_t width) {
    constexpr std::int64_t page = 512;
    trail = ((width + N) * N + page - 1) / page * page + 264;
    columns = 2 * trail;
    all = columns + width + 2 * N;
  }
};

/// Returns Kernel::scratch_bytes.
inline std::size_t fused_sweeps_scratch(const Box& region, int levels) {
  const Bounds b(region);
  return b.empty() || levels < 2 ? 0 : static_cast<std::size_t>(FusedScratch(b.hi[0] - b.lo[0]).all) * sizeof(double);
}

/// All sweeps of one call on one member: passes of two flights, taken in turn by the members, a pass of one flight, and
/// single sweeps for the rest.
template <bool Source, bool Residual>
struct FusedSweeps {
  static constexpr int N = full_lanes<double>;
  const Patch& patch;
  const Relay& relay;
  double *residuals, *scratch;

  void pass(int index, int first_sweep, int flights, const double* columns) const {
    const FusedScratch at(patch.columns);
    double* r = Residual ? residuals + first_sweep : nullptr;
    Pass<N, Source, Residual> pass{
        {{patch, columns, scratch, r}, {patch, columns, scratch + at.trail, r ? r + N : r}}, flights, patch.lines};
    const int before = (index + relay.members - 1) % relay.members;
    const auto ready = [&](std::int64_t lines) {
      if (index == 0 || before == relay.member) return;
      relay.await(before, (index - 1) / relay.members * patch.lines + (lines < patch.lines ? lines : patch.lines));
    };
    while (pass.last().state != Flight<N>::State::landed) {
      pass.work(ready);
      relay.announce(index / relay.members * patch.lines + pass.last().finished());
    }
  }

  const double* padded_columns() const {
    if constexpr (!Source) return nullptr;
    double* columns = scratch + FusedScratch(patch.columns).columns;
    for (std::int64_t i = 0; i < patch.columns + 2 * (N - 1); ++i) {
      const std::int64_t x = i - (N - 1);
      columns[i] = x < 0 || x >= patch.columns ? 0 : patch.column_factor[x];
    }
    return columns + N - 1;
  }

  void run(int sweeps) const {
    const int flights = patch.lines >= N && patch.columns > 0 ? sweeps / N : 0;
    const int per_pass = flights >= 2 * relay.members ? 2 : 1, passes = (flights + per_pass - 1) / per_pass;
    const double* columns = flights > 0 ? padded_columns() : nullptr;
    for (int index = relay.member; index < passes; index += relay.members) {
      const int first = index * per_pass;
      pass(index, first * N, flights - first < per_pass ? 1 : per_pass, columns);
    }
    std::int64_t done = (passes + relay.members - 1) / relay.members * patch.lines;
    relay.meet(done);
    for (int sweep = flights * N; sweep < sweeps; ++sweep) {
      const double most = sweep_patch<Source, Residual>(patch, relay.later(done));
      if constexpr (Residual) residuals[sweep] = most;
      done += blocks_of(patch.lines);
      relay.meet(done);
    }
  }
};

template <bool Source, bool Residual>
void fused_sweeps(const Patch& patch, const Relay& relay, int sweeps, double* residuals, void* scratch) {
  FusedSweeps<Source, Residual>{patch, relay, residuals, static_cast<double*>(scratch)}.run(sweeps);
}

/// Form "poisson2d-gauss-seidel", several sweeps in one pass.
inline void gauss_seidel_fused(const KernelArgs& args) {
  const Patch patch = patch_of(args);
  const Relay relay(args.team);
  double* residuals = terms_of(args).change;
  for (int k = 0; residuals && k < args.levels; ++k) residuals[k] = 0;
  if (patch.row_factor && residuals)
    return fused_sweeps<true, true>(patch, relay, args.levels, residuals, args.scratch);
  if (patch.row_factor) return fused_sweeps<true, false>(patch, relay, args.levels, residuals, args.scratch);
  if (residuals) return fused_sweeps<false, true>(patch, relay, args.levels, residuals, args.scratch);
  fused_sweeps<false, false>(patch, relay, args.levels, residuals, args.scratch);
}

}  // namespace haloscope::HALOSCOPE_ISA
