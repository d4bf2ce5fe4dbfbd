// Kernels of cg3d: products with the seven-point matrix, updates of vectors and dot products, apart and fused.
// Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include "davis2017/app/cg3d/operands.hpp"
#include "haloscope/kernels/along.hpp"
#include "haloscope/kernels/jam.hpp"
#include "haloscope/kernels/kernel_table.hpp"

namespace haloscope::HALOSCOPE_ISA {

/// The sums of a dot product's parts, see ReproducibleSum.
class DotProduct {
 public:
  static constexpr int parts = cg_sum_parts, full = full_lanes<double>;
  explicit DotProduct(const double* split) : split_(split) {}

  template <int N>
  HALOSCOPE_INLINE void add(Vec<double, N> term) {
#pragma GCC unroll 4
    for (int i = 0; i < parts; ++i) {
      const Vec<double, N> split = Vec<double, N>::splat(split_[i]), part = (term + split) - split;
      if constexpr (N == full) {
        wide_[i] = wide_[i] + part;
      } else {
        for (int l = 0; l < N; ++l) single_[i] += part.lane(l);
      }
      term = term - part;
    }
  }
  void finish(double* sums) const {
    for (int i = 0; i < parts; ++i) {
      double sum = single_[i];
      for (int l = 0; l < full; ++l) sum += wide_[i].lane(l);
      sums[i] += sum;
    }
  }

 private:
  const double* split_;
  Vec<double, full> wide_[parts]{};
  double single_[parts]{};
};

/// The products u v and u u, whose parts follow each other in a reduction's numbers.
class TwoProducts {
 public:
  explicit TwoProducts(const KernelArgs& args)
      : product_(args.weights + cg_split), self_(args.weights + cg_split + cg_sum_parts), sums_(args.reduced) {}

  template <int N>
  HALOSCOPE_INLINE void add(Vec<double, N> u, Vec<double, N> v) {
    product_.add(u * v);
    self_.add(u * u);
  }
  void finish() const {
    if (!sums_) return;
    product_.finish(sums_);
    self_.finish(sums_ + cg_sum_parts);
  }

 private:
  DotProduct product_, self_;
  double* sums_;
};

/// The products u v, u u and v v, in the same order.
class ThreeProducts {
 public:
  explicit ThreeProducts(const KernelArgs& args)
      : first_(args), other_(args.weights + cg_split + 2 * cg_sum_parts), sums_(args.reduced) {}

  template <int N>
  HALOSCOPE_INLINE void add(Vec<double, N> u, Vec<double, N> v) {
    first_.add(u, v);
    other_.add(v * v);
  }
  void finish() const {
    first_.finish();
    if (sums_) other_.finish(sums_ + 2 * cg_sum_parts);
  }

 private:
  TwoProducts first_;
  DotProduct other_;
  double* sums_;
};

/// Writes a row of results: past the caches if requested and the row is long.
class RowWriter {
 public:
  static constexpr int N = full_lanes<double>;
  RowWriter(bool stream, std::int64_t n) : stream_(can_stream && stream && n >= 4 * N) {}
  bool streams() const { return stream_; }

  /// f(Lanes<N>, x) returns the elements from x on.
  template <class F>
  HALOSCOPE_INLINE void write(double* to, std::int64_t n, const F& f) const {
    if (!stream_) return along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA { f(lanes, x).store(to + x); });
    std::int64_t x = 0;
    for (const int head = to_boundary<N>(to); x < head; ++x) f(Lanes<1>{}, x).store(to + x);
    for (; x + N <= n; x += N) store_stream(to + x, f(Lanes<N>{}, x));
    for (; x < n; ++x) f(Lanes<1>{}, x).store(to + x);
  }

 private:
  bool stream_;
};

/// Calls f(places, n) for each row of the region, with the beginning of the row of each operand.
template <int Operands, class F>
HALOSCOPE_INLINE void each_row_of(const KernelArgs& args, const F& f) {
  struct Place {
    const double* from;
    double* to;
  };
  const Bounds b(args.region);
  for (std::int64_t z = b.lo[2]; z < b.hi[2]; ++z)
    for (std::int64_t y = b.lo[1]; y < b.hi[1]; ++y) {
      Place at[Operands];
      for (int i = 0; i < Operands; ++i) {
        const Operand& o = args.operands[i];
        const std::int64_t first = b.lo[0] + y * o.row + z * o.plane;
        at[i] = {o.from + first, o.to + first};
      }
      f(at, b.hi[0] - b.lo[0]);
    }
}

