#include "haloscope/device/kernels.hpp"

#include <algorithm>
#include <cstdint>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope::device {
namespace {

/// The widest unit that every row of the copy is made of and aligned to.
int unit_of(const BlockCopy& c) {
  const auto all =
      static_cast<std::uint64_t>(c.row_bytes) | reinterpret_cast<std::uintptr_t>(c.from) |
      reinterpret_cast<std::uintptr_t>(c.to) |
      (c.rows > 1 ? static_cast<std::uint64_t>(c.from_row) | static_cast<std::uint64_t>(c.to_row) : 0) |
      (c.planes > 1 ? static_cast<std::uint64_t>(c.from_plane) | static_cast<std::uint64_t>(c.to_plane) : 0);
  for (int unit : {16, 8, 4})
    if (all % static_cast<unsigned>(unit) == 0) return unit;
  return 1;
}

constexpr std::int64_t most_of_a_row = std::int64_t{1} << 30;  // units; so that numbers of units fit 32 bits

void cut(const BlockCopy& copy, std::vector<CopyLaunch::Piece>& pieces) {
  const int unit = unit_of(copy);
  const std::int64_t per_row = copy.row_bytes / unit, per_plane = per_row * copy.rows;
  if (per_row > most_of_a_row) {
    BlockCopy left = copy, right = copy;
    left.row_bytes = most_of_a_row * unit;
    right.row_bytes -= left.row_bytes, right.from += left.row_bytes, right.to += left.row_bytes;
    cut(left, pieces);
    return cut(right, pieces);
  }
  const auto narrow = [](std::int64_t number) { return static_cast<std::int32_t>(number); };
  for (std::int64_t first = 0; first < per_plane * copy.planes; first += units_per_piece) {
    const std::int64_t plane = first / per_plane, in_plane = first % per_plane;
    const std::int64_t units = std::min<std::int64_t>(units_per_piece, per_plane * copy.planes - first);
    pieces.push_back({copy.from + plane * copy.from_plane, copy.to + plane * copy.to_plane, copy.from_row,
                      copy.from_plane, copy.to_row, copy.to_plane, narrow(per_row), narrow(copy.rows),
                      narrow(in_plane % per_row), narrow(in_plane / per_row), unit, narrow(units)});
  }
}

}  // namespace

std::vector<CopyLaunch::Piece> cut_copies(const std::vector<BlockCopy>& copies) {
  std::vector<CopyLaunch::Piece> pieces;
  cut_copies(copies, pieces);
  return pieces;
}

void cut_copies(const std::vector<BlockCopy>& copies, std::vector<CopyLaunch::Piece>& pieces) {
  for (const BlockCopy& copy : copies) cut(copy, pieces);
}

BlockShape shape_of(const SweepLaunch& launch, const BlockShape& usual, int dims, int levels) {
  if (launch.levels < 1 || launch.levels > levels)
    throw UsageError(std::to_string(launch.levels) +
                     " time steps in one sweep were requested; this device kernel has 1" +
                     (levels > 1 ? " to " + std::to_string(levels) : "; variant 'fused' has more"));
  BlockShape shape = launch.shape;
  if (shape.x <= 0) shape.x = usual.x;
  if (shape.y <= 0) shape.y = usual.y;
  if (shape.layers <= 0) shape.layers = usual.layers;
  if (dims == 2) shape.y = 1;
  const auto block = [&] {
    return "a block of " + std::to_string(shape.x) + " x " + std::to_string(shape.y) + " threads";
  };
  if (std::int64_t{shape.x} * shape.y > most_threads)
    throw UsageError(block() + " is too large; a block has at most " + std::to_string(most_threads));
  const int ring = levels > 1 ? 2 * launch.levels : 0;  // threads that only help to compute the others' cells
  if (shape.x <= ring || (dims == 3 && shape.y <= ring))
    throw UsageError(block() + " is too small for " + std::to_string(launch.levels) + " fused time steps; more than " +
                     std::to_string(ring) + " are needed");
  for (int d = 0; d < dims; ++d)
    if (launch.wrap[d] > 0 && launch.wrap[d] < launch.levels)
      throw UsageError("a dimension of " + std::to_string(launch.wrap[d]) + " cells wraps around more than once in " +
                       std::to_string(launch.levels) + " fused time steps; fuse fewer");
  return shape;
}

SweepFunction find_faces(const Kernels& kernels, const std::string& form, const std::string& real) {
  std::vector<std::string> all;
  for (const auto& entry : kernels.faces) {
    if (entry.form == form && entry.real == real) return entry.sweep;
    all.push_back(entry.form + std::string("/") + entry.real);
  }
  throw UsageError(unknown_name("device kernel", form + "/" + real, all));
}

SweepFunction find_sweep(const Kernels& kernels, const std::string& form, const std::string& real,
                         const std::string& variant) {
  const std::string wanted = variant.empty() ? "stream" : variant;
  std::vector<std::string> all, variants;
  for (const auto& entry : kernels.sweeps) {
    if (const std::string kernel = entry.form + std::string("/") + entry.real; !has(all, kernel)) all.push_back(kernel);
    if (entry.form != form || entry.real != real) continue;
    if (entry.variant == wanted) return entry.sweep;
    variants.push_back(entry.variant);
  }
  if (variants.empty()) throw UsageError(unknown_name("device kernel", form + "/" + real, all));
  throw UsageError(unknown_name("variant of device kernel " + form + "/" + real, wanted, variants));
}

}  // namespace haloscope::device
