// Cores: how many this process may use, and whether the ranks of a node have to share them.
#pragma once

#include <mpi.h>

namespace haloscope {

/// Cores of this node that the scheduler lets any of the node's ranks use (not only this rank's own pinned ones).
int cores_of_node();
/// Collective over `comm`: true if some node runs more ranks x `threads` than it has cores.
bool more_ranks_than_cores(MPI_Comm comm, int threads = 1);

}  // namespace haloscope
