// Names of the back ends, known where no device and no MPI is: legality and help texts need them.
#pragma once

#include <string>
#include <vector>

namespace haloscope {

const std::vector<std::string>& backend_names();
/// @throws UsageError for a name that is taken.
void add_backend_name(const std::string& name);

}  // namespace haloscope
