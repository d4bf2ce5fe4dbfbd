// JSON that others have written.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace haloscope {

constexpr std::size_t most_json_bytes = std::size_t{64} << 20;
constexpr int most_json_depth = 64;  ///< values are copied, compared and written by functions that call themselves

/// @param what  the text in messages, "the profile machine.json".
/// @throws UsageError for text that is no JSON, too long, or has too many objects and lists in each other.
nlohmann::json parsed_json(std::string_view text, const std::string& what);

}  // namespace haloscope
