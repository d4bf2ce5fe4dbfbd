#include "haloscope/comm/mpi_progress.hpp"

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/mpi_traits.hpp"

namespace haloscope {
namespace {

constexpr int unsent_tag = 3;  // no message has it, see MessageTags

}  // namespace

void let_mpi_progress(MPI_Comm comm) {
  if (mpi_traits.simulated || comm == MPI_COMM_NULL) return;
  int there = 0;
  REQUIRE_MPI(MPI_Iprobe(MPI_ANY_SOURCE, unsent_tag, comm, &there, MPI_STATUS_IGNORE));
}

}  // namespace haloscope
