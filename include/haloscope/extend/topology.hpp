// Properties of communicators that layouts use: Cartesian topology, cells of each rank, nodes and sockets of ranks.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <array>
#include <span>
#include <string>
#include <vector>

#include "haloscope/extend/reorder.hpp"
#include "haloscope/extend/which_mpi.hpp"

namespace haloscope {

/// The number of a rank, and the number of ranks.
struct Member {
  int rank = 0;
  int size = 1;  ///< number of ranks
};

/// Returns the calling rank, of a communicator that a grid can be split over. Local.
/// @throws UsageError where no grid can be split over it: before MPI_Init and after MPI_Finalize, for MPI_COMM_NULL,
///         which MPI_Comm_split and others return to excluded ranks, and for an inter-communicator. Throws an Error
///         where MPI refuses a call on all ranks, and ends the job where it does so only on some: the others would
///         wait.
Member require_communicator(MPI_Comm comm);

/// For `axes`: a dimension of a grid that the communicator does not split.
inline constexpr int not_split = -1;

/// Returns the layout of a communicator of MPI_Cart_create, whose ranks are numbered along its last dimension first.
/// Local.
/// @param grid  only its periods of dimensions that are not split count; the others are the communicator's.
/// @param axes  the communicator's dimension that is x, y and z, or not_split; entries beyond grid.dims are ignored.
/// @throws UsageError for a communicator without Cartesian topology, for axes that do not name each of its dimensions
///         once (one of 1 process need not be named), and as Layout does.
Layout cartesian_layout(MPI_Comm cartesian, GridSpec grid, const std::array<int, 3>& axes);

/// Refuses a communicator whose topology contradicts the layout.
/// @param rule  rule or explicit text of the layout's process grid, see process_grid().
/// @param axes  the communicator's dimension that is x, y and z, where it has equally many; else only their order
///             counts.
/// @throws UsageError where the topology of `comm` differs from the layout. A Cartesian topology of equally many
///         dimensions: in the position of a rank, or in a period. One of more or fewer: the same for the dimensions
///         that are split, in order, and for every layout that a rule chose, since it fits only by chance. A graph:
///         always, since it does not describe a grid.
///         Throws on all ranks. Local; one query per rank.
void refuse_other_topology(MPI_Comm comm, const Layout& layout, const std::string& rule,
                           const std::array<int, 3>& axes = {0, 1, 2});

/// Returns the sites of the ranks of `comm`: their machines, and the sockets of ranks whose cores are all on one socket
/// (else -1).
/// Collective; 8 bytes from each rank to all.
/// @param nodes  node of each rank in place of its machine, to emulate nodes; equal on all ranks; empty: machines.
Sites sites_of(MPI_Comm comm, const std::vector<int>& nodes = {});

/// Returns the blocks of each rank, by rank. Collective over `comm`; 8 bytes from each rank to all, then 48 a block.
std::vector<std::vector<Box>> blocks_of_all(MPI_Comm comm, std::span<const Box> own);

}  // namespace haloscope
