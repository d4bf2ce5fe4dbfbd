#include "haloscope/topology.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "haloscope/comm/cores.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

struct Topology {
  std::vector<int> ranks, periodic;  // per dimension
};

std::optional<Topology> topology_of(MPI_Comm comm) {
  int kind = MPI_UNDEFINED, dims = 0;
  MPI_Topo_test(comm, &kind);
  if (kind != MPI_CART) return std::nullopt;
  MPI_Cartdim_get(comm, &dims);
  const std::vector<int> zeros(static_cast<std::size_t>(dims));
  Topology found{zeros, zeros};
  std::vector<int> own = zeros;
  MPI_Cart_get(comm, dims, found.ranks.data(), found.periodic.data(), own.data());
  return found;
}

std::string text_of(const std::vector<int>& numbers) {
  std::string text;
  for (int n : numbers) text += (text.empty() ? "" : "x") + std::to_string(n);
  return text;
}

}  // namespace

Layout cartesian_layout(MPI_Comm cartesian, GridSpec grid, const std::array<int, 3>& axes) {
  require_mpi();
  const auto topology = topology_of(cartesian);
  if (!topology)
    throw UsageError(
        "the communicator has no Cartesian topology; make it with MPI_Cart_create, or the grid from "
        "options or boxes");
  const int dims = static_cast<int>(topology->ranks.size());
  if (dims != grid.dims)
    throw UsageError("the communicator has " + std::to_string(dims) + " Cartesian dimensions (" +
                     text_of(topology->ranks) + "), the grid " + std::to_string(grid.dims) +
                     "; make them the same, with 1 process in a dimension that is not split");
  ProcessGrid ranks{1, 1, 1};
  RankOrder order{0, 1, 2};
  std::array<bool, 3> named{};
  for (int d = 0; d < dims; ++d) {
    const int axis = axes[d];
    if (axis < 0 || axis >= dims || named[axis])
      throw UsageError("the axes must name each of the communicator's dimensions 0 to " + std::to_string(dims - 1) +
                       " once; " + std::to_string(axis) + " does not");
    named[axis] = true;
    ranks[d] = topology->ranks[axis];
    grid.periodic[d] = topology->periodic[axis] != 0;
    order[dims - 1 - axis] = d;
  }
  return Layout(grid, ranks, order);
}

void refuse_other_topology(MPI_Comm comm, const Layout& layout) {
  const auto topology = topology_of(comm);
  if (!topology || static_cast<int>(topology->ranks.size()) != layout.dims()) return;
  const int dims = layout.dims();
  bool same = true;
  for (int d = 0; d < dims; ++d) same = same && (topology->periodic[d] != 0) == layout.grid().periodic[d];
  std::vector<int> coords(topology->ranks.size());
  for (int rank = 0; same && rank < layout.size(); ++rank) {
    MPI_Cart_coords(comm, rank, dims, coords.data());
    same = std::equal(coords.begin(), coords.end(), layout.coords(rank).begin());
  }
  if (!same)
    throw UsageError(
        "the communicator has a Cartesian topology (" + text_of(topology->ranks) +
        ", ranks numbered along the last dimension first) and the grid another place for its ranks or other "
        "periods; use Grid::of_cartesian, or a communicator without topology (MPI_Comm_split)");
}

Sites sites_of(MPI_Comm comm, const std::vector<int>& nodes) {
  MPI_Comm machine;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  std::array<int, 2> own{0, socket_of_process()};
  int size = 1;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &own[0]);
  MPI_Bcast(own.data(), 1, MPI_INT, 0, machine);  // a machine is named by its first rank
  MPI_Comm_free(&machine);
  std::vector<std::array<int, 2>> all(static_cast<std::size_t>(size));
  MPI_Allgather(own.data(), 2, MPI_INT, all.data(), 2, MPI_INT, comm);
  Sites sites{nodes, {}};
  for (const auto& [node, socket] : all) {
    if (nodes.empty()) sites.node.push_back(node);
    sites.socket.push_back(socket);
  }
  return sites;
}

std::vector<Box> boxes_of_all(MPI_Comm comm, const Box& own) {
  require_mpi();
  int size = 1;
  MPI_Comm_size(comm, &size);
  std::vector<Box> all(static_cast<std::size_t>(size));
  static_assert(sizeof(Box) == 6 * sizeof(std::int64_t));
  MPI_Allgather(&own, 6, MPI_INT64_T, all.data(), 6, MPI_INT64_T, comm);
  return all;
}

}  // namespace haloscope
