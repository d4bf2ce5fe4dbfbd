// What layouts need of a communicator: its Cartesian topology, the cells that each rank owns, where its ranks run.
#pragma once

#include <array>
#include <vector>

#include "haloscope/reorder.hpp"
#include "haloscope/which_mpi.hpp"

namespace haloscope {

/// The layout of a communicator of MPI_Cart_create, whose ranks are numbered along its last dimension first. Local.
/// @param grid  its periods are not looked at: they are the communicator's.
/// @param axes  the communicator's dimension that is x, y and z; those beyond grid.dims are not looked at.
/// @throws UsageError for a communicator without Cartesian topology or with another number of dimensions, for axes that
///         do not name each of its dimensions once, and as Layout does.
Layout cartesian_layout(MPI_Comm cartesian, GridSpec grid, const std::array<int, 3>& axes);

/// @throws UsageError where `comm` has a Cartesian topology of as many dimensions as the grid, and it says otherwise than
///         the layout where a rank is or what is periodic. On all ranks alike. Local, one look per rank.
void refuse_other_topology(MPI_Comm comm, const Layout& layout);

/// Where the ranks of `comm` run: their machine, and the socket of those whose cores are all of one (-1: others).
/// Collective; 8 bytes from each rank to all.
/// @param nodes  node of each rank in place of its machine, to emulate nodes; the same on all ranks; empty: machines.
Sites sites_of(MPI_Comm comm, const std::vector<int>& nodes = {});

/// What each rank owns, by rank. Collective over `comm`.
std::vector<Box> boxes_of_all(MPI_Comm comm, const Box& own);

}  // namespace haloscope
