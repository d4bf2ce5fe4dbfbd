// The ranks of a test.
#pragma once

#include <mpi.h>

#include <cstdlib>

namespace haloscope::test {

inline int world_size() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// Whether everything is to be tried instead of a sample: HALOSCOPE_LONG is set, and not to 0.
inline bool thorough() {
  const char* text = std::getenv("HALOSCOPE_LONG");
  return text != nullptr && *text != '\0' && *text != '0';
}

}  // namespace haloscope::test
