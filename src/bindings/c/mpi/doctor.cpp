// The examination of the C interface.
#include "haloscope/doctor.hpp"

#include "haloscope/agree.hpp"
#include "bindings/c/mpi/bridge.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/topology.hpp"

using namespace haloscope::c;

hs_status hs_doctor(MPI_Comm comm, hs_tell_check tell, void* context) {
  return guarded([&] {
    haloscope::require_communicator(comm);
    haloscope::collectively(comm, "a report of the doctor", [&] {
      haloscope::agree(comm, [&] {
        if (tell == nullptr)
          throw haloscope::UsageError("argument 'tell' is NULL; pass a function that takes the checks");
      });
    });
    for (const haloscope::Diagnosis& check : haloscope::doctor(comm))
      tell(context, check.name.c_str(), to_word(check.verdict).c_str(), check.found.c_str(), check.remedy.c_str());
  });
}
