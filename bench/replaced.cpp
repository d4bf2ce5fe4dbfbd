// Figure `replaced`: an exchange of six faces by the library against the handwritten one of examples/replaced, on equal
// arrays, each after a sweep. Run by mpiexec -n 2.
#include <mpi.h>

#include <cstdlib>

#include "../examples/replaced/faces.hpp"
#include "haloscope/haloscope.hpp"
#include "harness.hpp"
#include "slowest.hpp"

namespace {

using namespace haloscope;

using Cells = FieldView<double, 3>;

constexpr const char* profile = HALOSCOPE_BENCH_PROFILE;  // of best()

/// Two slots of a block of n^3 doubles with one ghost layer, in the form of a user's program.
struct Block {
  explicit Block(int n) : row(n + 2), plane(row * (n + 2)) {
    for (auto& slot : points) slot.assign(static_cast<std::size_t>(plane * (n + 2)), 1.0);
  }
  double* first(int slot) { return points[slot].data() + plane + row + 1; }
  Cells operator[](int slot) { return {first(slot), row, plane}; }

  std::int64_t row, plane;
  std::array<std::vector<double>, 2> points;
};

void sweep(int n, const Cells& old, const Cells& now) {
  for (int k = 0; k < n; ++k)
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < n; ++i)
        now(i, j, k) =
            old(i, j, k) + 0.1 * ((old(i - 1, j, k) + old(i + 1, j, k)) + (old(i, j - 1, k) + old(i, j + 1, k)) +
                                  (old(i, j, k - 1) + old(i, j, k + 1)) - 6.0 * old(i, j, k));
}

/// Measures the exchange `halo` of the slots `u` against the handwritten one of another array.
template <class Slots>
void compare(const Grid<3>& grid, int n, Exchange& halo, Slots& u, bench::Result result, int pairs) {
  Block block(n);
  Faces by_hand(grid.comm(), {n, n, n});
  for (int pair = -200; pair < pairs; ++pair) {  // first a warm-up, in which `auto` tries transports and decides
    const int slot = pair & 1;
    double a = 0, b = 0;
    const auto library = [&] {
      sweep(n, u[1 - slot], u[slot]);
      a = bench::slowest_s([&] { halo.exchange(slot); });
    };
    const auto hand = [&] {
      sweep(n, block[1 - slot], block[slot]);
      b = bench::slowest_s([&] { by_hand.exchange(block.points[slot].data()); });
    };
    pair & 2 ? library() : hand();  // each goes first in half of the pairs
    pair & 2 ? hand() : library();
    if (pair < 0) continue;
    result.samples_a.push_back(a);
    result.samples_b.push_back(b);
  }
  const std::string report =
      halo.report();  // "...; auto: chose ..., ... us against ... us of p2p after ... trials of ..."
  const auto chosen = report.rfind("auto: ");
  if (chosen != std::string::npos) result.notes = report.substr(chosen, report.find(" after ") - chosen);
  if (grid.rank() == 0) bench::emit(result);
}

void compare_all(const Grid<3>& grid, const std::string& split, int n, int pairs) {
  bench::Result result{"replaced", "", "", "by hand", {}, {}, "a/b", 0, "<=", 1, "", grid.layout().size()};
  const std::string place = split + " " + std::to_string(n) + "^3 ";
  for (const std::string strategy : {"direct/p2p", "auto"}) {
    Block block(n);
    const FieldRef field = view<double, 3>(grid, {block.first(0), block.first(1)}, block.row, block.plane, 1);
    auto halo = make_exchange(grid, {field}, strategy, {.corners = false});
    result.name = place + strategy;
    result.a = strategy;
    result.bar = strategy == "auto" ? 1.0 : 1.02;
    compare(grid, n, halo, block, result, pairs);
  }
  const Best advised = best<double>(grid, profile, {.depths = {1}});
  const Field<double, 3> field(grid, {.halo = advised.halo, .slots = 2, .memory = advised.memory});
  auto halo = make_exchange(grid, {field}, advised.choice.strategy, {.corners = false});
  result.name = place + "best()";
  result.a = to_string(advised.choice.strategy);
  result.bar = 1.0;
  compare(grid, n, halo, field, result, pairs);
}

}  // namespace

int main(int argc, char** argv) {
  setenv("HALOSCOPE_CACHE", "", 1);  // each launch tries all transports
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto cpus = bench::usable_cpus();
  bench::pin_to(cpus[static_cast<std::size_t>(rank) % cpus.size()]);
  const int pairs = bench::has_flag(argc, argv, "--quick") ? 21 : 101;
  for (const int split : {2, 0}) {
    int places[3] = {1, 1, 1};
    const int wrap[3] = {1, 1, 1};
    places[split] = ranks;
    MPI_Comm cart;
    MPI_Cart_create(MPI_COMM_WORLD, 3, places, wrap, 0, &cart);
    const std::string name = split == 0 ? std::to_string(ranks) + "x1x1" : "1x1x" + std::to_string(ranks);
    for (const int n : {64, 128})
      compare_all(Grid<3>::of_cartesian(cart, {n * places[0], n * places[1], n * places[2]}), name, n, pairs);
    MPI_Comm_free(&cart);
  }
  MPI_Finalize();
}
