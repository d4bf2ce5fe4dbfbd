#include "haloscope/device/kernels.hpp"

#include <cstdint>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/app_kernels.hpp"

namespace haloscope::device {

void add_kernels_of_apps(Kernels& kernels, const std::string& backend) {
  for (const AppKernels* app : known_kernels())
    for (const AppKernels::Backend& one : app->backends)
      if (one.name == backend) one.add(kernels);
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
  const int ring = levels > 1 ? 2 * launch.levels : 0;  // threads that only help to compute the cells of other threads
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

PassFunction find_passes(const Kernels& kernels, const std::string& form) {
  for (const auto& passes : kernels.passes)
    if (passes.form == form) return passes.run;
  return nullptr;
}

int pass_blocks(const Box& box) {
  if (box.volume() >= std::int64_t{1} << 31)
    throw UsageError("a device passes over at most 2^31 points in one pass, not " + std::to_string(box.volume()) +
                     "; use more ranks");
  return static_cast<int>((box.volume() + pass_threads - 1) / pass_threads);
}

int gather_blocks(std::int64_t cells) {
  const std::int64_t blocks = (cells + gathered_cells - 1) / gathered_cells;
  if (blocks >= std::int64_t{1} << 31)
    throw UsageError("a device combines numbers of at most 2^42 cells, not " + std::to_string(cells) +
                     "; use more ranks");
  return static_cast<int>(blocks);
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
