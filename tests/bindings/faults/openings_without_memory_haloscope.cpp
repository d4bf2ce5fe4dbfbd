// Openings in which memory is exhausted, sequentially in one process: see openings_without_memory.hpp.
//   usage: openings_without_memory_haloscope STRATEGY own|shared|device|guarded|stepper|guarded-stepper
//              FIRST STEP once|on|pinned all|RANK fresh|kept
//          openings_without_memory_haloscope together|apart|kept: all ranks fail in one collective call; apart: rank 0
//              alone has begun one of MPI; kept: rank 0 alone has left objects that later calls find
//          openings_without_memory_haloscope windows: windows of rank 1 that no machine has memory for
//          openings_without_memory_haloscope: fields that no machine has memory for
//          openings_without_memory_haloscope STRATEGY own|shared: an exchange for which /dev/shm may be too small
//   once: one allocation fails; on: all that follow fail too. RANK: on that rank alone.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/window_memory.hpp"
#include "haloscope/haloscope.hpp"
#include "haloscope/imitated.hpp"
#include "openings_without_memory.hpp"
#include "points.hpp"

namespace {

using haloscope::Box;
using haloscope::Field;
using haloscope::FieldRef;
using haloscope::Grid;

constexpr std::int64_t margin = 1;

/// An array of this program's, in memory of the host or of an imitated device; or one of the library's.
class Array {
 public:
  Array(const Grid<2>& grid, bool on_device)
      : own_(grid.owned()), row_(own_.extent(0) + 2 * margin), release_(std::free) {
    const auto bytes = static_cast<std::size_t>(row_ * (own_.extent(1) + 2 * margin) * 8);
    if (on_device) release_ = haloscope::imitated::release;
    begin_ = on_device ? haloscope::imitated::allocate(bytes) : std::malloc(bytes);
    first_ = static_cast<double*>(begin_) + margin * row_ + margin;
  }
  ~Array() { release_(begin_); }
  Array(const Array&) = delete;
  void show(const Field<double, 2>& field) {
    first_ = &field[0](0, 0);
    row_ = &field[0](0, 1) - first_;
  }
  FieldRef ref(const Grid<2>& grid) const {
    return haloscope::view<double, 2>(grid, std::vector<double*>{first_}, row_, 0, margin);
  }
  void fill() {
    each(margin, [](double& point, double) { point = -1; });
    each(0, [](double& point, double value) { point = value; });
  }
  bool is_right() const {
    bool right = true;
    each(margin, [&](double& point, double value) { right = right && point == value; });
    return right;
  }

