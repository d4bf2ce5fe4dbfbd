// Texts of errors and reports in tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "haloscope/error.hpp"

/// Expects a text to have a part; a failure shows both.
#define EXPECT_PART(text, part) EXPECT_PRED_FORMAT2(testing::IsSubstring, part, text)

namespace haloscope::test {

inline bool has_part(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The text of the error of this kind that `f` throws.
template <class Kind = UsageError, class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Kind& error) {
    return error.what();
  }
  return "no error";
}

/// Runs `f`, unless this MPI lacks a feature that it needs, on all ranks. @return true if it ran.
template <class F>
bool run_if_available(F f) {
  try {
    f();
  } catch (const UnavailableError&) {
    return false;
  }
  return true;
}

/// A text as a name of a test: underscores in place of other characters than letters and digits.
inline std::string test_name(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return text;
}

}  // namespace haloscope::test
