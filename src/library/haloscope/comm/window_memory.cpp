#include "haloscope/comm/window_memory.hpp"

#include "haloscope/agree.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/core/out_of_memory.hpp"
#include "haloscope/field/memory.hpp"

namespace haloscope {

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

}  // namespace haloscope
