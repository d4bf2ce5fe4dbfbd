// Figure `redistribute`: fields that move between splits of a grid, against the best copy of as many bytes on each
// rank. Run by mpiexec -n 2.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "haloscope/haloscope.hpp"
#include "haloscope/kernels/probe.hpp"
#include "harness.hpp"
#include "slowest.hpp"

namespace {

using namespace haloscope;

constexpr std::int64_t n = 256;

/// Memory of a rank's share of the field, which the best of two kinds of copies fills.
class Copy {
 public:
  explicit Copy(std::size_t bytes) : from_(bytes / 8 + 8, 1.0), to_(bytes / 8 + 8, 2.0), bytes_(bytes / 64 * 64) {}
  double best_s() {
    const auto line = [](std::vector<double>& of) {
      auto* at = reinterpret_cast<std::byte*>(of.data());
      return at + (-reinterpret_cast<std::uintptr_t>(at) & 63);
    };
    double best = 1e9;
    for (const CopyKind kind : {CopyKind::plain, CopyKind::stream})
      best = std::min(best, bench::slowest_s([&] { copy_bytes(kind, line(to_), line(from_), bytes_); }));
    return best;
  }

 private:
  std::vector<double> from_, to_;
  std::size_t bytes_;
};

void compare(const std::string& name, const std::string& process_grid, const std::string& strategy, int pairs) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto grid_of = [&](const std::string& split) {
    return Grid<3>(MPI_COMM_WORLD, {.cells = {n, n, n}, .process_grid = split});
  };
  const std::string number = std::to_string(ranks);
  const Grid<3> from = grid_of("1x1x" + number), to = grid_of(process_grid);
  const MemoryKind memory = needs_shared_fields(strategy) ? MemoryKind::shared : MemoryKind::own;
  const Field<double, 3> u(from, {.halo = 1, .memory = memory, .all_shared = true}),
      v(to, {.halo = 1, .memory = memory, .all_shared = true});
  auto move = make_redistribution(from, to, {u}, {v}, strategy);
  Copy copy(static_cast<std::size_t>(8 * n * n * n / ranks));
  std::vector<double> a, b;
  for (int pair = -2; pair < pairs; ++pair) {
    const double one = copy.best_s(), other = bench::slowest_s([&] { move.run(); });
    if (pair < 0) continue;  // warm-up
    a.push_back(one);
    b.push_back(other);
  }
  if (rank == 0)
    std::printf(
        "{\"figure\":\"redistribute\",\"case\":\"%s %s\",\"unit\":\"ratio\",\"a\":\"best "
        "copy\",\"b\":\"redistribution\","
        "\"samples_a\":%s,\"samples_b\":%s,\"value\":\"a/"
        "b\",\"bar\":%s,\"direction\":\">=\",\"threads\":1,\"ranks\":%d,"
        "\"notes\":\"%d^3 doubles; each rank copies as many bytes as it owns\"}\n",
        name.c_str(), strategy.c_str(), bench::json_list(a).c_str(), bench::json_list(b).c_str(),
        memory == MemoryKind::shared ? "0.8" : "null", ranks, static_cast<int>(n));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto cpus = bench::usable_cpus();
  bench::pin_to(cpus[static_cast<std::size_t>(rank) % cpus.size()]);
  const bool quick = argc > 1 && std::string(argv[1]) == "--quick";
  const std::string number = std::to_string(ranks);
  for (const char* strategy : {"direct/shared:pull", "direct/shared", "direct/shared:packed", "direct/p2p"}) {
    compare("planes to pencils", "1x" + number + "x1", strategy, quick ? 5 : 21);
    compare("planes to columns", number + "x1x1", strategy, quick ? 5 : 21);
  }
  MPI_Finalize();
}
