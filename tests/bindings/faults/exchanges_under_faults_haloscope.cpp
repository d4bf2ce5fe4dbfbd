// A program with exchanges, from the first call to the last, on fields of its own, of the library's and on imitated
// devices, and with a Stepper, for tests in which calls of MPI fail. Each rank prints the exchanges' reports, then
// "right", "wrong" or "refused: TEXT".
//   usage: exchanges_under_faults_haloscope STRATEGY HOW
// HOW: own, shared, device (the memory of the fields); guard (a guarded exchange); boxes, cartesian, reordered
// (the split of the grid); kept (exchanges until `auto` has decided, as an earlier program of this cache has); files
// (fields that u.npy in the working folder has kept, whole and from an offset); rows-to-columns (a redistribution there
// and back); stepper, reductions (of all kinds), stepper-guard, stepper-device, best (a Stepper by the choice of
// best()).
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "haloscope/haloscope.hpp"
#include "haloscope/imitated.hpp"
#include "points.hpp"
#include "toy_profile.hpp"

namespace {

using haloscope::Box;

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

constexpr haloscope::PerDimension<std::int64_t, 2> cells{10, 12};
constexpr haloscope::PerDimension<bool, 2> periodic{true, true};

/// Slabs of rows, of which the first is a row longer than the last.
haloscope::Grid<2> grid_of_boxes() {
  int rank = 0, size = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto begin = [&](int r) { return cells[1] * r / size + (r > 0 && r < size ? 1 : 0); };
  return haloscope::Grid<2>::of_boxes(MPI_COMM_WORLD, cells, periodic, Box{{0, begin(rank)}, {10, begin(rank + 1)}});
}

haloscope::Grid<2> grid_of_cartesian() {
  int dimensions[] = {1, 1}, wraps[] = {1, 1};
  PMPI_Comm_size(MPI_COMM_WORLD, &dimensions[1]);
  MPI_Comm comm;
  PMPI_Cart_create(MPI_COMM_WORLD, 2, dimensions, wraps, 0, &comm);
  const std::string slabs = "1x" + std::to_string(dimensions[1]);
  const haloscope::Grid<2> same(comm, {.cells = cells, .periodic = periodic, .process_grid = slabs});
  return haloscope::Grid<2>::of_cartesian(comm, cells);
}

haloscope::Grid<2> make_grid(const std::string& how) {
  if (how == "boxes") return grid_of_boxes();
  if (how == "cartesian") return grid_of_cartesian();
  return {MPI_COMM_WORLD, {.cells = cells, .periodic = periodic, .reorder = how == "reordered"}};
}

bool exchange_all(const std::string& strategy, const std::string& how) {
  const haloscope::Grid<2> grid = make_grid(how);
  const bool guard = how == "guard";
  const auto memory = how == "shared" ? haloscope::MemoryKind::shared : haloscope::MemoryKind::own;
  haloscope::Field<double, 2> u(grid, {.halo = 1, .slots = 2, .memory = memory});
  haloscope::Field<float, 2> v(grid, {.halo = 1, .slots = 2, .memory = memory});
  bool right = true;
  {
    auto halo = haloscope::make_exchange(grid, {u, v}, strategy, {.guard = guard});
    for (int step = 0; step < 4; ++step) {
      for (int slot : {0, 1}) {
        fill(grid, u[slot]);
        fill(grid, v[slot]);
        halo.changed(slot);
      }
      halo.start(step % 2);
      halo.progress();
      halo.finish();
      right = right && is_right(grid, u[step % 2]) && is_right(grid, v[step % 2]);
      halo.require_fresh(1, step % 2);
      halo.check_clean(step % 2);
    }
    for (int slot : {0, 1}) {
      if (guard) halo.exchange(slot);  // an accumulation of poison would be refused
      halo.accumulate(slot);
    }
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
  const haloscope::Grid<2> grid(MPI_COMM_WORLD, {.cells = cells, .periodic = periodic});
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

/// Exchanges until `auto` has decided, and once more with its cached choice.
bool exchange_as_kept(const std::string& strategy) {
  const haloscope::Grid<2> grid(MPI_COMM_WORLD, {.cells = cells, .periodic = periodic});
  const haloscope::Field<double, 2> u(grid, {.halo = 1});
  bool right = true;
  for (int turn = 0; turn < 2; ++turn) {
    auto halo = haloscope::make_exchange(grid, {u}, strategy);
    for (int step = 0; step < 500; ++step) {
      fill(grid, u[0]);
      halo.exchange();
      right = right && is_right(grid, u[0]);
    }
    std::printf("report: %s\n", halo.report().c_str());
  }
  return right;
}

/// Exchanges a field that has been in a file.
bool exchange_from_file(const std::string& strategy) {
  const haloscope::Grid<2> grid(MPI_COMM_WORLD, {.cells = cells, .periodic = periodic});
  const haloscope::Field<double, 2> written(grid, {.halo = 1}), whole(grid, {.halo = 1}), part(grid, {.halo = 1});
  fill(grid, written[0]);
  haloscope::write_field(grid, written, "u.npy");
  haloscope::read_field(grid, whole, "u.npy");
  const auto header = static_cast<std::int64_t>(std::filesystem::file_size("u.npy")) - cells[0] * cells[1] * 8;
  haloscope::write_field_at(grid, whole, "u.npy", header);
  haloscope::read_field_at(grid, part, "u.npy", header);
  auto halo = haloscope::make_exchange(grid, {whole, part}, strategy);
  halo.exchange();
  return is_right(grid, whole[0]) && is_right(grid, part[0]);
}

/// Redistributes a field from rows to columns and back, and exchanges it.
bool exchange_redistributed(const std::string& strategy) {
  int ranks = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto split = [&](const std::string& slabs) {
    return haloscope::Grid<2>(MPI_COMM_WORLD, {.cells = cells, .periodic = periodic, .process_grid = slabs});
  };
  const auto rows = split("1x" + std::to_string(ranks)), columns = split(std::to_string(ranks) + "x1");
  const haloscope::Field<double, 2> u(rows, {.halo = 1}), v(columns, {.halo = 1}), w(rows, {.halo = 1});
  fill(rows, u[0]);
  auto forth = haloscope::make_redistribution(rows, columns, {u}, {v}, strategy);
  forth.run();
  std::printf("report: %s\n", forth.report().c_str());
  auto back = haloscope::make_redistribution(columns, rows, {v}, {w}, strategy);
  back.run();
  std::printf("report: %s\n", back.report().c_str());
  auto halo = haloscope::make_exchange(rows, {w}, "ordered/p2p");
  halo.exchange();
  return is_right(rows, w[0]);
}

haloscope::SweepSpec moving(const std::string& how) {
  haloscope::SweepSpec sweep{.name = "move", .reads = {{0, 1}}, .writes = {0}};
  if (how == "stepper-device")
    sweep.launch = [](const haloscope::SweepArgs& args) {
      haloscope::imitated::launch(args.device_stream, [args] { move(args); });
    };
  else
    sweep.run = move;
  return sweep;
}

std::vector<haloscope::Reduction> reductions_of(const std::string& how) {
  if (how == "best") return {};
  if (how != "reductions") return {{.name = "sum"}};
  using haloscope::ReduceBy, haloscope::ReduceMode;
  return {{.name = "sum", .mode = ReduceMode::nonblocking},
          {.name = "late", .mode = ReduceMode::deferred},
          {.name = "signs", .numbers = 2, .by = ReduceBy::gather, .type = haloscope::NumberType::integer},
          {.name = "early", .mode = ReduceMode::nonblocking, .by = ReduceBy::gather},
          {.name = "columns", .numbers = 4, .collectives = 2, .by = ReduceBy::lists}};
}

/// @param u  the points of the first slot, which has the result of an even number of steps.
template <class Slot>
bool step_all(const haloscope::Grid<2>& grid, const haloscope::FieldRef& field, const haloscope::Choice& choice,
              const std::string& how, const Slot& u) {
  const haloscope::Stage stage{.sweeps = {moving(how)}, .reductions = reductions_of(how)};
  bool right = true;
  for (int turn = 0; turn < 2; ++turn) {
    haloscope::Stepper stepper(grid, {field}, choice, std::vector{stage}, {.guard = how == "stepper-guard"});
    const Box own = grid.owned();
    fill(grid, u);
    stepper.run(10);  // once around the grid
    for (auto y = own.lo[1]; y < own.hi[1]; ++y)
      for (auto x = own.lo[0]; x < own.hi[0]; ++x) right = right && u(x - own.lo[0], y - own.lo[1]) == value_of(x, y);
  }
  return right;
}

bool step_on_host(const std::string& strategy, const std::string& how) {
  const haloscope::Grid<2> grid(MPI_COMM_WORLD, {.cells = cells, .periodic = periodic});
  haloscope::Choice choice{.strategy = haloscope::Strategy(strategy)};
  int halo = 1;
  auto memory = haloscope::MemoryKind::own;
  if (how == "best") {
    const haloscope::Best best = haloscope::best<double>(grid, haloscope::test::toy_profile(), {.depths = {1}});
    choice = best.choice;
    halo = best.halo;
    memory = best.memory;
  }
  const haloscope::Field<double, 2> u(grid, {.halo = halo, .slots = 2, .memory = memory});
  return step_all(grid, u, choice, how, u[0]);
}

bool step_on_device(const std::string& strategy) {
  const haloscope::Grid<2> grid(MPI_COMM_WORLD, {.cells = cells, .periodic = periodic});
  const haloscope::Choice choice{.strategy = haloscope::Strategy(strategy), .device = "host"};
  const DeviceArray first(grid), second(grid);
  const auto field =
      haloscope::view<double, 2>(grid, std::vector<double*>{&first(0, 0), &second(0, 0)}, grid.cells()[0] + 2, 0, 1);
  return step_all(grid, field, choice, "stepper-device", first);
}

bool run(const std::string& strategy, const std::string& how) {
  if (how == "device") return exchange_on_device(strategy);
  if (how == "kept") return exchange_as_kept(strategy);
  if (how == "files") return exchange_from_file(strategy);
  if (how == "rows-to-columns") return exchange_redistributed(strategy);
  if (how == "stepper-device") return step_on_device(strategy);
  if (how == "best" || how == "reductions" || how.starts_with("stepper")) return step_on_host(strategy, how);
  return exchange_all(strategy, how);
}

}  // namespace

int main(int argc, char** argv) {
  PMPI_Init(&argc, &argv);  // whose error handler of MPI_COMM_WORLD ends the job; mpi4py sets one that returns errors
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
  if (found != "right") _Exit(1);  // after a failed call MPI_Finalize may wait indefinitely
  PMPI_Finalize();
  return 0;
}
