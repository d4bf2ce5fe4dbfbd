// Figure `poisson`: the sweeps of poisson2d, function 1 of the study. Jacobi against the best copy of the same arrays,
// larger than any cache; Gauss-Seidel, one sweep at a time and many in flight, against the plain row-major loop on one
// thread. The bytes of both Gauss-Seidel forms are compared with the plain loop's before anything is timed.
#include <cstdlib>
#include <tuple>

#include "best_copy.hpp"
#include "haloscope/apps/built_in.hpp"
#include "schroeter2021/app/problem.hpp"

namespace {

using namespace haloscope;
using namespace haloscope::bench;

constexpr std::int64_t jacobi_cells = 8192, gs_cells = 4096;
constexpr int in_flight = 32;

PoissonArgs whole(const Storage& fields, int from, int to, std::int64_t cells) {
  const auto& slots = fields.views()[0];
  PoissonArgs args;
  args.in = slots[from].origin;
  args.out = slots[to].origin;
  args.row = slots[to].stride[1] / 8;
  args.region = {{0, 0, 0}, {cells, cells, 1}};
  return args;
}

std::string label(const std::string& name, int threads) {
  return name + ", " + std::to_string(threads) + " thread" + (threads > 1 ? "s" : "");
}

std::function<void()> jacobi_job(const Storage& fields, Team& team, bool residual) {
  return [&fields, &team, residual, sweep = find_kernel("poisson2d-jacobi", Real::f64).sweep] {
    team.run([&](int member) {
      PoissonArgs args = whole(fields, 0, 1, jacobi_cells);
      double change = 0;
      args.stream = true, args.change = residual ? &change : nullptr;
      std::tie(args.region.lo[1], args.region.hi[1]) = share(jacobi_cells, member, team.size());
      sweep(args);
      volatile double found = change;
      (void)found;
    });
  };
}

void measure_jacobi(int threads, int rounds) {
  Team team(threads);
  const Storage fields = make_fields(2, {jacobi_cells, jacobi_cells, 1}, 1, 8, 2, team);
  constexpr std::size_t bytes = jacobi_cells * jacobi_cells * 8;
  std::vector<Variant> v;
  v.push_back({"Jacobi sweep", jacobi_job(fields, team, false)});
  v.push_back({"Jacobi sweep with residual", jacobi_job(fields, team, true)});
  add_copies(v, bytes, fields, team);
  take_turns(v, rounds);
  const Variant& best = fastest(v, "copy");
  for (int residual : {0, 1})
    emit({"poisson", label(residual ? "Jacobi with residual" : "Jacobi", threads), v[residual].name,
          "best copy (" + best.name + ")", v[residual].seconds, best.seconds, "b/a", 0.88, ">=", threads,
          copy_notes(v, 2e-9 * static_cast<double>(bytes))});
}

/// A field in three slots: 0 for one sweep at a time, 1 for many in flight, 2 for the plain loop.
class GaussSeidel {
 public:
  explicit GaussSeidel(Team& team)
      : team_(team), fields_(make_fields(2, {gs_cells, gs_cells, 1}, 1, 8, 3, team)), progress_(team.size()) {
    for (int slot : {1, 2})
      std::memcpy(fields_.bytes(0, slot).data(), fields_.bytes(0, 0).data(), fields_.bytes(0, 0).size());
    for (int member = 0; member < team.size(); ++member)
      scratch_.emplace_back(kernel_.scratch_bytes(whole(fields_, 0, 0, gs_cells).region, in_flight));
  }

  void single() {
    team_.run([&](int member) { kernel_.sweep(part(0, member)); });
  }
  void fused() {
    team_.run([&](int member) {
      PoissonArgs args = part(1, member);
      args.levels = in_flight, args.scratch = scratch_[member].data();
      kernel_.fused(args);
    });
  }
  void plain() { gauss_seidel_plain(whole(fields_, 2, 2, gs_cells)); }

  /// Ends the program if the forms differ after the same number of sweeps.
  void verify() {
    for (int sweep = 0; sweep < in_flight; ++sweep) single(), plain();
    fused();
    for (int slot : {0, 1}) {
      const auto args = whole(fields_, 2, slot, gs_cells);
      const auto* expected = static_cast<const double*>(args.in);
      const auto* found = static_cast<const double*>(args.out);
      for (std::int64_t y = 0; y < gs_cells; ++y) {
        if (std::memcmp(expected + y * args.row, found + y * args.row, gs_cells * sizeof(double)) == 0) continue;
        std::fprintf(stderr, "poisson: %s sweeps give other bytes than the plain loop\n", slot ? "fused" : "single");
        std::exit(1);
      }
    }
  }

 private:
  PoissonArgs part(int slot, int member) {
    PoissonArgs args = whole(fields_, slot, slot, gs_cells);
    args.team = {member, team_.size(), progress_.data()};
    return args;
  }

  Team& team_;
  Kernel kernel_ = find_kernel("poisson2d-gauss-seidel", Real::f64);
  Storage fields_;
  std::vector<TeamProgress> progress_;
  std::vector<Memory> scratch_;
};

void measure_gauss_seidel(int threads, int rounds) {
  Team team(threads);
  GaussSeidel gs(team);
  gs.verify();
  std::vector<Variant> v;
  v.push_back({"one sweep at a time", [&] { gs.single(); }});
  v.push_back({std::to_string(in_flight) + " sweeps fused", [&] { gs.fused(); }});
  v.push_back({"plain loop, 1 thread", [&] { gs.plain(); }});
  take_turns(v, rounds);
  for (auto& s : v[1].seconds) s /= in_flight;
  const std::string notes = "4096 x 4096, time per sweep, results compared byte for byte, isa " +
                            std::string(find_kernel("poisson2d-gauss-seidel", Real::f64).isa);
  emit({"poisson", label("Gauss-Seidel, one sweep", threads), v[0].name, v[2].name, v[0].seconds, v[2].seconds, "b/a",
        threads == 1 ? 4.0 : 7.0, ">=", threads, notes});
  emit({"poisson", label("Gauss-Seidel, sweeps fused", threads), v[1].name, v[2].name, v[1].seconds, v[2].seconds,
        "b/a", threads == 1 ? 8.0 : 14.0, ">=", threads, notes});
}

}  // namespace

int main(int argc, char** argv) {
  haloscope::add_built_in_apps();
  const int rounds = has_flag(argc, argv, "--quick") ? 5 : 21;
  const int most = static_cast<int>(std::min<std::size_t>(2, usable_cpus().size()));
  for (int threads = 1; threads <= most; ++threads) {
    measure_jacobi(threads, rounds);
    measure_gauss_seidel(threads, rounds);
  }
  return 0;
}
