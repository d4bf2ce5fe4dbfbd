#include "haloscope/comm/together.hpp"

#include <string>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/mpi_traits.hpp"
#include "haloscope/comm/patience.hpp"
#include "haloscope/core/making.hpp"

namespace haloscope {

void meet_in(MPI_Request& request) {
  if (mpi_traits.simulated) {  // a poll costs simulated time
    CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    return;
  }
  const DescribedWait waiting([] {
    const char* const object = Making::current();
    return std::string("other ranks have not come to ") +
           (object != nullptr ? std::string("the call that makes ") + object : "a collective call");
  });
  Spin spin(true);  // ranks may share cores
  for (int done = 0;; spin.again()) {
    CHECK_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done) return;
  }
}

void meet_before(MPI_Comm comm) {
  MPI_Request request;
  CHECK_MPI(MPI_Ibarrier(comm, &request));
  meet_in(request);
}

}  // namespace haloscope
