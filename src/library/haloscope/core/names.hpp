// Lists of names and numbers as text, and entries of lists by name.
#pragma once

#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "haloscope/extend/words.hpp"

namespace haloscope {

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

/// Returns a cell, or the cells of a grid, in `dims` dimensions, as "(4, 2)".
template <class Cell>
std::string cell_text(const Cell& cell, int dims) {
  return "(" + join_numbers(std::span(cell).first(static_cast<std::size_t>(dims)), ", ") + ")";
}

/// Returns an entry of a list of values or of pointers.
template <class Entry>
const auto& entry_of(const Entry& entry) {
  if constexpr (std::is_pointer_v<Entry>)
    return *entry;
  else
    return entry;
}

/// Returns the entry of this name. @throws UsageError with the nearest names.
template <class List>
const auto& find_named(const std::string& kind, const List& list, const std::string& name) {
  for (const auto& entry : list)
    if (entry_of(entry).name == name) return entry_of(entry);
  std::vector<std::string> names;
  for (const auto& entry : list) names.emplace_back(entry_of(entry).name);
  throw UsageError(unknown_name(kind, name, names));
}

/// @throws UsageError if the list has an entry of this name.
template <class List>
void require_new(const std::string& kind, const List& list, const std::string& name) {
  for (const auto& entry : list)
    if (entry_of(entry).name == name)
      throw UsageError(kind + " '" + name + "' already exists; give yours another name");
}

/// Returns `text` cut at each `separator`; an empty text gives no words.
std::vector<std::string> split(const std::string& text, char separator);

}  // namespace haloscope
