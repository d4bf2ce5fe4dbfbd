// Cores: the cores that this process may use, and sharing of cores between the ranks of a node.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace haloscope {

/// Returns the cores that this process was allowed when it started, independent of later pinning of its threads. Local.
const std::vector<int>& allowed_cores();
/// Returns the number of cores of this node that its ranks may use together: the cores allowed to the process that
/// started this one, as `haloscope` counts them before the launcher pins ranks. Local.
int cores_of_node();
/// Returns Linux's number of the socket of all allowed_cores(); -1 where they are on several sockets, or Linux does
/// not report it. Local.
int socket_of_process();
/// Returns Linux's name of the CPU; "unknown" where it does not report one. Local.
std::string cpu_model();
/// Returns true if some node runs more ranks x `threads` than it has cores. Collective over `comm`.
bool more_ranks_than_cores(MPI_Comm comm, int threads = 1);

}  // namespace haloscope
