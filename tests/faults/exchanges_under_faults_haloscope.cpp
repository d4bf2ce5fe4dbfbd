// What a program does with exchanges, from the first call to the last, on fields of its own and of the library's, for
// tests in which calls of MPI fail. Each rank prints the exchanges' reports, then "right", "wrong" or "refused: TEXT".
//   usage: exchanges_under_faults_haloscope STRATEGY own|shared
#include <cstdio>
#include <cstring>
#include <string>

#include "haloscope/haloscope.hpp"

namespace {

using haloscope::Box;

double value_of(std::int64_t x, std::int64_t y) { return static_cast<double>(100 * ((y + 12) % 12) + (x + 10) % 10); }

template <class Slot>
void fill(const haloscope::Grid<2>& grid, Slot u) {
  const Box own = grid.owned();
  for (auto y = own.lo[1]; y < own.hi[1]; ++y)
    for (auto x = own.lo[0]; x < own.hi[0]; ++x) u(x - own.lo[0], y - own.lo[1]) = value_of(x, y);
}

template <class Slot>
bool is_right(const haloscope::Grid<2>& grid, Slot u) {
  const Box own = grid.owned();
  for (auto y = own.lo[1] - 1; y <= own.hi[1]; ++y)
    for (auto x = own.lo[0] - 1; x <= own.hi[0]; ++x)
      if (u(x - own.lo[0], y - own.lo[1]) != value_of(x, y)) return false;
  return true;
}

bool exchange_all(const std::string& strategy, bool shared) {
  haloscope::Grid<2> grid(MPI_COMM_WORLD, {.cells = {10, 12}, .periodic = {true, true}});
  const auto memory = shared ? haloscope::MemoryKind::shared : haloscope::MemoryKind::own;
  haloscope::Field<double, 2> u(grid, {.halo = 1, .slots = 2, .memory = memory});
  haloscope::Field<float, 2> v(grid, {.halo = 1, .slots = 2, .memory = memory});
  bool right = true;
  {
    auto halo = haloscope::make_exchange(grid, {u, v}, strategy);
    for (int step = 0; step < 4; ++step) {
      for (int slot : {0, 1}) {
        fill(grid, u[slot]);
        fill(grid, v[slot]);
      }
      halo.start(step % 2);
      halo.progress();
      halo.finish();
      right = right && is_right(grid, u[step % 2]) && is_right(grid, v[step % 2]);
    }
    halo.accumulate(0);
    halo.accumulate(1);
    std::printf("report: %s\n", halo.report().c_str());
  }
  auto again = haloscope::make_exchange(grid, {u}, strategy);
  std::printf("report: %s\n", again.report().c_str());
  fill(grid, u[0]);
  again.exchange(0);
  return right && is_right(grid, u[0]);
}

}  // namespace

int main(int argc, char** argv) {
  PMPI_Init(&argc, &argv);
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // as mpi4py does
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::string found;
  try {
    found = exchange_all(argv[1], std::strcmp(argv[2], "shared") == 0) ? "right" : "wrong";
  } catch (const haloscope::Error& error) {
    found = std::string("refused: ") + error.what();
  }
  std::printf("rank %d: %s\n", rank, found.c_str());
  std::fflush(stdout);
  PMPI_Barrier(MPI_COMM_WORLD);
  if (found != "right") _Exit(1);  // what a failed call has left may keep MPI_Finalize waiting
  PMPI_Finalize();
  return 0;
}
