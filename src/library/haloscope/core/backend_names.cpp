#include "haloscope/core/backend_names.hpp"

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

std::vector<std::string>& known_names() {
  static std::vector<std::string> all{
#define BACKEND(name) #name,
#include "haloscope/device/backends.def"
#undef BACKEND
  };
  return all;
}

}  // namespace

const std::vector<std::string>& backend_names() { return known_names(); }

void add_backend_name(const std::string& name) {
  if (has(known_names(), name))
    throw UsageError("device back end '" + name + "' already exists; give yours another name");
  known_names().push_back(name);
}

}  // namespace haloscope
