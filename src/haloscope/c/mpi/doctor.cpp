// The examination of the C interface.
#include "haloscope/doctor.hpp"

#include "haloscope/c/mpi/bridge.hpp"

using namespace haloscope::c;

hs_status hs_doctor(MPI_Comm comm, hs_tell_check tell, void* context) {
  return guarded([&] {
    if (tell == nullptr) throw haloscope::UsageError("nobody to tell the checks to; pass a function");
    for (const haloscope::Diagnosis& check : haloscope::doctor(comm))
      tell(context, check.name.c_str(), to_word(check.verdict).c_str(), check.found.c_str(), check.remedy.c_str());
  });
}