 private:
  template <class Visit>
  void each(std::int64_t beyond, Visit visit) const {
    for (std::int64_t y = -beyond; y < own_.extent(1) + beyond; ++y)
      for (std::int64_t x = -beyond; x < own_.extent(0) + beyond; ++x)
        visit(first_[y * row_ + x], value_of(own_.lo[0] + x, own_.lo[1] + y));
  }
  Box own_;
  std::int64_t row_;
  void* begin_ = nullptr;
  double* first_ = nullptr;
  void (*release_)(void*);
};

/// @return "right", "wrong", or the text with which the work was refused.
template <class Work>
std::string result_of(Work work) try {
  return work() ? "right" : "wrong";
} catch (const haloscope::Error& error) {
  return std::string("refused: ") + error.what();
} catch (const std::bad_alloc&) {
  return "refused: memory is exhausted, and no text is left";
} catch (const std::exception& error) {
  return std::string("not an error of the library: ") + error.what();
}

/// In shared memory the fields are the library's. Streams of imitated devices allocate in steps, streams of others do
/// not: there steps do not count. Objects that an exception of this program ends would stay, so that all end after it.
std::string exchange_on(const Setting& with) {
  const Grid<2> grid(with.comm, {.cells = {10, 12}, .periodic = {true, true}});
  Array array(grid, with.memory == "device");
  const haloscope::Strategy strategy(with.strategy);
  const haloscope::FieldOptions options{.halo = margin, .memory = haloscope::MemoryKind::shared};
  const haloscope::ExchangeOptions how{.guard = with.memory == "guarded"};
  const haloscope::ExchangePart part{.only = {0}, .depth = margin};  // its memory is this program's
  std::vector<FieldRef> fields;
  std::optional<Field<double, 2>> field;
  std::optional<haloscope::Exchange> halo;
  const auto in_step = [&](const auto& call) { with.memory == "device" ? call() : counted(call); };
  const std::string result = result_of([&] {
    if (with.memory == "shared") {
      counted([&] { field.emplace(grid, options); });
      array.show(*field);
    }
    fields.push_back(field ? FieldRef(*field) : array.ref(grid));
    counted([&] { halo.emplace(grid.comm(), grid.layout(), fields, strategy, how); });
    bool right = true;
    for (int step = 0; step < 3; ++step) {
      array.fill();
      if (how.guard) counted([&] { halo->changed(); });
      in_step([&] { halo->exchange(); });
      right = right && array.is_right();
    }
    in_step([&] { halo->accumulate(); });
    if (with.memory != "own") return right;
    array.fill();
    counted([&] { halo->exchange(part); });
    counted([&] { halo->share(); });
    double total = 0;
    counted([&] { total = haloscope::sum(grid, fields.front()); });
    return right && array.is_right() && total > 0;
  });
  counted([&] { halo.reset(); });
  counted([&] { field.reset(); });
  return result;
}

/// Each step moves all values by one point in x; reductions add them up.
std::vector<haloscope::Stage> moving() {
  haloscope::SweepSpec sweep{.name = "move", .reads = {{0, 1}}, .writes = {0}};
  sweep.run = move;
  haloscope::Stage stage{.sweeps = {sweep}, .reductions = {{.name = "sum"}, {.name = "late sum"}}};
  stage.reductions[1].mode = haloscope::ReduceMode::nonblocking;
  return {stage};
}

std::string step_on(const Setting& with) {
  const Grid<2> grid(with.comm, {.cells = {10, 12}, .periodic = {true, true}});
  const Field<double, 2> u(grid, {.halo = margin, .slots = 2});
  const Box own = grid.owned();
  const auto each = [&](const auto& visit) {
    for (auto y = own.lo[1]; y < own.hi[1]; ++y)
      for (auto x = own.lo[0]; x < own.hi[0]; ++x) visit(u[0](x - own.lo[0], y - own.lo[1]), value_of(x, y));
  };
  each([](double& point, double value) { point = value; });
  const haloscope::Choice choice{.strategy = haloscope::Strategy(with.strategy)};
  const std::vector<FieldRef> fields{u};
  const std::vector<haloscope::Stage> stages = moving();
  const haloscope::StepperOptions how{.guard = with.memory == "guarded-stepper"};
  std::optional<haloscope::Stepper> stepper;
  const std::string result = result_of([&] {
    counted([&] { stepper.emplace(grid, fields, choice, stages, how); });
    counted([&] { stepper->run(10); });  // once around the grid
    bool right = true;
    each([&](double& point, double value) { right = right && point == value; });
    return right;
  });
  counted([&] { stepper.reset(); });
  return result;
}

/// Fields that no machine has memory for.
std::string open_huge_field(haloscope::MemoryKind kind) try {
  const Grid<2> grid(MPI_COMM_WORLD, {.cells = {1'300'000, 1'000'000}, .periodic = {true, true}});
  const Field<double, 2> field(grid, {.memory = kind});
  return "opened";
} catch (const haloscope::Error& error) {
  return std::string("refused: ") + error.what();
}

void print_huge() {
  print_all("own: " + open_huge_field(haloscope::MemoryKind::own));
  print_all("shared: " + open_huge_field(haloscope::MemoryKind::shared));
}

/// True if the halos of six fields of 27 MB in all are right on each of two ranks.
bool exchange_large(const char* strategy, haloscope::MemoryKind kind) {
  const haloscope::Grid<3> grid(MPI_COMM_WORLD, {.cells = {96, 96, 96}, .periodic = {true, true, true}});
  std::vector<Field<double, 3>> fields;
  for (int f = 0; f < 6; ++f) fields.emplace_back(grid, haloscope::FieldOptions{.halo = 4, .memory = kind});
  const auto own = grid.cells();
  for (const auto& field : fields)
    for (std::int64_t z = 0; z < own[2]; ++z)
      for (std::int64_t y = 0; y < own[1]; ++y)
        for (std::int64_t x = 0; x < own[0]; ++x) field[0](x, y, z) = 1;
  haloscope::make_exchange(grid, {fields.begin(), fields.end()}, strategy).exchange();
  bool right = true;
  for (const auto& field : fields)
    for (std::int64_t x : {std::int64_t{-4}, std::int64_t{0}, own[0] + 3})
      for (std::int64_t z = -4; z < own[2] + 4; ++z) right = right && field[0](x, -4, z) == 1;
  return right;
}

/// After a refusal the same works in memory that is available.
void print_large(const char* strategy, const char* memory) {
  const bool shared = std::strcmp(memory, "shared") == 0;
  const auto kind = shared ? haloscope::MemoryKind::shared : haloscope::MemoryKind::own;
  const std::string first = result_of([&] { return exchange_large(strategy, kind); });
  print_all(first + "; again: " + result_of([] { return exchange_large("ordered/p2p", haloscope::MemoryKind::own); }));
}

void print_huge_windows(int rank) try {
  haloscope::require_window_memory(MPI_COMM_WORLD, std::size_t{1} << (rank == 1 ? 50 : 3));
  print_all("opened");
} catch (const haloscope::Error& error) {
  print_all(std::string("refused: ") + error.what());
}

void fail_in_one_call(int rank, const std::string& how) try {
  MPI_Request barrier = MPI_REQUEST_NULL;
  haloscope::collectively(MPI_COMM_WORLD, "a test", [&] {
    if (rank == 0 && how == "kept") haloscope::note_kept();
    if (rank == 0 || how != "apart") CHECK_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &barrier));
    throw std::bad_alloc();
  });
} catch (const haloscope::Error& error) {
  print_all(std::string("refused: ") + error.what());
}

}  // namespace

std::string open_and_exchange(const Setting& with) {
  return with.memory.find("stepper") != std::string::npos ? step_on(with) : exchange_on(with);
}

int main(int argc, char** argv) {
  PMPI_Init(&argc, &argv);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // lines that are printed before a job ends are read
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 7)
    fail_all(rank, argv + 1);
  else if (argc == 3)
    print_large(argv[1], argv[2]);
  else if (argc == 2 && std::strcmp(argv[1], "windows") == 0)
    print_huge_windows(rank);
  else if (argc == 2)
    fail_in_one_call(rank, argv[1]);
  else
    print_huge();
  PMPI_Finalize();
  return 0;
}
