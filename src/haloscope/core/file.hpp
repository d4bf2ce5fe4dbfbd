// Files that others may have written, read within bounds; files that are written whole or not at all.
#pragma once

#include <fstream>
#include <optional>
#include <string>

namespace haloscope {

/// The text of a regular file of at most so many bytes.
/// @param what    the file in errors, "the profile".
/// @param remedy  what to do, for errors.
/// @throws UsageError with the reason where there is none, or it cannot be read.
std::string text_of_file(const std::string& path, const std::string& what, const std::string& remedy, std::size_t most);

/// The same of an entry of a cache, which counts only where it is no link, this user's or root's, and others cannot
/// write it; nothing where there is none.
std::optional<std::string> kept_text(const std::string& path, std::size_t most);

/// Puts an entry into a cache, whole or not at all; makes its folder, which others cannot look into.
/// @return whether it was written.
bool keep_text(const std::string& path, const std::string& text);

/// A file that takes the place of another: whole, or the other one stays as it was. A link stays, and the file that it
/// leads to is replaced; permissions stay.
class Draft {
 public:
  /// Where it cannot be made, text() is in a failed state.
  explicit Draft(const std::string& path);
  /// Removes what keep() has not put into its place.
  ~Draft();
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  std::ostream& text() { return text_; }
  /// Puts it into its place. @return whether all of it stands there.
  bool keep();

 private:
  std::string path_, draft_;  // draft_ is empty where there is none
  std::ofstream text_;
};

}  // namespace haloscope
