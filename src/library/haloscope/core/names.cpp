#include "haloscope/core/names.hpp"

#include <algorithm>
#include <numeric>

namespace haloscope {

namespace {

constexpr std::size_t max_names = 16;  // that a message lists

int edit_distance(const std::string& a, const std::string& b) {
  std::vector<int> previous(b.size() + 1), current(b.size() + 1);
  std::iota(previous.begin(), previous.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    current[0] = static_cast<int>(i) + 1;
    for (std::size_t j = 0; j < b.size(); ++j)
      current[j + 1] = std::min({previous[j + 1] + 1, current[j] + 1, previous[j] + (a[i] != b[j])});
    std::swap(previous, current);
  }
  return previous.back();
}

/// Returns the names of `valid` within a small edit distance of `name`, nearest first; all of `valid` if none is
/// close.
std::vector<std::string> nearest_names(const std::string& name, const std::vector<std::string>& valid) {
  std::vector<std::pair<int, std::string>> ranked;
  for (const auto& v : valid) {
    const bool prefix = !name.empty() && v.starts_with(name);
    const int distance = prefix ? 0 : edit_distance(name, v);
    if (distance <= std::max<int>(2, static_cast<int>(name.size()) / 3)) ranked.emplace_back(distance, v);
  }
  if (ranked.empty()) return valid;
  std::stable_sort(ranked.begin(), ranked.end(), [](auto& a, auto& b) { return a.first < b.first; });
  if (ranked.size() > 3) ranked.resize(3);
  std::vector<std::string> names;
  for (auto& r : ranked) names.push_back(r.second);
  return names;
}

}  // namespace

std::string unknown_name(const std::string& kind, const std::string& name, const std::vector<std::string>& valid) {
  const auto near = nearest_names(name, valid);
  const std::string unknown = "unknown " + kind + " '" + name + "'; ";
  if (near.size() < valid.size()) return unknown + "did you mean " + join(near, ", ") + "?";
  const std::size_t shown = std::min(valid.size(), max_names);
  return unknown + "valid names are " +
         join({valid.begin(), valid.begin() + static_cast<std::ptrdiff_t>(shown)}, ", ") +
         (shown < valid.size() ? " and " + std::to_string(valid.size() - shown) + " more" : "");
}

void refuse_name(const std::string& kind, const std::string& name, const std::vector<std::string>& valid) {
  throw UsageError(unknown_name(kind, name, valid));
}

bool has(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string join(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) text += (i ? separator : "") + words[i];
  return text;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> words;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find(separator, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
  }
  return words;
}

}  // namespace haloscope
