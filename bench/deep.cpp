// Figure `deep`: k time steps fused in the second-level cache against single steps, laplace2d f64, 8192 x 8192.
//
// Counterparts, in time per step: our best one-step sweep, and the plain loop vectorised by the compiler for this CPU.
// Before any timing, every fused result is compared byte by byte with the result of k single sweeps.
#include <cstdlib>
#include <memory>

#include "haloscope/apps/built_in.hpp"
#include "haloscope/kernels/kernel.hpp"
#include "harness.hpp"

namespace {

using namespace haloscope;
using namespace haloscope::bench;

constexpr std::int64_t cells = 8192;
constexpr int deepest = 32;
const int depths[] = {8, 16, 24, 32};
const std::vector<double> weights{0.21, 0.19, 0.22, 0.17, 0.21};

using PlainSweep = void (*)(const double* in, double* out, std::int64_t row, const double* w, std::int64_t y_lo,
                            std::int64_t y_hi, std::int64_t x_hi);

/// The loop nest that a user would write, with explicit multiply-adds so that the bits agree.
[[gnu::always_inline]] inline void plain_loop(const double* __restrict in, double* __restrict out, std::int64_t row,
                                              const double* w, std::int64_t y_lo, std::int64_t y_hi,
                                              std::int64_t x_hi) {
  const double north = w[0], west = w[1], centre = w[2], east = w[3], south = w[4];
  for (std::int64_t y = y_lo; y < y_hi; ++y) {
    const double* u = in + y * row;
    double* v = out + y * row;
    for (std::int64_t x = 0; x < x_hi; ++x) {
      double sum = north * u[x - row];
      sum = __builtin_fma(west, u[x - 1], sum);
      sum = __builtin_fma(centre, u[x], sum);
      sum = __builtin_fma(east, u[x + 1], sum);
      v[x] = __builtin_fma(south, u[x + row], sum);
    }
  }
}

void plain_baseline(const double* __restrict in, double* __restrict out, std::int64_t row, const double* w,
                    std::int64_t y_lo, std::int64_t y_hi, std::int64_t x_hi) {
  plain_loop(in, out, row, w, y_lo, y_hi, x_hi);
}
#if defined(__x86_64__)
__attribute__((target("arch=x86-64-v3"))) void plain_avx2(const double* __restrict in, double* __restrict out,
                                                          std::int64_t row, const double* w, std::int64_t y_lo,
                                                          std::int64_t y_hi, std::int64_t x_hi) {
  plain_loop(in, out, row, w, y_lo, y_hi, x_hi);
}
__attribute__((target("arch=x86-64-v4"))) void plain_avx512(const double* __restrict in, double* __restrict out,
                                                            std::int64_t row, const double* w, std::int64_t y_lo,
                                                            std::int64_t y_hi, std::int64_t x_hi) {
  plain_loop(in, out, row, w, y_lo, y_hi, x_hi);
}
#else
constexpr PlainSweep plain_avx2 = plain_baseline, plain_avx512 = plain_baseline;
#endif

/// Returns the plain loop, vectorised by the compiler for the best instruction set of this CPU.
PlainSweep plain_sweep() {
  const std::string isa = kernel_isas().front();
  return isa == "avx512" ? plain_avx512 : isa == "avx2" ? plain_avx2 : plain_baseline;
}

/// A block with a halo for the deepest fusion in four slots, and its sweeps.
class Block {
 public:
  explicit Block(Team& team) : team_(team), kernel_(find_kernel("laplace2d", Real::f64)) {
    fields_.push_back(make_fields(2, {cells, cells, 1}, deepest, 8, 4, team));
    const auto& slots = fields_[0].views()[0];
    for (int s = 0; s < 4; ++s) slot_[s] = reinterpret_cast<double*>(slots[s].origin);
    row_ = slots[0].stride[1] / 8;
    for (int m = 0; m < team.size(); ++m)
      scratch_.emplace_back(kernel_.scratch_bytes({{0, 0, 0}, {cells, cells, 1}}, deepest));
  }

  /// Makes `levels` steps from slot `from` to slot `to`, on the block grown by `reach`.
  void step(int from, int to, int levels, int reach) {
    team_.run([&](int member) {
      KernelArgs args;
      const auto [lo, hi] = share(cells + 2 * reach, member, team_.size());
      args.in = slot_[from], args.out = slot_[to], args.row = row_, args.weights = weights.data(), args.stream = true;
      args.region = {{-reach, lo - reach, 0}, {cells + reach, hi - reach, 1}};
      args.levels = levels, args.scratch = scratch_[member].data();
      if (levels > 1)
        kernel_.fused(args);
      else
        kernel_.sweep(args);
    });
  }

