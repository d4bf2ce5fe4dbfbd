#include "haloscope/comm/cores.hpp"

#include <unistd.h>

namespace haloscope {

int cores_of_node() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

bool more_ranks_than_cores([[maybe_unused]] MPI_Comm comm, [[maybe_unused]] int threads) {
#if HALOSCOPE_SIMULATED_MPI  // every simulated rank computes as if it were alone
  return false;
#else
  MPI_Comm node;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int ranks = 0;
  MPI_Comm_size(node, &ranks);
  MPI_Comm_free(&node);
  int shared = ranks * threads > cores_of_node();
  MPI_Allreduce(MPI_IN_PLACE, &shared, 1, MPI_INT, MPI_MAX, comm);
  return shared != 0;
#endif
}

}  // namespace haloscope
