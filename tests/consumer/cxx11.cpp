// Halos through the classes for C++11: two arrays in 2D and one in 3D, parts, other arrays, sums; refused requests.
#include <cstdio>
#include <cstring>
#include <haloscope/cxx11.hpp>
#include <vector>

namespace {

using haloscope11::Exchange;
using haloscope11::Fields;
using haloscope11::Grid;

constexpr std::int64_t nx = 12, ny = 10, nz = 8;

/// A rank's array of a grid with `halo` ghost layers, and the values that its points should have.
template <class T>
class Array {
 public:
  Array(const Grid& grid, int dims, std::int64_t halo) : own_(grid.owned()), dims_(dims), halo_(halo) {
    std::int64_t points = 1;
    for (int d = 0; d < 3; ++d) {
      room_[d] = d < dims ? own_.hi[d] - own_.lo[d] + 2 * halo : 1;
      points *= room_[d];
    }
    values_.assign(static_cast<std::size_t>(points), T(-1));
    visit(0, [&](T& value, T right) { value = right; });
  }
  T* first() { return &at(halo_, halo_, dims_ > 2 ? halo_ : 0); }
  std::ptrdiff_t row() const { return room_[0]; }
  std::ptrdiff_t plane() const { return room_[0] * room_[1]; }
  /// Returns the number of wrong values in the owned points and `layers` around them.
  int wrong(std::int64_t layers) {
    int count = 0;
    visit(layers, [&](T& value, T right) { count += value != right; });
    return count;
  }
  /// Calls visit(value, right) for the owned points and `layers` around them.
  template <class Visit>
  void visit(std::int64_t layers, Visit visit) {
    const std::int64_t flat = dims_ > 2 ? layers : 0;
    for (std::int64_t k = -flat; k < own_.hi[2] - own_.lo[2] + flat; ++k)
      for (std::int64_t j = -layers; j < own_.hi[1] - own_.lo[1] + layers; ++j)
        for (std::int64_t i = -layers; i < own_.hi[0] - own_.lo[0] + layers; ++i)
          visit(at(i + halo_, j + halo_, dims_ > 2 ? k + halo_ : 0),
                right((own_.lo[0] + i + nx) % nx, (own_.lo[1] + j + ny) % ny, (own_.lo[2] + k + nz) % nz));
  }

 private:
  static T right(std::int64_t x, std::int64_t y, std::int64_t z) { return static_cast<T>(x + 20 * y + 400 * z); }
  T& at(std::int64_t i, std::int64_t j, std::int64_t k) {
    return values_[static_cast<std::size_t>(i + room_[0] * (j + room_[1] * k))];
  }

  hs_box own_;
  int dims_;
  std::int64_t halo_;
  std::int64_t room_[3];
  std::vector<T> values_;
};

int wrong_in_two_dimensions() {
  const Grid grid(MPI_COMM_WORLD, {nx, ny}, true);
  Array<double> u(grid, 2, 2), v(grid, 2, 2);
  Array<int> numbers(grid, 2, 1);
  Fields fields;
  fields.add(u.first(), {1, u.row()}, 2).name = "u";
  fields.add(numbers.first(), {1, numbers.row()});
  Exchange halo(grid, fields);
  hs_part part;
  const std::int32_t only[] = {0};
  hs_part_init(&part);
  part.only = only;
  part.count = 1;
  part.depth = 1;
  halo.run(part);
  int wrong = u.wrong(1) + (numbers.wrong(1) == 0 ? 1 : 0);  // the part leaves them alone
  halo.start();
  while (!halo.progress()) {
  }
  halo.finish();
  wrong += u.wrong(2) + numbers.wrong(1);
  halo.run_at({v.first(), numbers.first()});
  wrong += v.wrong(2);
  v.visit(2, [](double& value, double) { value = 1; });
  halo.accumulate();
  v.visit(0, [&](double& value, double) { wrong += value < 1; });
  Exchange both(grid, fields), one(grid, [&] {
    Fields alone;
    alone.add(u.first(), {1, u.row()}, 2);
    return alone;
  }());
  both = std::move(one);  // the two change places
  both.run_at({v.first()});
  one.run_at({u.first(), numbers.first()});
  Exchange moved(std::move(halo));
  if (moved.report().find("messages") == std::string::npos || halo.get() != nullptr) ++wrong;
  return wrong;
}

int wrong_in_three_dimensions() {
  const Grid grid(MPI_COMM_WORLD, {nx, ny, nz}, true);
  Array<float> u[2] = {Array<float>(grid, 3, 1), Array<float>(grid, 3, 1)};
  Fields fields;
  fields.add({u[0].first(), u[1].first()}, {1, u[0].row(), u[0].plane()});
  Exchange halo(grid, fields, "direct/p2p");
  halo.run(1);
  const int wrong = u[1].wrong(1) + (u[0].wrong(1) == 0 ? 1 : 0);
  halo.share();  // cells have one holder each
  halo.run();
  return wrong + u[0].wrong(1);
}

#if defined(__cpp_exceptions)
/// Returns 1 unless a call fails with HS_USAGE and a text.
template <class Call>
int not_refused(const char* text, Call call) {
  try {
    call();
  } catch (const haloscope11::Error& error) {
    if (error.status() == HS_USAGE && std::strstr(error.what(), text) != nullptr) return 0;
    std::printf("refused for another reason: %s\n", error.what());
    return 1;
  }
  std::printf("not refused: %s\n", text);
  return 1;
}

int not_refused() {
  const Grid grid(MPI_COMM_WORLD, {nx, ny}, true);
  Array<double> u(grid, 2, 1), v(grid, 2, 1);
  Fields fields, slots, strides, few, none;
  few.add(u.first(), {1});
  fields.add(u.first(), {1, u.row()});
  slots.add(u.first(), {1, u.row()});
  slots.add({v.first(), u.first()}, {1, u.row()});
  strides.add(u.first(), {1, u.row(), 1, 1});
  Exchange halo(grid, fields);
  bool flags[(nx + 2) * (ny + 2)] = {};
  Fields truths;
  truths.add(flags + u.row() + 1, {1, u.row()});
  Exchange of_truths(grid, truths);
  return not_refused("1, 2, 4 or 8 bytes", [&] { of_truths.accumulate(); }) +
         not_refused("1 to 3 dimensions",
                     [] {
                       Grid(MPI_COMM_WORLD, {4, 4, 4, 4});
                     }) +
         not_refused("no/such", [&] { Exchange(grid, fields, "no/such"); }) +
         not_refused("array 2 has other slots", [&] { Exchange(grid, slots); }) +
         not_refused("array 1 has 4 strides", [&] { Exchange(grid, strides); }) +
         not_refused("array 1 has 1 strides", [&] { Exchange(grid, few); }) +
         not_refused("0 fields", [&] { Exchange(grid, none); }) +
         not_refused("2 addresses for 1 arrays",
                     [&] {
                       halo.run_at({u.first(), v.first()});
                     }) +
         not_refused("slot", [&] { halo.run(1); });
}
#else
int not_refused() { return 0; }
#endif

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1) {  // a wrong request that the program does not handle
    const Grid grid(MPI_COMM_WORLD, {nx, ny});
    Exchange(grid, Fields(), argv[1]);
  }
  const int wrong = wrong_in_two_dimensions() + wrong_in_three_dimensions() + not_refused();
  if (wrong == 0)
    std::printf("rank %d: right\n", rank);
  else
    std::printf("rank %d: %d wrong\n", rank, wrong);
  MPI_Finalize();
}