/// Six times the centre less the six neighbours, always added in this order.
template <int N, class P>
HALOSCOPE_INLINE Vec<double, N> seven_points(P centre, P south, P north, P below, P above) {
  using V = Vec<double, N>;
  const V around =
      ((((V::load(centre - 1) + V::load(centre + 1)) + V::load(south)) + V::load(north)) + V::load(below)) +
      V::load(above);
  return V::splat(6) * V::load(centre) - around;
}

/// Rows of a block of which three planes, with a row more on each side, take at most `cache_bytes`; at least one.
inline std::int64_t block_rows(std::int64_t rows, std::int64_t row_bytes, std::int64_t cache_bytes) {
  const std::int64_t fit = cache_bytes / (3 * row_bytes) - 2;
  return fit >= rows ? rows : fit < 1 ? 1 : fit;
}

/// Operands: v, A v. With Dots the products v (A v) and v v too.
template <bool Dots>
void cg_product(const KernelArgs& args) {
  const Bounds b(args.region);
  const Operand in = args.operands[0], out = args.operands[1];
  const std::int64_t n = b.hi[0] - b.lo[0];
  TwoProducts products(args);
  const RowWriter writer(args.stream, n);
  const std::int64_t block = block_rows(b.hi[1] - b.lo[1], in.row * 8, cg_ring_bytes);
  for (std::int64_t y0 = b.lo[1]; y0 < b.hi[1]; y0 += block)
    for (std::int64_t z = b.lo[2]; z < b.hi[2]; ++z)
      for (std::int64_t y = y0; y < y0 + block && y < b.hi[1]; ++y) {
        const double* v = in.from + b.lo[0] + y * in.row + z * in.plane;
        writer.write(out.to + b.lo[0] + y * out.row + z * out.plane, n,
                     [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
                       constexpr int N = decltype(lanes)::count;
                       const double* c = v + x;
                       const auto result = seven_points<N>(c, c - in.row, c + in.row, c - in.plane, c + in.plane);
                       if constexpr (Dots) products.add(Vec<double, N>::load(c), result);
                       return result;
                     });
      }
  if (writer.streams()) stream_fence();
  if constexpr (Dots) products.finish();
}

/// Calls f(u, v) for the vectors of two operands.
template <class F>
HALOSCOPE_INLINE void each_pair(const KernelArgs& args, const F& f) {
  each_row_of<2>(args, [&](const auto* at, std::int64_t n) HALOSCOPE_LAMBDA {
    along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      using V = Vec<double, decltype(lanes)::count>;
      f(V::load(at[0].from + x), V::load(at[1].from + x));
    });
  });
}

/// Operands: u, v. The product u v.
inline void cg_dot(const KernelArgs& args) {
  DotProduct product(args.weights + cg_split);
  each_pair(args, [&](auto u, auto v) HALOSCOPE_LAMBDA { product.add(u * v); });
  if (args.reduced) product.finish(args.reduced);
}

/// Operands: u, v. TwoProducts or ThreeProducts of them.
template <class Products>
void cg_dots(const KernelArgs& args) {
  Products products(args);
  each_pair(args, [&](auto u, auto v) HALOSCOPE_LAMBDA { products.add(u, v); });
  products.finish();
}

/// Operands: v, u. v += f u, or with ScalesTarget v = u + f v; f is entry Factor of the weights.
template <int Factor, bool ScalesTarget>
void cg_add(const KernelArgs& args) {
  constexpr int scaled = ScalesTarget ? 0 : 1;
  const double factor = args.weights[Factor];
  each_row_of<2>(args, [&](const auto* at, std::int64_t n) HALOSCOPE_LAMBDA {
    along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      using V = Vec<double, decltype(lanes)::count>;
      (V::load(at[1 - scaled].from + x) + V::splat(factor) * V::load(at[scaled].from + x)).store(at[0].to + x);
    });
  });
}

