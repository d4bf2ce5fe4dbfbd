// Exchanges for tests of transports: random ones, and a cube in which every kind of neighbour occurs.
#pragma once

#include <algorithm>
#include <functional>
#include <random>

#include "allocation_counter.hpp"
#include "link_rig.hpp"
#include "random_split.hpp"

namespace haloscope::test {

/// A random way to split `ranks` over `dims` dimensions.
inline ProcessGrid random_grid(std::mt19937& random, int ranks, int dims) {
  ProcessGrid grid{1, 1, 1};
  for (int prime = 2; ranks > 1;) {
    if (ranks % prime != 0) {
      ++prime;
      continue;
    }
    grid[pick(random, 0, dims - 1)] *= prime;
    ranks /= prime;
  }
  return grid;
}

inline std::vector<Quantity> random_quantities(std::mt19937& random) {
  const std::vector<Quantity> known{
      {"density", 8, ScalarType::real, Centring::cell},   {"speed", 8, ScalarType::real, Centring::node},
      {"flux_x", 4, ScalarType::real, Centring::face_x},  {"flux_y", 8, ScalarType::real, Centring::face_y},
      {"flux_z", 4, ScalarType::real, Centring::face_z},  {"material", 4, ScalarType::integer, Centring::cell},
      {"momentum", 24, ScalarType::real, Centring::cell}, {"flag", 1, ScalarType::integer, Centring::cell}};
  std::vector<Quantity> chosen;
  for (int n = pick(random, 1, 3); n > 0; --n) chosen.push_back(known[pick(random, 0, 7)]);
  return chosen;
}

/// Uneven blocks of `grid`, at least `least` cells wide, for ranks in a random order; where `holes`, some further
/// blocks belong to no rank.
inline std::vector<Box> random_boxes(std::mt19937& random, GridSpec& grid, int ranks, const Widths& least, bool holes) {
  ProcessGrid places = random_grid(random, ranks, grid.dims);
  if (holes) ++places[pick(random, 0, grid.dims - 1)];
  std::array<std::vector<std::int64_t>, 3> cuts;
  for (int d = 0; d < 3; ++d) {
    cuts[d] = {0};
    for (int c = 0; c < places[d]; ++c)
      cuts[d].push_back(cuts[d].back() + (d < grid.dims ? std::max(least[d], 1) + pick(random, 0, 3) : 1));
    grid.cells[d] = cuts[d].back();
  }
  std::vector<Box> boxes;
  for (int z = 0; z < places[2]; ++z)
    for (int y = 0; y < places[1]; ++y)
      for (int x = 0; x < places[0]; ++x)
        boxes.push_back({{cuts[0][x], cuts[1][y], cuts[2][z]}, {cuts[0][x + 1], cuts[1][y + 1], cuts[2][z + 1]}});
  std::shuffle(boxes.begin(), boxes.end(), random);
  boxes.resize(static_cast<std::size_t>(ranks));
  return boxes;
}

/// Another split of the grid than the default one: another order of ranks, uneven blocks, holes, a rank without cells.
inline void split_otherwise(std::mt19937& random, Case& c) {
  std::shuffle(c.order.begin(), c.order.end(), random);
  const bool uneven = pick(random, 0, 1), holes = pick(random, 0, 1);
  if (!uneven) return;
  Widths least;
  for (int d = 0; d < 3; ++d) least[d] = std::max(c.spec.low[d], c.spec.high[d]);
  const bool idle = world_size() > 1 && pick(random, 0, 2) == 0;
  c.boxes = random_boxes(random, c.grid, world_size() - idle, least, holes);
  if (idle) c.boxes.emplace_back();
  if (idle) std::shuffle(c.boxes.begin(), c.boxes.end(), random);
  if (holes && c.spec.pattern == Pattern::ordered) c.spec.corners = false;
}

/// The same case on every rank.
inline Case random_case(std::mt19937& random, const Case& variant) {
  Case c = variant;
  c.grid.dims = pick(random, 1, 3);
  c.ranks = random_grid(random, world_size(), c.grid.dims);
  c.spec.quantities = random_quantities(random);
  const int depth = pick(random, 1, 3);
  for (int d = 0; d < 3; ++d) {
    const bool used = d < c.grid.dims;
    c.spec.low[d] = used ? depth * pick(random, 0, 1) + (depth > 1) : 0;
    c.spec.high[d] = used ? depth : 0;
    if (pick(random, 0, 1)) std::swap(c.spec.low[d], c.spec.high[d]);
    c.grid.periodic[d] = used && pick(random, 0, 1);
    c.grid.cells[d] = used ? std::max(c.spec.low[d], c.spec.high[d]) * c.ranks[d] + pick(random, 0, 4) : 1;
  }
  c.spec.pattern = c.transport == "reference" || pick(random, 0, 1) ? Pattern::direct : Pattern::ordered;
  c.spec.corners = pick(random, 0, 3) > 0;
  c.spec.merge_peers = pick(random, 0, 1);
  c.spec.merge = static_cast<Merge>(pick(random, 0, 2));
  std::shuffle(c.spec.order.begin(), c.spec.order.end(), random);
  split_otherwise(random, c);
  c.slots = pick(random, 1, 3);
  c.yield = world_size() > 2 || pick(random, 0, 1);
  c.poll = pick(random, 0, 1);
  c.strided = pick(random, 0, 2) == 0 ? static_cast<unsigned>(pick(random, 1, 1000000)) : 0;
  return c;
}

/// The case of a periodic cube on all ranks in one dimension; with one or two ranks, every kind of neighbour is a rank
/// itself.
inline Case periodic_cube(int split_dimension, const Case& variant) {
  Case c = variant;
  c.ranks[split_dimension] = world_size();
  c.grid.cells = {6, 7, 8};
  c.grid.cells[split_dimension] = 5 * world_size() + 1;
  c.grid.periodic = {true, true, true};
  c.spec.pattern = c.transport == "reference" ? Pattern::direct : c.spec.pattern;
  c.yield = world_size() > 2;
  return c;
}

inline void expect_right(Rig& rig, int slot, int epoch) {
  EXPECT_EQ(rig.wrong_points(slot, epoch), 0) << "exchange " << epoch;
  EXPECT_TRUE(rig.fields.canaries_alive());
}

/// Several exchanges over all slots, with new values each time.
/// @param sends  called with the rig, returns the messages and bytes that MPI moves in each; without it: any.
inline void expect_right_halos(const Case& c, const std::function<Sent(const Rig&)>& sends = {}) {
  SCOPED_TRACE(describe(c));
  Rig rig(c);
  for (int epoch = 0; epoch < 2 * c.slots + 1; ++epoch) {
    const int slot = epoch % c.slots;
    rig.fill(slot, epoch);
    const Sent before = sent();
    rig.exchange(slot);
    if (sends) {
      EXPECT_EQ(sent().messages - before.messages, sends(rig).messages);
      EXPECT_EQ(sent().bytes - before.bytes, sends(rig).bytes);
    }
    expect_right(rig, slot, epoch);
    EXPECT_EQ(rig.link->waiting_for(rig.in(0), slot), -1);
  }
}

/// Exchanges that have each used their slot before allocate nothing outside MPI.
inline void expect_no_allocations(const Case& c) {
  Rig rig(c);
  for (int slot : {0, 1}) rig.exchange(slot);
  const std::int64_t before = allocations();
  for (int i = 0; i < 4; ++i) rig.exchange(i % 2);
  EXPECT_EQ(allocations() - before, 0) << describe(c);
}

/// Exchanges of all slots of a case are in flight together, and end in this order.
inline void expect_right_in_flight(Case c, const std::vector<int>& order) {
  c.spec.pattern = Pattern::direct;
  c.slots = static_cast<int>(order.size());
  SCOPED_TRACE(describe(c));
  Rig rig(c);
  for (int slot = 0; slot < c.slots; ++slot) {
    rig.fill(slot, slot);
    rig.copy(0, slot);
  }
  for (int slot = 0; slot < c.slots; ++slot) rig.start(0, slot);
  for (int slot : order) rig.finish(0, slot);
  for (int slot : order) expect_right(rig, slot, slot);
}

/// Ends the link of a case with an exchange in flight.
inline void end_in_flight(const Case& c) {
  Rig rig(c);
  rig.fill(0, 3);
  rig.start(0, 0);
  rig.link.reset();
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace haloscope::test
