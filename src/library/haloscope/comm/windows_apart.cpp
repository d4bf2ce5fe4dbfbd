#include "haloscope/comm/windows_apart.hpp"

#include <cstdlib>
#include <string>

#include "haloscope/agree.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

bool windows_collide() {
  if (const int version = open_mpi_version(); version == 0 || version >= 5) return false;
  const char* const set = std::getenv("OMPI_MCA_osc");
  const std::string components = set != nullptr ? set : "^";
  const bool all_but_these = components.starts_with('^'), named = components.find("rdma") != std::string::npos;
  return all_but_these != named;
}

void require_windows_apart(MPI_Comm comm) {
  if (!windows_collide() || ranks_in(comm) == ranks_in(MPI_COMM_WORLD)) return;
  throw UnavailableError("windows of " + mpi_library() +
                         " on some ranks of MPI_COMM_WORLD may share memory with windows of other ranks; use a "
                         "strategy or a reduction without one-sided calls, set OMPI_MCA_osc=^rdma for all ranks, or "
                         "build with Open MPI 5");
}

}  // namespace haloscope
