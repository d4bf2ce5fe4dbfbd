// Openings in which memory is exhausted, one after another in one process: in opening number n the n-th allocation fails, and the same is
// opened again with all memory there. Each rank prints "n: RESULT; again: RESULT", results being "right", "wrong" or
// "refused: TEXT"; "done" where no rank made n allocations.
//   usage: openings_without_memory_haloscope STRATEGY own|shared|device FIRST STEP once|on all|RANK
//          openings_without_memory_haloscope together|apart: all ranks fail in one collective call; apart: rank 0 has begun one of MPI
//          openings_without_memory_haloscope: fields that no machine has memory for
//   once: one allocation fails; on: all that follow fail too. RANK: on that rank alone.
#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/haloscope.hpp"
#include "haloscope/imitated.hpp"

namespace {

using haloscope::Box;
using haloscope::Field;
using haloscope::FieldRef;
using haloscope::Grid;

struct Setting {
  std::string strategy, memory;
  bool on, here;  // here: this rank is to fail
  int rank;
  MPI_Comm comm;
};

double value_of(std::int64_t x, std::int64_t y) { return static_cast<double>(100 * ((y + 12) % 12) + (x + 10) % 10); }

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

template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

/// Calls of the library, whose allocations count. Those of this program do not.
template <class Call>
void counted(Call call) {
  static auto* const count = find<void(int)>("count_allocations");
  struct End {
    ~End() { count(0); }
  } end;
  count(1);
  call();
}

/// In shared memory the fields are the library's. Streams of imitated devices allocate in steps, those of others do not: there
/// steps do not count.
std::string open_and_exchange(const Setting& with) try {
  const Grid<2> grid(with.comm, {.cells = {10, 12}, .periodic = {true, true}});
  Array array(grid, with.memory == "device");
  const haloscope::Strategy strategy(with.strategy);
  const haloscope::FieldOptions options{.halo = margin, .memory = haloscope::MemoryKind::shared};
  std::optional<Field<double, 2>> field;
  if (with.memory == "shared") {
    counted([&] { field.emplace(grid, options); });
    array.show(*field);
  }
  const std::vector<FieldRef> fields{field ? FieldRef(*field) : array.ref(grid)};
  std::optional<haloscope::Exchange> halo;
  counted([&] { halo.emplace(grid.comm(), grid.layout(), fields, strategy); });
  const auto in_step = [&](const auto& call) { with.memory == "device" ? call() : counted(call); };
  bool right = true;
  for (int step = 0; step < 3; ++step) {
    array.fill();
    in_step([&] { halo->exchange(); });
    right = right && array.is_right();
  }
  in_step([&] { halo->accumulate(); });
  counted([&] { halo.reset(); });
  return right ? "right" : "wrong";
} catch (const haloscope::Error& error) {
  return std::string("refused: ") + error.what();
} catch (const std::bad_alloc&) {
  return "refused: memory is exhausted, and no text is left";
} catch (const std::exception& error) {
  return std::string("not an error of the library: ") + error.what();
}

/// On a communicator of its own, so that nothing is there from the time before.
std::string attempt(Setting with, long first, long last) {
  PMPI_Comm_dup(MPI_COMM_WORLD, &with.comm);
  find<void(long, long)>("fail_allocations")(first, last);
  std::string result = open_and_exchange(with);
  PMPI_Comm_free(&with.comm);
  return result;
}

using Line = std::array<char, 1024>;

/// Rank 0 prints the lines of all ranks, which would else be mixed.
void print_all(const std::string& text) {
  Line line{};
  std::snprintf(line.data(), line.size(), "%s", text.c_str());
  int size = 1;
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<Line> all(static_cast<std::size_t>(size));
  PMPI_Gather(line.data(), sizeof line, MPI_BYTE, all.data(), sizeof line, MPI_BYTE, 0, MPI_COMM_WORLD);
  for (const Line& each : all)
    if (each[0] != '\0') std::puts(each.data());
}

/// @return whether an allocation has failed on some rank.
bool fail_one(const Setting& with, long number) {
  const std::string name = std::to_string(number);
  print_all(with.rank == 0 ? name : "");
  const std::string result = attempt(with, with.here ? number : 0, !with.here ? -1 : with.on ? 1L << 60 : number);
  int failed = find<long()>("failed_allocations")() > 0;
  PMPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
  const std::string again = attempt(with, 0, -1);
  print_all(name + ": " + result + "; again: " + again);
  return failed != 0;
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

void fail_in_one_call(bool begins) try {
  MPI_Request barrier = MPI_REQUEST_NULL;
  haloscope::collectively(MPI_COMM_WORLD, "a test", [&] {
    if (begins) CHECK_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &barrier));
    throw std::bad_alloc();
  });
} catch (const haloscope::Error& error) {
  print_all(std::string("refused: ") + error.what());
}

void fail_all(int rank, char** words) {
  const Setting with{words[0],
                     words[1],
                     std::strcmp(words[4], "on") == 0,
                     std::strcmp(words[5], "all") == 0 || std::atoi(words[5]) == rank,
                     rank,
                     MPI_COMM_WORLD};
  attempt(with, 0, -1);  // what is made once a process stays
  const long before = find<long()>("held_allocations")(), first = std::atol(words[2]), step = std::atol(words[3]);
  long number = first;
  while (fail_one(with, number)) number += step;
  const long held = find<long()>("held_allocations")() - before;
  print_all("done: " + std::to_string(held) + " allocations held");
}

}  // namespace

int main(int argc, char** argv) {
  PMPI_Init(&argc, &argv);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // what stands there before a job ends is read
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 6)
    fail_all(rank, argv + 1);
  else if (argc == 2)
    fail_in_one_call(rank == 0 || std::strcmp(argv[1], "together") == 0);
  else
    print_huge();
  PMPI_Finalize();
  return 0;
}
