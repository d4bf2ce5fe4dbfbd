#include "haloscope/extend/topology.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/gather.hpp"
#include "haloscope/comm/handles.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/running.hpp"
#include "haloscope/comm/together.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"

namespace haloscope {

namespace {

struct Topology {
  std::vector<int> ranks, periodic;  // per dimension
};

int topology_kind(MPI_Comm comm) {
  int kind = MPI_UNDEFINED;
  CHECK_MPI(MPI_Topo_test(comm, &kind));
  return kind;
}

/// Returns the topology of a communicator; empty if it is not Cartesian.
std::optional<Topology> topology_of(MPI_Comm comm) {
  int dims = 0;
  if (topology_kind(comm) != MPI_CART) return std::nullopt;
  CHECK_MPI(MPI_Cartdim_get(comm, &dims));
  const std::vector<int> zeros(static_cast<std::size_t>(dims));
  Topology found{zeros, zeros};
  std::vector<int> own = zeros;
  CHECK_MPI(MPI_Cart_get(comm, dims, found.ranks.data(), found.periodic.data(), own.data()));
  return found;
}

/// Returns the dimensions that have more than one process.
std::vector<int> split_dimensions(const std::vector<int>& ranks) {
  std::vector<int> split;
  for (int d = 0; d < static_cast<int>(ranks.size()); ++d)
    if (ranks[static_cast<std::size_t>(d)] > 1) split.push_back(d);
  return split;
}

/// Returns the communicator's dimension that each dimension of a layout is; not_split for others. Empty where they do
/// not fit.
std::optional<std::array<int, 3>> projection(const Topology& topology, const Layout& layout,
                                             const std::array<int, 3>& axes) {
  const int dims = layout.dims();
  if (static_cast<int>(topology.ranks.size()) == dims) {
    std::array<bool, 3> named{};
    for (int d = 0; d < dims; ++d) {
      if (axes[d] < 0 || axes[d] >= dims || named[axes[d]]) return std::nullopt;
      named[axes[d]] = true;
    }
    return axes;
  }
  std::vector<int> ours = split_dimensions({layout.ranks().begin(), layout.ranks().begin() + dims});
  const std::vector<int> theirs = split_dimensions(topology.ranks);
  if (ours.size() != theirs.size()) return std::nullopt;
  std::stable_sort(ours.begin(), ours.end(), [&](int a, int b) { return axes[a] < axes[b]; });
  std::array<int, 3> found{not_split, not_split, not_split};
  for (std::size_t k = 0; k < ours.size(); ++k) found[ours[k]] = theirs[k];
  return found;
}

bool is_same_split(MPI_Comm comm, const Topology& topology, const Layout& layout, const std::array<int, 3>& axes) {
  const auto of = projection(topology, layout, axes);
  if (!of) return false;
  for (int d = 0; d < layout.dims(); ++d)
    if ((*of)[d] != not_split && (topology.periodic[(*of)[d]] != 0) != layout.grid().periodic[d]) return false;
  std::vector<int> coords(topology.ranks.size());
  for (int rank = 0; rank < layout.size(); ++rank) {
    CHECK_MPI(MPI_Cart_coords(comm, rank, static_cast<int>(coords.size()), coords.data()));
    for (int d = 0; d < layout.dims(); ++d)
      if ((*of)[d] != not_split && coords[(*of)[d]] != layout.coords(rank)[d]) return false;
  }
  return true;
}

std::string describe(const Topology& topology) {
  return "the communicator has a Cartesian topology (" + join_numbers(topology.ranks, "x") +
         ", ranks numbered along the last dimension first)";
}

}  // namespace

Member require_communicator(MPI_Comm comm) {
  try {
    require_mpi();
  } catch (const MpiError&) {
    fail_together(comm);
  }
  if (comm == MPI_COMM_NULL)
    throw UsageError(
        "the communicator is MPI_COMM_NULL, as on ranks that MPI_Comm_split or MPI_Cart_create leave out, or one that "
        "was freed; only ranks that are part of it can split a grid");
  return collectively(comm, "a grid", [&] {
    int inter = 0;
    CHECK_MPI(MPI_Comm_test_inter(comm, &inter));
    if (inter != 0)
      throw UsageError(
          "the communicator is an inter-communicator, whose two groups share no numbers of ranks; merge them with "
          "MPI_Intercomm_merge, or pass the communicator of one group");
    return Member{rank_in(comm), ranks_in(comm)};
  });
}

Layout cartesian_layout(MPI_Comm cartesian, GridSpec grid, const std::array<int, 3>& axes) {
  require_communicator(cartesian);
  const auto topology = collectively(cartesian, "a grid", [&] { return topology_of(cartesian); });
  if (!topology)
    throw UsageError(
        "the communicator has no Cartesian topology; make it with MPI_Cart_create, or the grid from "
        "options or boxes");
  const int dims = static_cast<int>(topology->ranks.size());
  const auto refuse = [&](const std::string& fault) {
    throw UsageError(describe(*topology) + " and the grid " + std::to_string(grid.dims) + " dimensions; " + fault +
                     "; name each of the communicator's dimensions once in the axes, with -1 (in Fortran 0, in Python "
                     "omitted) for each dimension of the grid that is not split");
  };
  ProcessGrid ranks{1, 1, 1};
  std::vector<int> grid_dimension(topology->ranks.size(), not_split);
  for (int d = 0; d < std::min(grid.dims, 3); ++d) {
    const int axis = axes[d];
    if (axis == not_split) continue;
    if (axis < 0 || axis >= dims) refuse("it has no dimension " + std::to_string(axis));
    if (grid_dimension[axis] != not_split) refuse("dimension " + std::to_string(axis) + " is named twice");
    grid_dimension[axis] = d;
    ranks[d] = topology->ranks[axis];
    grid.periodic[d] = topology->periodic[axis] != 0;
  }
  RankOrder order{};
  int next = 0;
  for (int axis = dims - 1; axis >= 0; --axis) {
    if (grid_dimension[axis] != not_split)
      order[next++] = grid_dimension[axis];
    else if (topology->ranks[axis] > 1)
      refuse("its dimension " + std::to_string(axis) + " is not named");
  }
  for (int d = 0; d < 3; ++d)
    if (d >= grid.dims || axes[d] == not_split) order[next++] = d;
  return Layout(grid, ranks, order);
}

namespace {

void check_topology(MPI_Comm comm, const Layout& layout, const std::string& rule, const std::array<int, 3>& axes) {
  const int kind = topology_kind(comm);
  if (kind == MPI_GRAPH || kind == MPI_DIST_GRAPH)
    throw UsageError(
        "the communicator has the topology of a graph, which does not define places of ranks in a grid; specify the "
        "cells of each rank, or pass a communicator without topology (MPI_Comm_split)");
  const auto topology = topology_of(comm);
  if (!topology) return;
  const auto& rules = process_grid_rules();
  const bool by_chance = static_cast<int>(topology->ranks.size()) != layout.dims() &&
                         std::find(rules.begin(), rules.end(), rule) != rules.end();
  if (by_chance || !is_same_split(comm, *topology, layout, axes))
    throw UsageError(describe(*topology) +
                     " and the grid another place for its ranks, other periods or another number of dimensions; "
                     "specify the axes that its dimensions split (Python: axes=; C++: Grid::of_cartesian; C: "
                     "HS_SPLIT_CARTESIAN; Fortran: "
                     "create_cartesian), or pass a communicator without topology (MPI_Comm_split)");
}

/// Collective.
Sites find_sites(MPI_Comm comm, const std::vector<int>& nodes) {
  BriefComm machine;
  CHECK_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, machine.address()));
  std::array<int, 2> own{rank_in(comm), socket_of_process()};
  CHECK_MPI(MPI_Bcast(own.data(), 1, MPI_INT, 0, machine.get()));  // the first rank of a machine identifies it
  std::vector<std::array<int, 2>> all(static_cast<std::size_t>(ranks_in(comm)));
  CHECK_MPI(MPI_Allgather(own.data(), 2, MPI_INT, all.data(), 2, MPI_INT, comm));
  Sites sites{nodes, {}};
  for (const auto& [node, socket] : all) {
    if (nodes.empty()) sites.node.push_back(node);
    sites.socket.push_back(socket);
  }
  return sites;
}

}  // namespace

