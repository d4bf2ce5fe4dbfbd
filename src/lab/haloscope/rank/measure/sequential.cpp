#include "haloscope/rank/measure/sequential.hpp"

#include <bit>
#include <vector>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/rank/measure/run.hpp"

namespace haloscope {

namespace {

/// The first quantity, with one layer of border values around it.
std::uint64_t plain_checksum(const Candidate& c, std::int64_t steps) {
  const GridSpec& grid = c.problem.grid;
  Box all{{0, 0, 0}, grid.cells}, around = all;
  for (int d = 0; d < grid.dims; ++d) {
    --around.lo[d];
    ++around.hi[d];
  }
  const std::int64_t row = around.extent(0), plane = row * around.extent(1);
  std::vector<double> field(static_cast<std::size_t>(around.volume()));
  const auto place = [&](const Index& p) {
    return static_cast<std::size_t>((p[0] - around.lo[0]) + row * (p[1] - around.lo[1]) +
                                    plane * (p[2] - around.lo[2]));
  };
  const auto each = [](const Box& box, auto visit) {
    for (std::int64_t z = box.lo[2]; z < box.hi[2]; ++z)
      for (std::int64_t y = box.lo[1]; y < box.hi[1]; ++y)
        for (std::int64_t x = box.lo[0]; x < box.hi[0]; ++x) visit(Index{x, y, z});
  };
  const auto start = initial_values(c.app, c.problem, 0, all);
  each(around, [&](const Index& p) { field[place(p)] = start(p); });
  const SlotView view{reinterpret_cast<std::byte*>(field.data() + place({0, 0, 0})), {8, row * 8, plane * 8}};
  const Centring centring = Centring::cell;
  SweepArgs args;
  args.problem = &c.problem;
  args.region = args.whole = all;
  args.in = args.out = &view;
  args.centrings = &centring;
  args.dims = grid.dims;
  for (std::int64_t k = 0; k < steps; ++k) {
    args.step = k;
    c.app.plain(args);
  }
  std::uint64_t sum = 0;
  each(all, [&](const Index& p) { sum += checksum_term(grid, 0, p, std::bit_cast<std::uint64_t>(field[place(p)])); });
  return sum;
}

}  // namespace

std::uint64_t sequential_checksum(MPI_Comm comm, const Choice& choice, std::int64_t steps) {
  int rank = 0;
  REQUIRE_MPI(MPI_Comm_rank(comm, &rank));
  std::uint64_t sum = rank == 0 ? plain_checksum(Candidate(choice), steps) : 0;
  REQUIRE_MPI(MPI_Bcast(&sum, 1, MPI_UINT64_T, 0, comm));
  return sum;
}

}  // namespace haloscope
