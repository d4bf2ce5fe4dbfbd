// Figure `view`: an exchange of a user's arrays against an exchange of a library field, each after a sweep. Run by
// mpiexec -n 2.
#include <mpi.h>

#include "haloscope/haloscope.hpp"
#include "harness.hpp"

namespace {

using namespace haloscope;

using Cells = FieldView<double, 3>;

/// Returns the seconds of one exchange on the slowest rank, after a sweep of the field.
double exchange_s(Exchange& halo, const Cells& u, std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < n; ++i) u(i, j, k) *= 1.0001;
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = std::chrono::steady_clock::now();
  halo.exchange();
  double worst = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return worst;
}

void compare(std::int64_t n, int split, int pairs) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::array<std::int64_t, 3> cells{n, n, n};
  cells[split] *= ranks;
  const std::string two = std::to_string(ranks), process_grid = split == 0 ? two + "x1x1" : "1x1x" + two;
  const Grid<3> grid(MPI_COMM_WORLD, {.cells = cells, .periodic = {true, true, true}, .process_grid = process_grid});
  const Field<double, 3> field(grid, {.halo = 1});
  const std::int64_t row = n + 2, plane = row * (n + 2);
  std::vector<double> array(static_cast<std::size_t>(plane * (n + 2)));
  const Cells own{array.data() + plane + row + 1, row, plane};
  auto of_array = make_exchange(grid, {view<double, 3>(grid, {own.origin}, row, plane, 1)}, "ordered/p2p");
  auto of_field = make_exchange(grid, {field}, "ordered/p2p");
  std::vector<double> a, b;
  for (int pair = -3; pair < pairs; ++pair) {
    const double one = exchange_s(of_array, own, n), other = exchange_s(of_field, field[0], n);
    if (pair < 0) continue;  // warm-up
    a.push_back(one);
    b.push_back(other);
  }
  if (rank == 0)
    std::printf(
        "{\"figure\":\"view\",\"case\":\"%s %d^3\",\"unit\":\"ratio\",\"a\":\"view\",\"b\":\"Field\",\"samples_a\":%s,"
        "\"samples_b\":%s,\"value\":\"a/b\",\"bar\":1.1,\"direction\":\"<=\",\"threads\":1,\"ranks\":%d,"
        "\"notes\":\"ordered/p2p, swept before\"}\n",
        process_grid.c_str(), static_cast<int>(n), bench::json_list(a).c_str(), bench::json_list(b).c_str(), ranks);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto cpus = bench::usable_cpus();
  bench::pin_to(cpus[static_cast<std::size_t>(rank) % cpus.size()]);
  const bool quick = argc > 1 && std::string(argv[1]) == "--quick";
  for (const int split : {2, 0})
    for (const std::int64_t n : {32, 64, 128}) compare(n, split, quick ? 11 : 41);
  MPI_Finalize();
}
