// Texts: written without loss, and made printable where they come from outside.
#pragma once

#include <locale>
#include <sstream>
#include <string>
#include <string_view>

namespace haloscope {

/// A stream that a text is written into. Other streams silently drop text when memory is exhausted; this one throws
/// std::bad_alloc. Numbers have the same format in every locale that the program may set.
class TextStream : public std::ostringstream {
 public:
  TextStream() {
    imbue(std::locale::classic());
    exceptions(badbit);
  }
};

/// Returns the number with `digits` digits after the point. Unlike with printf, the text is the same in every locale
/// that the program may set.
std::string with_digits(double number, int digits);

/// Returns the text on one line, cut after `max_characters` characters: control characters, characters that change the
/// direction of writing, line ends and bytes that are not UTF-8 are written as \x1b, \u202e.
std::string shown(std::string_view text, std::size_t max_characters = 200);

}  // namespace haloscope
