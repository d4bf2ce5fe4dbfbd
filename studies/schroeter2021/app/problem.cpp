#include "schroeter2021/app/problem.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace haloscope {
namespace {

/// Both methods in one loop nest: Gauss-Seidel reads and writes the same field.
template <bool Source, bool Residual>
double plain(const KernelArgs& a, const double* in, double* out) {
  double largest = 0;
  for (std::int64_t y = a.region.lo[1]; y < a.region.hi[1]; ++y) {
    const double* u = in + y * a.row;
    double* v = out + y * a.row;
    for (std::int64_t x = a.region.lo[0]; x < a.region.hi[0]; ++x) {
      double next = (((u[x - 1] + u[x + 1]) + u[x + a.row]) + u[x - a.row]) * 0.25;
      if constexpr (Source) next = next + terms_of(a).row_factor[y] * terms_of(a).column_factor[x];
      if constexpr (Residual) largest = std::max(largest, std::abs(u[x] - next));
      v[x] = next;
    }
  }
  return largest;
}

double plain(const KernelArgs& a, const double* in) {
  if (a.region.empty()) return 0;
  auto* out = static_cast<double*>(a.out);
  if (terms_of(a).row_factor)
    return terms_of(a).change ? plain<true, true>(a, in, out) : plain<true, false>(a, in, out);
  return terms_of(a).change ? plain<false, true>(a, in, out) : plain<false, false>(a, in, out);
}

}  // namespace

double jacobi_plain(const KernelArgs& args) { return plain(args, static_cast<const double*>(args.in)); }
double gauss_seidel_plain(const KernelArgs& args) { return plain(args, static_cast<const double*>(args.out)); }

double PoissonProblem::start(std::int64_t line, std::int64_t column) const {
  const std::int64_t n = intervals();
  if (function != 1) return 0;
  if ((line == 0 && column == n) || (line == n && column == 0)) return 0;
  const double h = 1.0 / static_cast<double>(n);
  if (column == 0) return 1.0 - h * static_cast<double>(line);
  if (line == 0) return 1.0 - h * static_cast<double>(column);
  if (column == n) return h * static_cast<double>(line);
  if (line == n) return h * static_cast<double>(column);
  return 0;
}

std::vector<double> PoissonProblem::row_factors() const {
  const double h = 1.0 / static_cast<double>(intervals());
  auto factors = column_factors();
  for (auto& f : factors) f *= 0.25 * h * h * 2 * std::numbers::pi * std::numbers::pi;
  return factors;
}

std::vector<double> PoissonProblem::column_factors() const {
  std::vector<double> factors;
  const double h = 1.0 / static_cast<double>(intervals());
  for (std::int64_t i = 0; function == 2 && i < lines(); ++i)
    factors.push_back(std::sin(std::numbers::pi * h * static_cast<double>(i)));
  return factors;
}

}  // namespace haloscope
