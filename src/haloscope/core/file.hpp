// Files that others may have written, read within bounds.
#pragma once

#include <optional>
#include <string>

namespace haloscope {

/// The text of a regular file of at most so many bytes; nothing where there is none, or it cannot be read.
std::optional<std::string> text_of_file(const std::string& path, std::size_t most);

/// The same of an entry of a cache, which counts only where it is no link, this user's or root's, and others cannot write
/// it.
std::optional<std::string> kept_text(const std::string& path, std::size_t most);

/// Puts an entry into a cache, whole or not at all; makes its folder, which others cannot look into.
/// @return whether it was written.
bool keep_text(const std::string& path, const std::string& text);

}  // namespace haloscope
