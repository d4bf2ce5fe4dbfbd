// Collective calls that bindings need, so that they need no calls of MPI.
#include "bindings/c/mpi/bridge.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/running.hpp"
#include "haloscope/comm/same_request.hpp"
#include "haloscope/comm/together.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/topology.hpp"

namespace haloscope::c {
namespace {

/// Collective. @param what  the thing that all ranks make: "a grid".
void agree_in_binding(MPI_Comm comm, const char* what, hs_status status, const char* reason, const char* order) {
  require_communicator(comm);
  collectively(comm, &needed(what, "what"), [&] {
    agree(comm, [&] {
      if (status != HS_OK) fail(enumerator<Exit>(status, 4, "status"), text(reason));
    });
    if (order == nullptr) return;
    const std::string object = what;
    require_same(comm, object.substr(object.find(' ') + 1) + "s", {{"order", order}}, {},
                 "pass the same order on all of them: it specifies the contiguous axis");
  });
}

}  // namespace
}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

hs_status hs_require_mpi(void) {
  return guarded([] {
    if (mpi_has_ended()) require_mpi();
  });
}

hs_status hs_member_f(int comm, int32_t* rank, int32_t* size) {
  return guarded([&] {
    const Member member = require_communicator(from_fortran(comm));
    needed(rank, "rank") = member.rank;
    needed(size, "size") = member.size;
  });
}

hs_status hs_agree_f(int comm, const char* what, hs_status status, const char* reason, const char* order) {
  return guarded([&] { agree_in_binding(from_fortran(comm), what, status, reason, order); });
}

hs_status hs_grid_agree(const hs_grid* grid, hs_status status, const char* reason) {
  return guarded([&] { agree_in_binding(needed(grid, "grid").comm, "an exchange", status, reason, nullptr); });
}

hs_status hs_gather_f(int comm, const char* what, const int64_t* mine, int32_t count, int64_t* all) {
  return guarded([&] {
    const MPI_Comm on = from_fortran(comm);
    require_communicator(on);
    collectively(on, &needed(what, "what"), [&] {
      meet_before(on);
      CHECK_MPI(MPI_Allgather(mine, count, MPI_INT64_T, all, count, MPI_INT64_T, on));
    });
  });
}

hs_status hs_end_job(const char* reason) {
  return guarded([&] {
    require_mpi();
    end_job(text(reason).c_str());
  });
}
