// Bounded reads of files from outside; writes of files, whole or not at all.
#pragma once

#include <fstream>
#include <optional>
#include <string>

namespace haloscope {

/// Returns the text of a regular file of at most `max_bytes` bytes.
/// @param name    of the file in errors, "the profile".
/// @param remedy  the remedy in errors.
/// @throws UsageError with the reason where the file does not exist or cannot be read.
std::string text_of_file(const std::string& path, const std::string& name, const std::string& remedy,
                         std::size_t max_bytes);

/// Returns the text of an entry of a cache. It counts only if it is not a link, belongs to this user or root, and
/// others cannot write it; empty if no such entry exists.
std::optional<std::string> kept_text(const std::string& path, std::size_t max_bytes);

/// Writes an entry of a cache, whole or not at all; makes its folder, which other users cannot read.
/// @return true if it was written.
bool keep_text(const std::string& path, const std::string& text);

/// A file that replaces another: as a whole, or the other one stays as it was. A link stays, and its target is
/// replaced; permissions stay.
class Draft {
 public:
  /// Opens a draft. Where it cannot be made, text() is in a failed state.
  explicit Draft(const std::string& path);
  /// Removes a draft that keep() has not put into place.
  ~Draft();
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  std::ostream& text() { return text_; }
  /// Puts the file into place. @return true if it was written completely.
  bool keep();

 private:
  std::string path_, draft_;  // draft_ is empty where no draft exists
  std::ofstream text_;
};

}  // namespace haloscope
