// Lists of names and numbers as text, and "did you mean": the nearest valid names to a misspelt one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "haloscope/words.hpp"

namespace haloscope {

/// Returns the names of `valid` within a small edit distance of `name`, nearest first; all of `valid` if none is
/// close.
std::vector<std::string> nearest_names(const std::string& name, const std::vector<std::string>& valid);

/// Returns true if `word` is one of `list`.
bool has(const std::vector<std::string>& list, const std::string& word);

/// Returns `words` joined by `separator`.
std::string join(const std::vector<std::string>& words, const std::string& separator);

/// Returns `numbers` joined by `separator`.
template <class Numbers>
std::string join_numbers(const Numbers& numbers, const std::string& separator) {
  std::string text;
  for (const auto number : numbers) text += (text.empty() ? "" : separator) + std::to_string(number);
  return text;
}

/// Returns cells or ranks in `dims` dimensions, as "4x2".
template <class Sizes>
std::string sizes_text(const Sizes& sizes, int dims) {
  return join_numbers(std::span(sizes).first(static_cast<std::size_t>(dims)), "x");
}

/// Returns `text` cut at each `separator`; an empty text gives no words.
std::vector<std::string> split(const std::string& text, char separator);

}  // namespace haloscope
