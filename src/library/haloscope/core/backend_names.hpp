// Names of the back ends, available without devices and MPI, for legality and help texts.
#pragma once

#include <string>
#include <vector>

namespace haloscope {

const std::vector<std::string>& backend_names();
/// Registers a name. @throws UsageError for a name that is taken.
void add_backend_name(const std::string& name);

}  // namespace haloscope
