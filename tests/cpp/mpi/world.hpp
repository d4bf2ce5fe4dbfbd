// The ranks of a test.
#pragma once

#include <mpi.h>

namespace haloscope::test {

inline int world_size() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

}  // namespace haloscope::test
