// Exchanges of random cases, opened by any strategy, and the points that several ranks hold.
#pragma once

#include <mpi.h>

#include <cstring>
#include <optional>

#include "haloscope/haloscope.hpp"
#include "numbers_case.hpp"

namespace haloscope::test {

/// Arrays for a case and a strategy, and the exchange of them.
struct OpenedCase {
  Layout layout;
  Plan plan;
  RigFields fields;
  std::optional<Exchange> halo;

  OpenedCase(const Case& c, const Strategy& strategy)
      : layout(c.layout()),
        plan(plan_of(layout, c, strategy)),
        fields(allocate_fields(memory_plan(layout, plan), c, in_shared_memory(c, strategy))) {
    fields.set_canaries();
    halo.emplace(MPI_COMM_WORLD, layout, c.spec, strategy, fields.views(), c.nodes);
  }
  /// Every allocated point of every field of a slot.
  template <class Visit>
  void visit(int slot, Visit visit) const {
    visit_at(slot, [&](int f, const Index&, const Quantity& q, std::byte* at) { visit(f, q, at); });
  }
  template <class Visit>
  void visit_at(int slot, Visit visit) const {
    for (int q = 0; q < static_cast<int>(plan.spec.quantities.size()); ++q) {
      each_point(plan.allocated(q),
                 [&](const Index& p) { visit(q, p, plan.spec.quantities[q], fields.views()[q][slot].at(p)); });
    }
  }
  std::vector<std::byte> contents(int slot) const {
    std::vector<std::byte> all;
    visit(slot, [&](int, const Quantity& q, const std::byte* at) { all.insert(all.end(), at, at + q.element_bytes); });
    return all;
  }
  void set_contents(int slot, const std::vector<std::byte>& all) const {
    const std::byte* from = all.data();
    visit(slot, [&](int, const Quantity& q, std::byte* at) {
      std::memcpy(at, from, static_cast<std::size_t>(q.element_bytes));
      from += q.element_bytes;
    });
  }

