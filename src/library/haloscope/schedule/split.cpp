#include <algorithm>

#include "haloscope/schedule/builder.hpp"

namespace haloscope {

namespace {

/// Returns the beginning of tile `t` of `tiles`: a multiple of 4 layers, because kernels sweep 4 at a time.
std::int64_t cut(std::int64_t extent, int t, int tiles) {
  const std::int64_t even = extent * t / tiles;
  return t == tiles || extent < 8 * tiles ? even : even / 4 * 4;
}

}  // namespace

/// Sweeps the interior while messages are in flight, then the boundary (Valen 2023, overlapped; Davis 2017, G and H).
/// `progress` is called between interior tiles: otherwise rounds after the first would start only after the interior.
static Program make_split(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  const ExchangeOps exchange = b.exchange();
  const Box inner = b.interior(b.blocked() ? options.steps : 1);
  const int d = plan.dims - 1;
  const std::int64_t extent = inner.extent(d);
  const int tiles = static_cast<int>(std::clamp<std::int64_t>(options.tiles, 1, std::max<std::int64_t>(extent, 1)));
  std::vector<int> done;
  for (int t = 0; t < tiles; ++t) {
    Box tile = inner;
    tile.lo[d] = inner.lo[d] + cut(extent, t, tiles);
    tile.hi[d] = inner.lo[d] + cut(extent, t + 1, tiles);
    done.push_back(b.first_sweep(tile, Part::inner, {exchange.in_flight, exchange.local}));
    if (t + 1 < tiles) b.progress({});
  }
  for (const Box& box : b.shell(inner)) done.push_back(b.first_sweep(box, Part::outer, {exchange.ready()}));
  b.later_sweeps(done, exchange);
  return b.take();
}

extern const Schedule split_schedule{.name = "split",
                                     .summary = "interior while messages are in flight, then the boundary",
                                     .colour = "#e4894b",
                                     .make = make_split,
                                     .options = {"tiles"},
                                     .blocked = true};

}  // namespace haloscope
