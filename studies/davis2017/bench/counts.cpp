// Counts of hydro3d's kernels in variants A to E: operations, loads, stores and misses of two modelled caches, as JSON.
// The kernels' own sources run with vectors that count (counted/), on addresses alone. A value that a kernel loads is
// counted at each of its loads: a compiler keeps some values in registers, and spills others.
//
// usage: bench_counts SIDE... > data/counts.json
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#define HALOSCOPE_ISA isa_counted
#include "davis2017/app/hydro3d/arrays.hpp"
#include "davis2017/app/hydro3d/gather.hpp"
#include "haloscope/field/memory.hpp"

namespace {

using namespace haloscope;
using namespace haloscope::isa_counted::hydro;
using Scalar = Plainly<1>;
using Vector = Plainly<2>;

constexpr std::int64_t halo = 3;
constexpr std::int64_t whole = 50;   // cells per side up to which all cells are visited
constexpr std::int64_t sample = 16;  // layers of the outermost loop in larger cubes, which repeat them

/// Addresses of the fields of a cube as haloscope-rank lays them out, and of the memory that kernels keep.
class Addresses {
 public:
  explicit Addresses(std::int64_t side) : side_(side) {
    const std::int64_t extent = side + 1 + 2 * halo;
    const auto strides = field_strides({extent, extent, extent}, sizeof(double));
    const std::int64_t row = strides[1] / 8, plane = strides[2] / 8;
    std::size_t at = 0;
    for (std::size_t q = 0; q < operands_.size(); ++q) {
      at = staggered_offset(at, q);
      double* const origin = address(at) + halo * (1 + row + plane);
      operands_[q] = {origin, origin, row, plane};
      at += static_cast<std::size_t>(extent * strides[2]);
    }
    scratch_ = address(staggered_offset(at, operands_.size()));
    weights_.fill(1);
  }

  /// Returns the arguments of a kernel for the layers of a dimension: all of a small cube.
  KernelArgs args(int outermost) const {
    KernelArgs all;
    all.region = {{0, 0, 0}, {side_, side_, side_}};
    if (side_ > whole) all.region.hi[static_cast<std::size_t>(outermost)] = sample;
    all.points = all.region;
    all.operands = operands_.data();
    all.weights = weights_.data();
    all.scratch = scratch_;
    return all;
  }

 private:
  static double* address(std::size_t at) { return reinterpret_cast<double*>((std::uintptr_t{1} << 32) + at); }

  std::int64_t side_;
  std::array<Operand, field_count> operands_;
  std::array<double, weight_count> weights_;
  double* scratch_;
};

using Sweep = std::function<void(const KernelArgs&)>;

void count(const char* kernel, char variant, std::int64_t side, const KernelArgs& args, const Sweep& sweep) {
  counted::Tally& t = counted::tally();
  t = counted::Tally();
  sweep(args);
  const auto print = [](const char* name, std::int64_t value, const char* end) {
    std::printf("\"%s\": %lld%s", name, static_cast<long long>(value), end);
  };
  static const char* separator = "[\n";
  std::printf("%s{\"kernel\": \"%s\", \"variant\": \"%c\", ", separator, kernel, variant);
  separator = ",\n";
  print("cells_per_side", side, ", ");
  print("cells", args.region.volume(), ", ");
  print("operations", t.operations, ", ");
  print("vector_operations", t.vector_operations, ", ");
  print("loads", t.loads, ", ");
  print("stores", t.stores, ", ");
  print("l1_misses", t.l1_misses, ", ");
  print("l2_misses", t.l2_misses, "}");
}

/// Counts the remap in one dimension. Lines along z have x as the outermost loop, rows of a remap along z have y.
void count_remap(const Addresses& at, std::int64_t side, int d) {
  const Turn turn{d, false};
  const std::string dimension(1, "xyz"[d]), cells = "remap-cells-" + dimension, nodes = "remap-nodes-" + dimension;
  const KernelArgs lines = at.args(d == 2 ? 0 : 2), rows = at.args(d == 2 ? 1 : 2), arrays = at.args(2);
  count(cells.c_str(), 'A', side, lines, [&](auto& a) { remap_cells<Scalar, Order::lines>(a, turn); });
  count(cells.c_str(), 'B', side, rows, [&](auto& a) { remap_cells<Scalar, Order::rows>(a, turn); });
  count(cells.c_str(), 'C', side, arrays, [&](auto& a) { remap_cells_in_arrays<Scalar>(a, turn); });
  count(cells.c_str(), 'E', side, rows, [&](auto& a) { remap_cells<Vector, Order::rows>(a, turn); });
  count(nodes.c_str(), 'A', side, lines, [&](auto& a) { remap_nodes<Scalar, Order::lines>(a, turn); });
  count(nodes.c_str(), 'B', side, rows, [&](auto& a) { remap_nodes<Scalar, Order::rows>(a, turn); });
  count(nodes.c_str(), 'C', side, arrays, [&](auto& a) { remap_nodes_in_arrays<Scalar>(a, turn); });
  count(nodes.c_str(), 'E', side, rows, [&](auto& a) { remap_nodes<Vector, Order::rows>(a, turn); });
}

/// Counts the kernels that variants A to D share, and their vectors (E).
template <class Way>
void count_rest(const Addresses& at, std::int64_t side, char variant) {
  const KernelArgs args = at.args(2);
  count("viscosity", variant, side, args, [](auto& a) { viscosity_of_cells<Way>(a); });
  count("rates", variant, side, args, [](auto& a) { gather_rates<Way>(a); });
  count("accelerate", variant, side, args, [](auto& a) { accelerate_nodes<Way, false>(a); });
  count("sweep-faces-x", variant, side, args, [](auto& a) { sweep_faces<Way>(a, 0); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  for (int i = 1; i < argc; ++i) {
    const std::int64_t side = std::atoll(argv[i]);
    if (side < 1) return 2;
    const Addresses at(side);
    for (int d = 0; d < 3; ++d) count_remap(at, side, d);
    count_rest<Scalar>(at, side, 'D');
    count_rest<Vector>(at, side, 'E');
  }
  std::puts("\n]");
  return 0;
}
