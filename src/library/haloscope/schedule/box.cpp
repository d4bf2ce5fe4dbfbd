#include <algorithm>

#include "haloscope/extend/candidate.hpp"
#include "haloscope/schedule/builder.hpp"

namespace haloscope {

namespace {

/// The device's block inside the host's walls, and the cells that either side can compute without the other or the
/// neighbours.
struct BlockInBox {
  Box block;                     ///< the device's cells
  Box core;                      ///< cells of the block that do not need cells of the walls
  std::vector<Box> ring_in;      ///< wall cells that the block needs
  std::vector<Box> ring_out;     ///< block cells that the walls need
  std::vector<Box> early, late;  ///< wall cells that need neither halos of messages nor the block; the others

  BlockInBox(const ProgramBuilder& b, const Stage& stage, int thickness) {
    const Box owned = b.plan().own_cells();
    Widths wall{0, 0, 0}, reach{0, 0, 0}, back{0, 0, 0};
    for (int d = 0; d < b.plan().dims; ++d) {
      wall[d] = -thickness;
      for (const Access& access : stage.sweeps.front().reads) reach[d] = std::max(reach[d], access.layers);
      back[d] = -reach[d];
    }
    block = grown(owned, wall, wall);
    core = grown(block, back, back);
    ring_in = subtract(grown(block, reach, reach), block);
    ring_out = subtract(block, core);
    const Box apart = grown(block, reach, reach), inner = intersect(b.interior(), owned);
    early = subtract(inner, apart);
    late = subtract(intersect(apart, inner), block);
    for (const Box& box : subtract(owned, inner)) late.push_back(box);
  }
};

}  // namespace

/// The host computes the walls around the device's block at the same time as the device computes the block; messages
/// and the rings between host and device happen first (White & Dongarra 2011, version H).
static Program make_box(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  b.program().device = true;
  const BlockInBox part(b, stage, options.walls);
  b.program().block = part.block;
  const int out = b.give_ring(false, part.ring_out), in = b.give_ring(true, part.ring_in);
  const int to_device = b.take_ring(in), to_host = b.take_ring(out);
  const ExchangeOps exchange = b.exchange();
  b.sweep_on(Lane::sweep_stream, part.block, Part::full, {to_device, exchange.ready()});
  for (const Box& wall : subtract(plan.own_cells(), part.block))
    b.sweep_on(Lane::main, wall, Part::full, {exchange.ready(), to_device, to_host});
  return b.take();
}

/// The same without unnecessary waits: the block's core starts immediately, and walls are computed while messages and
/// rings travel (White & Dongarra 2011, version I).
static Program make_box_overlap(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  b.program().device = true;
  const BlockInBox part(b, stage, options.walls);
  b.program().block = part.block;
  b.sweep_on(Lane::sweep_stream, part.core, Part::inner, {});
  const int out = b.give_ring(false, part.ring_out);  // first, since walls wait for it
  const int to_device = b.take_ring(b.give_ring(true, part.ring_in));
  for (const Box& shell : part.ring_out) b.sweep_on(Lane::halo_stream, shell, Part::outer, {to_device});
  const ExchangeOps exchange = b.exchange();
  for (const Box& wall : part.early) b.sweep_on(Lane::main, wall, Part::inner, {exchange.in_flight, exchange.local});
  const int to_host = b.take_ring(out);
  for (const Box& wall : part.late)
    b.sweep_on(Lane::main, wall, Part::outer, {exchange.ready(), exchange.local, to_host});
  return b.take();
}

namespace {

std::string refuse_thin_walls(const Candidate& c) {
  const std::string name = c.choice.schedule->name;
  const SweepSpec& sweep = c.step.stages.front().sweeps.front();
  int reach = 0;
  for (const Access& access : sweep.reads) reach = std::max(reach, access.layers);
  if (c.choice.walls < reach)
    return "walls of " + std::to_string(c.choice.walls) + " layers are thinner than the stencil's reach of " +
           std::to_string(reach) + "; use --walls " + std::to_string(reach) + " or more";
  for (int d = 0; d < c.app.dims; ++d)
    if (2 * static_cast<std::int64_t>(c.choice.walls) >= c.layout.smallest_extent(d))
      return "walls of " + std::to_string(c.choice.walls) + " layers leave no block for the device in " + "xyz"[d] +
             ", where the smallest rank has " + std::to_string(c.layout.smallest_extent(d)) +
             " cells; use thinner walls, more cells or fewer ranks";
  return "";
}

}  // namespace

extern const Schedule box_schedule{
    .name = "box",
    .summary = "the host computes walls around the device's block, both concurrently, after the messages",
    .colour = "#b279a2",
    .make = make_box,
    .options = {"walls"},
    .on_host = false,
    .on_device = true,
    .boxed = true,
    .deep = false,
    .one_sweep = true,
    .illegal = refuse_thin_walls};

extern const Schedule box_overlap_schedule{
    .name = "box-overlap",
    .summary = "box, with host, device, messages and copies between them all concurrent",
    .colour = "#e45756",
    .make = make_box_overlap,
    .options = {"walls"},
    .on_host = false,
    .on_device = true,
    .boxed = true,
    .deep = false,
    .one_sweep = true,
    .illegal = refuse_thin_walls};

}  // namespace haloscope
