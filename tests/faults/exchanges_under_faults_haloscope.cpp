// What a program does with exchanges, from the first call to the last, on fields of its own, of the library's and on
// imitated devices, and with a Stepper, for tests in which calls of MPI fail. Each rank prints the exchanges' reports, then
// "right", "wrong" or "refused: TEXT".
//   usage: exchanges_under_faults_haloscope STRATEGY own|shared|device|stepper
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "haloscope/haloscope.hpp"
#include "haloscope/imitated.hpp"

namespace {

using haloscope::Box;

double value_of(std::int64_t x, std::int64_t y) { return static_cast<double>(100 * ((y + 12) % 12) + (x + 10) % 10); }

template <class Slot>
void fill(const haloscope::Grid<2>& grid, const Slot& u) {
  const Box own = grid.owned();
  for (auto y = own.lo[1]; y < own.hi[1]; ++y)
    for (auto x = own.lo[0]; x < own.hi[0]; ++x) u(x - own.lo[0], y - own.lo[1]) = value_of(x, y);
}

template <class Slot>
bool is_right(const haloscope::Grid<2>& grid, const Slot& u) {
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

/// An array with a margin of one point in memory of an imitated device, which the host may read and write.
class DeviceArray {
 public:
  explicit DeviceArray(const haloscope::Grid<2>& grid)
      : row_(grid.cells()[0] + 2),
        memory_(static_cast<double*>(haloscope::imitated::allocate(bytes(grid))), haloscope::imitated::release) {}
  double& operator()(std::int64_t x, std::int64_t y) const { return memory_.get()[(y + 1) * row_ + x + 1]; }
  haloscope::FieldRef ref(const haloscope::Grid<2>& grid) const {
    return haloscope::view<double, 2>(grid, std::vector<double*>{&(*this)(0, 0)}, row_, 0, 1);
  }

 private:
  std::size_t bytes(const haloscope::Grid<2>& grid) const {
    return static_cast<std::size_t>(row_ * (grid.cells()[1] + 2)) * sizeof(double);
  }
  std::int64_t row_;
  std::unique_ptr<double, void (*)(void*)> memory_;
};

bool exchange_on_device(const std::string& strategy) {
  const haloscope::Grid<2> grid(MPI_COMM_WORLD, {.cells = {10, 12}, .periodic = {true, true}});
  const DeviceArray u(grid);
  const std::vector<haloscope::FieldRef> fields{u.ref(grid)};
  bool right = true;
  for (int turn = 0; turn < 2; ++turn) {
    haloscope::Exchange halo(grid.comm(), grid.layout(), fields, haloscope::Strategy(strategy));
    for (int step = 0; step < 3; ++step) {
      fill(grid, u);
      halo.exchange();
      right = right && is_right(grid, u);
    }
    halo.accumulate();
    std::printf("report: %s\n", halo.report().c_str());
  }
  return right;
}

/// Each step moves all values by one point in x; a reduction adds them up.
bool step_all(const std::string& strategy) {
  const haloscope::Grid<2> grid(MPI_COMM_WORLD, {.cells = {10, 12}, .periodic = {true, true}});
  const haloscope::Field<double, 2> u(grid, {.halo = 1, .slots = 2});
  const haloscope::Reduction sum{.name = "sum"};
  haloscope::SweepSpec sweep{.name = "move", .reads = {{0, 1}}, .writes = {0}};
  sweep.run = [](const haloscope::SweepArgs& args) {
    const auto from = args.read<double, 2>(0);
    const auto to = args.write<double, 2>(0);
    for (auto y = args.region.lo[1]; y < args.region.hi[1]; ++y)
      for (auto x = args.region.lo[0]; x < args.region.hi[0]; ++x) {
        to(x, y) = from(x - 1, y);
        if (args.reduced != nullptr) *args.reduced += to(x, y);
      }
  };
  haloscope::Choice choice;
  choice.strategy = haloscope::Strategy(strategy);
  bool right = true;
  for (int turn = 0; turn < 2; ++turn) {
    haloscope::Stepper stepper(grid, {u}, choice,
                               std::vector<haloscope::Stage>{{.sweeps = {sweep}, .reductions = {sum}}});
    fill(grid, u[0]);
    stepper.run(10);  // once around the grid
    const Box own = grid.owned();
    for (auto y = own.lo[1]; y < own.hi[1]; ++y)
      for (auto x = own.lo[0]; x < own.hi[0]; ++x)
        right = right && u[0](x - own.lo[0], y - own.lo[1]) == value_of(x, y);
  }
  return right;
}

bool run(const std::string& strategy, const std::string& how) {
  if (how == "device") return exchange_on_device(strategy);
  if (how == "stepper") return step_all(strategy);
  return exchange_all(strategy, how == "shared");
}

}  // namespace

int main(int argc, char** argv) {
  PMPI_Init(&argc, &argv);
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // as mpi4py does
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::string found;
  try {
    found = run(argv[1], argv[2]) ? "right" : "wrong";
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
