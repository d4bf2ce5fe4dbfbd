// Texts that others have written, made fit to be printed.
#pragma once

#include <string>
#include <string_view>

namespace haloscope {

constexpr std::size_t most_shown = 200;

/// The text on one line, cut after so many characters: control characters, those that change the direction of writing,
/// line ends and bytes that are no UTF-8 stand as \x1b, \u202e.
std::string shown(std::string_view text, std::size_t most = most_shown);

}  // namespace haloscope