/// Operands: x, r, p, q. x += alpha p, r -= alpha q, and r r.
inline void cg_update(const KernelArgs& args) {
  const double alpha = args.weights[cg_alpha], less = args.weights[cg_less_alpha];
  DotProduct residual(args.weights + cg_split);
  each_row_of<4>(args, [&](const auto* at, std::int64_t n) HALOSCOPE_LAMBDA {
    along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      using V = Vec<double, decltype(lanes)::count>;
      (V::load(at[0].from + x) + V::splat(alpha) * V::load(at[2].from + x)).store(at[0].to + x);
      const V r = V::load(at[1].from + x) + V::splat(less) * V::load(at[3].from + x);
      r.store(at[1].to + x);
      residual.add(r * r);
    });
  });
  if (args.reduced) residual.finish(args.reduced);
}

/// Operands: x, r, p, q, w. p = r + beta p, q = w + beta q, x += alpha p, r -= alpha q.
inline void cg_update_all(const KernelArgs& args) {
  const double alpha = args.weights[cg_alpha], less = args.weights[cg_less_alpha], beta = args.weights[cg_beta];
  each_row_of<5>(args, [&](const auto* at, std::int64_t n) HALOSCOPE_LAMBDA {
    along(n, [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      using V = Vec<double, decltype(lanes)::count>;
      const V r = V::load(at[1].from + x);
      const V p = r + V::splat(beta) * V::load(at[2].from + x);
      const V q = V::load(at[4].from + x) + V::splat(beta) * V::load(at[3].from + x);
      p.store(at[2].to + x);
      q.store(at[3].to + x);
      (V::load(at[0].from + x) + V::splat(alpha) * p).store(at[0].to + x);
      (r + V::splat(less) * q).store(at[1].to + x);
    });
  });
}

/// Operands: x, r, p, q, w, z, v. p = r + beta p, q = w + beta q, z = v + beta z, x += alpha p, r -= alpha q,
/// w -= alpha z, and r w, r r and w w.
inline void cg_update_ahead(const KernelArgs& args) {
  const double alpha = args.weights[cg_alpha], less = args.weights[cg_less_alpha], beta = args.weights[cg_beta];
  ThreeProducts products(args);
  each_row_of<7>(args, [&](const auto* at, std::int64_t n) HALOSCOPE_LAMBDA {
    along(n, [&](auto lanes, std::int64_t i) HALOSCOPE_LAMBDA {
      using V = Vec<double, decltype(lanes)::count>;
      const V p = V::load(at[1].from + i) + V::splat(beta) * V::load(at[2].from + i);
      const V q = V::load(at[4].from + i) + V::splat(beta) * V::load(at[3].from + i);
      const V z = V::load(at[6].from + i) + V::splat(beta) * V::load(at[5].from + i);
      const V r = V::load(at[1].from + i) + V::splat(less) * q, w = V::load(at[4].from + i) + V::splat(less) * z;
      p.store(at[2].to + i);
      q.store(at[3].to + i);
      z.store(at[5].to + i);
      (V::load(at[0].from + i) + V::splat(alpha) * p).store(at[0].to + i);
      r.store(at[1].to + i);
      w.store(at[4].to + i);
      products.add(r, w);
    });
  });
  products.finish();
}

/// The new direction on three planes of a block of rows, one cell more on each side.
class DirectionRing {
 public:
  DirectionRing(const KernelArgs& args, std::int64_t n, std::int64_t rows)
      : p_(args.operands[0]),
        r_(args.operands[1]),
        beta_(args.weights[cg_beta]),
        n_(n),
        pitch_(cg_ring_pitch(n)),
        plane_(pitch_ * (rows + 2)),
        cells_(static_cast<double*>(args.scratch)),
        writer_(args.stream, n) {}

