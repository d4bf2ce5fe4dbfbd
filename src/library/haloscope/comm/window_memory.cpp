#include "haloscope/comm/window_memory.hpp"

#include <cstdlib>
#include <string>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/core/out_of_memory.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/field/memory.hpp"

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

void require_window_memory(MPI_Comm comm, std::size_t bytes) {
  agree(comm, [&] { require_memory(bytes, "windows"); });
}

void allocate_window(MPI_Comm comm, std::size_t bytes, int unit, MPI_Info info, void* begin, MPI_Win* window) {
  require_communicator_left(comm);
  try {  // after require_communicator_left(), MPI may refuse because memory is exhausted
    CHECK_MPI(MPI_Win_allocate(static_cast<MPI_Aint>(bytes), unit, info, comm, begin, window));
  } catch (const MpiError& error) {
    throw MpiError(std::string(error.what()) + "; the window needs " + std::to_string(bytes) + " bytes, and " +
                   available_text().data());
  }
  CHECK_MPI(MPI_Win_set_errhandler(*window, MPI_ERRORS_RETURN));
}

bool is_unified(MPI_Win window) {
  int* model = nullptr;
  int found = 0;
  CHECK_MPI(MPI_Win_get_attr(window, MPI_WIN_MODEL, static_cast<void*>(&model), &found));
  return found && *model == MPI_WIN_UNIFIED;
}

}  // namespace haloscope
