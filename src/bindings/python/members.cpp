#include "bindings/python/members.hpp"

#include "haloscope/core/names.hpp"

namespace haloscope::bridge {

void refuse(const Json& json, const std::string& name, const std::string& wanted) {
  throw UsageError("'" + name + "' is " + shown(json.dump()) + "; give " + wanted);
}

void require_list(const Json& json, const std::string& name, std::size_t length) {
  if (!json.is_array() || json.size() != length) refuse(json, name, "a list of " + std::to_string(length));
}

void require_known(const Json& object, const std::string& name, const std::vector<std::string>& names) {
  for (const auto& [key, value] : object.items())
    if (!has(names, key)) throw UsageError(unknown_name("part of '" + name + "'", key, names));
}

}  // namespace haloscope::bridge