  /// Returns the row of cells 0 .. n in the ring; row -1 is the one before the block.
  HALOSCOPE_INLINE double* row(std::int64_t y, std::int64_t z) const {
    return cells_ + ((z + 3) % 3) * plane_ + (y + 1) * pitch_ + 8;
  }
  std::int64_t pitch() const { return pitch_; }
  /// Computes a row from the old direction and the residual; own rows are written to memory too.
  HALOSCOPE_INLINE void fill(double* to, std::int64_t x, std::int64_t y, std::int64_t z, bool own) const {
    const double* p = p_.from + x + y * p_.row + z * p_.plane;
    const double* r = r_.from + x + y * r_.row + z * r_.plane;
    to[-1] = r[-1] + beta_ * p[-1];
    to[n_] = r[n_] + beta_ * p[n_];
    const auto next = [&](auto lanes, std::int64_t i) HALOSCOPE_LAMBDA {
      using V = Vec<double, decltype(lanes)::count>;
      const V value = V::load(r + i) + V::splat(beta_) * V::load(p + i);
      value.store(to + i);
      return value;
    };
    if (own)
      writer_.write(p_.to + x + y * p_.row + z * p_.plane, n_, next);
    else
      along(n_, next);
  }

 private:
  const Operand p_, r_;
  double beta_;
  std::int64_t n_, pitch_, plane_;
  double* cells_;
  RowWriter writer_;
};

/// Operands: p, r, q. p = r + beta p, q = A p, p q and p p in one pass: planes of p stay in the cache until q needs
/// them.
inline void cg_direction(const KernelArgs& args) {
  const Bounds b(args.region);
  if (b.empty()) return;
  const std::int64_t n = b.hi[0] - b.lo[0];
  const std::int64_t block = block_rows(b.hi[1] - b.lo[1], cg_ring_pitch(n) * 8, cg_ring_bytes);
  const Operand q = args.operands[2];
  const DirectionRing ring(args, n, block);
  const RowWriter writer(args.stream, n);
  TwoProducts products(args);
  for (std::int64_t y0 = b.lo[1]; y0 < b.hi[1]; y0 += block) {
    const std::int64_t rows = b.hi[1] - y0 < block ? b.hi[1] - y0 : block;
    for (std::int64_t z = b.lo[2] - 1; z <= b.hi[2]; ++z) {
      for (std::int64_t y = -1; y <= rows; ++y) {
        const bool own = y >= 0 && y < rows && z >= b.lo[2] && z < b.hi[2];
        ring.fill(ring.row(y, z), b.lo[0], y0 + y, z, own);
      }
      if (z <= b.lo[2]) continue;
      for (std::int64_t y = 0; y < rows; ++y) {
        const double *c = ring.row(y, z - 1), *below = ring.row(y, z - 2), *above = ring.row(y, z);
        writer.write(q.to + b.lo[0] + (y0 + y) * q.row + (z - 1) * q.plane, n,
                     [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
                       constexpr int N = decltype(lanes)::count;
                       const auto result =
                           seven_points<N>(c + x, c + x - ring.pitch(), c + x + ring.pitch(), below + x, above + x);
                       products.add(Vec<double, N>::load(c + x), result);
                       return result;
                     });
      }
    }
  }
  if (writer.streams()) stream_fence();
  products.finish();
}

inline void add_cg3d(KernelTable& table, const char* isa) {
  const auto add = [&](const char* name, void (*sweep)(const KernelArgs&)) {
    table.add({name, Real::f64, {sweep, nullptr, nullptr, isa}});
  };
  add("cg3d-product", cg_product<false>);
  add("cg3d-product-and-dots", cg_product<true>);
  add("cg3d-dot", cg_dot);
  add("cg3d-dots", cg_dots<TwoProducts>);
  add("cg3d-three-dots", cg_dots<ThreeProducts>);
  add("cg3d-add-to-scaled", cg_add<cg_beta, true>);
  add("cg3d-add-scaled", cg_add<cg_alpha, false>);
  add("cg3d-subtract-scaled", cg_add<cg_less_alpha, false>);
  add("cg3d-update", cg_update);
  add("cg3d-update-all", cg_update_all);
  add("cg3d-update-ahead", cg_update_ahead);
  add("cg3d-direction", cg_direction);
}

}  // namespace haloscope::HALOSCOPE_ISA
