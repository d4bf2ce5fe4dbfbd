// Cores: how many this process may use, and whether the ranks of a node have to share them.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace haloscope {

/// Cores that this process was allowed when it started, whatever its threads have been pinned to since. Local.
const std::vector<int>& allowed_cores();
/// Cores of this node that its ranks may use together: those allowed to the process that started this one, as
/// `haloscope` counts them before the launcher pins ranks. Local.
int cores_of_node();
/// The number that Linux gives the socket of all allowed_cores(); -1 where they are of several, or it does not say.
/// Local.
int socket_of_process();
/// What Linux calls the CPU; "unknown" where it does not say. Local.
std::string cpu_model();
/// Collective over `comm`: true if some node runs more ranks x `threads` than it has cores.
bool more_ranks_than_cores(MPI_Comm comm, int threads = 1);

}  // namespace haloscope
