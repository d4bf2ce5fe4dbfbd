// Enumerations whose values users write as words: on the command line, in JSON, in records.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <string>
#include <vector>

#include "haloscope/error.hpp"

namespace haloscope {

/// The name of an enumeration in error texts, and the words for its values, in order. Specialised by HALOSCOPE_WORDS.
template <class Enum>
struct Words;

#define HALOSCOPE_WORDS(Enum, called, ...)                      \
  template <>                                                   \
  struct Words<Enum> {                                          \
    static constexpr const char* kind = called;                 \
    static const std::vector<std::string>& all() {              \
      static const std::vector<std::string> words{__VA_ARGS__}; \
      return words;                                             \
    }                                                           \
  }

/// Returns "unknown KIND 'NAME'; did you mean A or B?", the text for every unknown name.
std::string unknown_name(const std::string& kind, const std::string& name, const std::vector<std::string>& valid);

/// @throws UsageError with unknown_name(); a function, so that programs without exceptions may include this header.
[[noreturn]] void refuse_name(const std::string& kind, const std::string& name, const std::vector<std::string>& valid);

template <class Enum>
const std::string& to_word(Enum value) {
  return Words<Enum>::all()[static_cast<std::size_t>(value)];
}

/// Returns the value of a word. @throws UsageError naming the nearest valid words.
template <class Enum>
Enum from_word(const std::string& word) {
  const auto& all = Words<Enum>::all();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] == word) return static_cast<Enum>(i);
  refuse_name(Words<Enum>::kind, word, all);
}

}  // namespace haloscope