void refuse_other_topology(MPI_Comm comm, const Layout& layout, const std::string& rule,
                           const std::array<int, 3>& axes) {
  collectively(comm, "a grid", [&] { check_topology(comm, layout, rule, axes); });
}

Sites sites_of(MPI_Comm comm, const std::vector<int>& nodes) {
  return collectively(comm, "a grid", [&] {
    meet_before(comm);
    return find_sites(comm, nodes);
  });
}

std::vector<std::vector<Box>> blocks_of_all(MPI_Comm comm, std::span<const Box> own) {
  require_communicator(comm);
  return collectively(comm, "a grid", [&] {
    meet_before(comm);
    std::vector<std::int64_t> ends;  // of the boxes
    for (const Box& box : own)
      for (const Index& end : {box.lo, box.hi}) ends.insert(ends.end(), end.begin(), end.end());
    std::vector<std::vector<Box>> blocks;
    for (const std::vector<std::int64_t>& all : lists_of_all(comm, ends)) {
      blocks.emplace_back();
      for (std::size_t i = 0; i < all.size(); i += 6)
        blocks.back().push_back({{all[i], all[i + 1], all[i + 2]}, {all[i + 3], all[i + 4], all[i + 5]}});
    }
    return blocks;
  });
}

}  // namespace haloscope
