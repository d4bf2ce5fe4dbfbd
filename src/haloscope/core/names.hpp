// "Did you mean": the nearest valid names to a misspelt one.
#pragma once

#include <string>
#include <vector>

#include "haloscope/words.hpp"

namespace haloscope {

/// Names of `valid` within a small edit distance of `name`, nearest first; all of `valid` when none is near.
std::vector<std::string> nearest_names(const std::string& name, const std::vector<std::string>& valid);

/// Whether `word` is one of `list`.
bool has(const std::vector<std::string>& list, const std::string& word);

/// `words` joined by `separator`.
std::string join(const std::vector<std::string>& words, const std::string& separator);

/// `text` cut at each `separator`; an empty text gives no words.
std::vector<std::string> split(const std::string& text, char separator);

}  // namespace haloscope
