// JSON from outside.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "haloscope/core/bounds.hpp"

namespace haloscope {

constexpr auto most_json_bytes = static_cast<std::size_t>(bound.json_bytes.most);
/// Limits recursion: recursive functions copy, compare and write values.
constexpr auto most_json_depth = static_cast<int>(bound.json_depth.most);

/// @param name  of the text in messages, "the profile machine.json".
/// @throws UsageError for text that is not JSON, with the place of the fault, and for text that is too long or has
/// too many nested objects and lists.
nlohmann::json parsed_json(std::string_view text, const std::string& name);

}  // namespace haloscope
