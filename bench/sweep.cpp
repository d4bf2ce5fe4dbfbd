// Figure `sweep`: one time step of each kernel against the best copy of the same arrays, all larger than any cache.
//
// Best copy: the fastest of a plain copy, a copy with non-temporal stores, and a copy with non-temporal stores in four
// streams. Every variant moves one read and one write per point, on fields of the library.
#include "best_copy.hpp"
#include "haloscope/apps/built_in.hpp"
#include "haloscope/kernels/kernel.hpp"

namespace {

using namespace haloscope;
using namespace haloscope::bench;

struct Case {
  std::string form;
  Real real;
  double bar;  ///< fraction of the best copy; 0: see emit_dense
};

struct Group {
  int dims;
  Index cells;
  std::vector<Case> cases;
};

const Group groups[] = {
    {2, {8192, 8192, 1}, {{"laplace2d", Real::f64, 0.88}}},
    {2, {16384, 8192, 1}, {{"laplace2d", Real::f32, 0.88}}},
    {3,
     {400, 400, 400},
     {{"laplace3d", Real::f64, 0.78}, {"advection3d-separable", Real::f64, 0.62}, {"advection3d-dense", Real::f64, 0}}},
};

/// Returns a sweep of the whole block; the team shares its rows or planes.
std::function<void()> sweep_job(const Case& c, const Group& g, const Storage& fields, Team& team) {
  const Kernel kernel = find_kernel(c.form, c.real);
  const SlotView in = fields.views()[0][0], out = fields.views()[0][1];
  const int bytes = c.real == Real::f64 ? 8 : 4;
  return [=, &team, dims = g.dims, cells = g.cells] {
    static const std::vector<double> weights(27, 1.0 / 27);
    team.run([&](int member) {
      KernelArgs args;
      args.in = in.origin, args.out = out.origin;
      args.row = in.stride[1] / bytes, args.plane = in.stride[2] / bytes;
      args.weights = weights.data(), args.stream = true;
      args.region = {{0, 0, 0}, cells};
      const auto [lo, hi] = share(cells[dims - 1], member, team.size());
      args.region.lo[dims - 1] = lo, args.region.hi[dims - 1] = hi;
      kernel.sweep(args);
    });
  };
}

/// Prints both lines of the dense form, which is bound by arithmetic as well as memory: one of its two bars suffices.
void emit_dense(const Variant& sweep, const std::vector<Variant>& variants, std::vector<double> fma_seconds,
                int threads, const std::string& notes) {
  const std::string suffices = "; one of the two dense bars (fma peak, plain copy) suffices";
  const std::string label = "advection3d-dense f64, " + std::to_string(threads) + " thread" + (threads > 1 ? "s" : "");
  emit({"sweep", label + ", of fma peak", "haloscope sweep", "27 fma per point in registers", sweep.seconds,
        std::move(fma_seconds), "b/a", 0.50, ">=", threads, notes + suffices});
  emit({"sweep", label + ", of plain copy", "haloscope sweep", "copy plain", sweep.seconds,
        fastest(variants, "copy plain").seconds, "b/a", 0.80, ">=", threads, notes + suffices});
}

void measure(const Group& g, int threads, int rounds) {
  Team team(threads);
  const int bytes = g.cases[0].real == Real::f64 ? 8 : 4;
  const Storage fields = make_fields(g.dims, g.cells, 1, bytes, 2, team);
  const auto points = g.cells[0] * g.cells[1] * g.cells[2];

  std::vector<Variant> variants;
  for (const auto& c : g.cases) variants.push_back({c.form, sweep_job(c, g, fields, team)});
  const auto copied = static_cast<std::size_t>(points) * bytes;
  add_copies(variants, copied, fields, team);
  const bool dense = g.cases.back().form == "advection3d-dense";
  constexpr std::int64_t burst = 40'000'000;
  if (dense) variants.push_back({"fma", [&team] { team.run([](int) { run_fma(burst); }); }});
  take_turns(variants, rounds);

  const std::string notes = copy_notes(variants, 2e-9 * static_cast<double>(copied));
  const Variant& best = fastest(variants, "copy");
  for (std::size_t i = 0; i < g.cases.size(); ++i) {
    const Case& c = g.cases[i];
    if (c.form == "advection3d-dense") {
      // The seconds that all fmas of one sweep would take at the rate of the burst that was timed in the same round.
      auto seconds = variants.back().seconds;
      const double scale = 27.0 * static_cast<double>(points) / (run_fma(burst) * threads);
      for (auto& s : seconds) s *= scale;
      emit_dense(variants[i], variants, std::move(seconds), threads, notes);
      continue;
    }
    emit({"sweep",
          c.form + " " + to_word(c.real) + ", " + std::to_string(threads) + " thread" + (threads > 1 ? "s" : ""),
          "haloscope sweep", "best copy (" + best.name + ")", variants[i].seconds, best.seconds, "b/a", c.bar,
          ">=", threads, notes});
  }
}

}  // namespace

int main(int argc, char** argv) {
  haloscope::add_built_in_apps();
  const int rounds = has_flag(argc, argv, "--quick") ? 5 : 21;
  const int most = static_cast<int>(std::min<std::size_t>(2, usable_cpus().size()));
  for (int threads = 1; threads <= most; ++threads)
    for (const auto& group : groups) measure(group, threads, rounds);
  return 0;
}