 private:
  /// Fields have memory for corners: ranks that meet there alone, next to a hole, share points.
  static Plan memory_plan(const Layout& layout, const Plan& plan) {
    ExchangeSpec spec = plan.spec;
    spec.corners = true;
    spec.pattern = Pattern::direct;
    for (Quantity& q : spec.quantities) q.edges = {};
    return make_plan(layout, plan.rank, spec);
  }
  static bool in_shared_memory(const Case& c, const Strategy& strategy) {
    return needs_shared_fields(strategy) || (strategy.transport == "auto" && c.strided % 2 == 0);
  }
};

/// The points of the grid, of which several ranks hold some: found from the blocks alone.
class HeldPoints {
 public:
  /// @param owners  the first holder of a point is the owner of its cell, see owner(), not the lowest rank.
  explicit HeldPoints(const OpenedCase& opened, bool owners = false) : opened_(opened) {
    const std::vector<Quantity>& fields = opened.plan.spec.quantities;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      Box all{{0, 0, 0}, opened.layout.grid().cells};
      for (int d = 0; d < opened.layout.dims(); ++d) all.hi[d] += staggered(fields[f].centring, d);
      grids_.push_back(all);
    }
    first_.assign(points(), world_size());
    opened_.visit_at(0, [&](int f, const Index& p, const Quantity& q, const std::byte*) {
      if (opened_.plan.owned(f).contains(p)) first_[number(f, p)] = owners ? owner(q, p) : world_rank();
    });
    MPI_Allreduce(MPI_IN_PLACE, first_.data(), static_cast<int>(first_.size()), MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  /// Copies the bytes of a point's first holder to all of its holders.
  std::vector<std::byte> alike(std::vector<std::byte> all) const {
    std::vector<std::array<std::uint64_t, 3>> bytes(first_.size());
    each(all, [&](std::size_t point, bool mine, std::byte* at, int size) {
      if (mine) std::memcpy(bytes[point].data(), at, static_cast<std::size_t>(size));
    });
    MPI_Allreduce(MPI_IN_PLACE, bytes.data(), static_cast<int>(3 * bytes.size()), MPI_UINT64_T, MPI_BOR,
                  MPI_COMM_WORLD);
    each(all, [&](std::size_t point, bool, std::byte* at, int size) {
      std::memcpy(at, bytes[point].data(), static_cast<std::size_t>(size));
    });
    return all;
  }
  /// Zeroes points that another holder holds too, so that each point of the grid counts once.
  std::vector<std::byte> once(std::vector<std::byte> all) const {
    each(all, [&](std::size_t, bool mine, std::byte* at, int size) {
      if (!mine) std::memset(at, 0, static_cast<std::size_t>(size));
    });
    return all;
  }

 private:
  /// The number of a point among the points of all fields of the grid, periodic ends being one.
  std::size_t number(int f, const Index& p) const {
    const GridSpec& grid = opened_.layout.grid();
    const Index origin = opened_.layout.owned(world_rank()).lo;
    std::int64_t n = 0;
    for (int d : {2, 1, 0}) {
      std::int64_t at = origin[d] + p[d];
      if (grid.periodic[d]) at %= grid.cells[d];
      n = n * grids_[f].extent(d) + at;
    }
    for (int before = 0; before < f; ++before) n += grids_[before].volume();
    return static_cast<std::size_t>(n);
  }
  std::size_t points() const {
    std::int64_t sum = 0;
    for (const Box& grid : grids_) sum += grid.volume();
    return static_cast<std::size_t>(sum);
  }
  /// The rank that owns the cell above a point in each staggered dimension, else the next one around the point.
  int owner(const Quantity& q, const Index& p) const {
    const GridSpec& grid = opened_.layout.grid();
    const Index origin = opened_.layout.owned(world_rank()).lo;
    for (int below = 0; below < 8; ++below) {
      Index cell{0, 0, 0};
      bool inside = true;
      for (int d = 0; d < 3; ++d) {
        const int step = below >> d & 1;
        inside = inside && step <= (d < grid.dims ? staggered(q.centring, d) : 0);
        cell[d] = origin[d] + p[d] - step;
        if (grid.periodic[d]) cell[d] = (cell[d] + grid.cells[d]) % grid.cells[d];
        inside = inside && cell[d] >= 0 && cell[d] < grid.cells[d];
      }
      const int rank = inside ? opened_.layout.owner(cell) : -1;
      if (rank >= 0) return rank;
    }
    return -1;
  }
  /// Calls visit(point, true for its first holder, the position of its bytes, their number).
  template <class Visit>
  void each(std::vector<std::byte>& all, Visit visit) const {
    std::vector<bool> seen(first_.size());  // a rank that is its own neighbour holds a point several times
    std::byte* at = all.data();
    opened_.visit_at(0, [&](int f, const Index& p, const Quantity& q, const std::byte*) {
      if (opened_.plan.owned(f).contains(p)) {
        const std::size_t point = number(f, p);
        visit(point, first_[point] == world_rank() && !seen[point], at, q.element_bytes);
        seen[point] = true;
      }
      at += q.element_bytes;
    });
  }
  const OpenedCase& opened_;
  std::vector<Box> grids_;
  std::vector<int> first_;  // rank, by point
};

/// Every strategy for fields in host memory that may take the case.
inline std::vector<Strategy> strategies_for(const Case& c) {
  const bool holes = !c.boxes.empty() && Layout(c.grid, c.boxes, true).has_holes();
  const bool no_order = holes && c.spec.corners;
  std::vector<Strategy> found;
  std::vector<std::string> names = strategy_names();
  for (const char* more : {"direct:merged,fields=none/p2p", "ordered:fields=serial/p2p", "direct:fields=pipelined/p2p",
                           "ordered:merged,fields=type/persistent", "ordered:corners/p2p", "direct/shared:packed+p2p",
                           "direct:merged/auto:quick"})
    names.push_back(more);
  for (const std::string& name : names)
    if (const Strategy s(name); !(s.pattern == Pattern::ordered && (no_order || (holes && s.corners))))
      found.push_back(s);
  return found;
}

/// Two ranks a node, where the strategy has a transport between nodes.
inline Case on_nodes(Case c, const Strategy& strategy) {
  if (!strategy.between.empty())
    for (int r = 0; r < world_size(); ++r) c.nodes.push_back(r / 2);
  return c;
}

/// Opens it, unless this MPI lacks a feature or (mirrored edges) the strategy does not take such fields.
inline std::optional<OpenedCase> open(const Case& c, const Strategy& strategy) {
  std::optional<OpenedCase> opened;
  run_if_available([&] { opened.emplace(on_nodes(c, strategy), strategy); });
  return opened;
}

}  // namespace haloscope::test
