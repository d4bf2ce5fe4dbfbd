// What layouts need of a communicator: its Cartesian topology, the cells that each rank owns, where its ranks run.
#pragma once

#include "haloscope/cxx20.hpp"

#include <array>
#include <string>
#include <vector>

#include "haloscope/reorder.hpp"
#include "haloscope/which_mpi.hpp"

namespace haloscope {

/// The number of a rank, and the number of ranks.
struct Member {
  int rank = 0;
  int size = 1;  ///< number of ranks
};

/// The calling rank, of a communicator that a grid can be split over. Local.
/// @throws UsageError for what no grid can be split over: before MPI_Init and after MPI_Finalize, MPI_COMM_NULL, which
///         MPI_Comm_split and others give to ranks that they leave out, and an inter-communicator. Where MPI refuses a
///         call, it throws an Error if MPI refuses it on all ranks, and ends the job if on some: the others would wait.
Member require_communicator(MPI_Comm comm);

/// For `axes`: a dimension of a grid that the communicator does not split.
inline constexpr int not_split = -1;

/// The layout of a communicator of MPI_Cart_create, whose ranks are numbered along its last dimension first. Local.
/// @param grid  of its periods, those of dimensions that are not split count; the others are the communicator's.
/// @param axes  the communicator's dimension that is x, y and z, or not_split; those beyond grid.dims are not looked
///         at.
/// @throws UsageError for a communicator without Cartesian topology, for axes that do not name each of its dimensions
///         once (one of 1 process need not be named), and as Layout does.
Layout cartesian_layout(MPI_Comm cartesian, GridSpec grid, const std::array<int, 3>& axes);

/// @param rule  that chose the layout's process grid, or what it was given as, see process_grid().
/// @param axes  the communicator's dimension that is x, y and z, where it has as many; else only their order counts.
/// @throws UsageError where `comm` has a topology that says otherwise than the layout. A Cartesian one of as many
///         dimensions: where a rank is, or what is periodic. One of more or fewer: the same of those dimensions that
///         are split, in their order, and any layout that a rule chose, for it fits by chance. A graph says nothing of
///         a grid.
///         On all ranks alike. Local, one look per rank.
void refuse_other_topology(MPI_Comm comm, const Layout& layout, const std::string& rule,
                           const std::array<int, 3>& axes = {0, 1, 2});

/// Where the ranks of `comm` run: their machine, and the socket of those whose cores are all of one (-1: others).
/// Collective; 8 bytes from each rank to all.
/// @param nodes  node of each rank in place of its machine, to emulate nodes; the same on all ranks; empty: machines.
Sites sites_of(MPI_Comm comm, const std::vector<int>& nodes = {});

/// What each rank owns, by rank. Collective over `comm`.
std::vector<Box> boxes_of_all(MPI_Comm comm, const Box& own);

}  // namespace haloscope