  void plain_step(int from, int to) {
    team_.run([&](int member) {
      const auto [lo, hi] = share(cells, member, team_.size());
      plain_(slot_[from], slot_[to], row_, weights.data(), lo, hi, cells);
    });
  }

  bool same(int a, int b) const {
    for (std::int64_t y = 0; y < cells; ++y)
      if (std::memcmp(slot_[a] + y * row_, slot_[b] + y * row_, cells * sizeof(double)) != 0) return false;
    return true;
  }

 private:
  Team& team_;
  Kernel kernel_;
  PlainSweep plain_ = plain_sweep();
  std::vector<Storage> fields_;
  std::vector<Memory> scratch_;
  double* slot_[4];
  std::int64_t row_;
};

/// Compares every fused depth, and the plain loop, with single sweeps.
void verify(Block& block) {
  int from = 0;
  for (int depth = 1; depth <= deepest; ++depth) {
    // Each step here computes the deepest region still needed, so one chain serves all depths.
    const int to = from == 2 ? 3 : 2;
    block.step(from, to, 1, deepest - depth);
    from = to;
    if (depth > 1 && std::find(std::begin(depths), std::end(depths), depth) == std::end(depths)) continue;
    if (depth == 1)
      block.plain_step(0, 1);
    else
      block.step(0, 1, depth, 0);
    if (!block.same(1, from)) {
      std::fprintf(stderr, "deep: %s gives other bytes than %d single sweeps\n",
                   depth == 1 ? "the plain loop" : "fusing", depth);
      std::exit(1);
    }
  }
}

std::vector<double> per_step(std::vector<double> seconds, int steps) {
  for (auto& s : seconds) s /= steps;
  return seconds;
}

int best_depth(Block& block, int rounds) {
  std::vector<Variant> variants;
  for (int k : depths) variants.push_back({"k=" + std::to_string(k), [&block, k] { block.step(0, 1, k, 0); }});
  take_turns(variants, rounds);
  int best = 0;
  for (int i = 1; i < static_cast<int>(variants.size()); ++i)
    if (median(variants[i].seconds) / depths[i] < median(variants[best].seconds) / depths[best]) best = i;
  return depths[best];
}

void report(const Variant& fused, int depth, const Variant& step, const Variant& plain, int threads, bool chosen) {
  const std::string label = "laplace2d f64 8192^2, " + std::to_string(threads) + " thread" + (threads > 1 ? "s" : "") +
                            (chosen ? ", best k, " : ", k=8, ");
  const std::string notes = "k=" + std::to_string(depth) + ", time per step, results compared byte for byte, isa " +
                            find_kernel("laplace2d", Real::f64).isa;
  const auto a = per_step(fused.seconds, depth);
  emit({"deep", label + "over best one-step", fused.name, step.name, a, step.seconds, "b/a", chosen ? 2.1 : 1.8,
        ">=", threads, notes});
  emit({"deep", label + "over autovectorised one-step", fused.name, plain.name, a, plain.seconds, "b/a",
        chosen ? 3.5 : 3.0, ">=", threads, notes});
}

void measure(int threads, bool quick) {
  Team team(threads);
  Block block(team);
  verify(block);
  const int chosen = best_depth(block, quick ? 1 : 3);
  std::vector<Variant> v;
  v.push_back({"fused k=8", [&] { block.step(0, 1, 8, 0); }});
  v.push_back({"one-step sweep", [&] { block.step(0, 1, 1, 0); }});
  v.push_back({"plain autovectorised loop", [&] { block.plain_step(0, 1); }});
  if (chosen != 8) v.push_back({"fused k=" + std::to_string(chosen), [&] { block.step(0, 1, chosen, 0); }});
  take_turns(v, quick ? 5 : 21);
  report(v[0], 8, v[1], v[2], threads, false);
  report(chosen == 8 ? v[0] : v[3], chosen, v[1], v[2], threads, true);
}

}  // namespace

int main(int argc, char** argv) {
  haloscope::add_built_in_apps();
  const bool quick = has_flag(argc, argv, "--quick");
  const int most = static_cast<int>(std::min<std::size_t>(2, usable_cpus().size()));
  for (int threads = 1; threads <= most; ++threads) measure(threads, quick);
  return 0;
}
