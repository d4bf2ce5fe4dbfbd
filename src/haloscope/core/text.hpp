// Writes texts without loss, and makes texts from outside printable.
#pragma once

#include <locale>
#include <sstream>
#include <string>
#include <string_view>

namespace haloscope {

/// A stream that a text is written into. Other streams leave out what they have no memory for, and report nothing; this
/// one throws std::bad_alloc. Numbers are the same in every locale that the program may set.
class TextStream : public std::ostringstream {
 public:
  TextStream() {
    imbue(std::locale::classic());
    exceptions(badbit);
  }
};

/// The number with so many digits after the point. Unlike printf, the same in every locale that the program may set.
std::string with_digits(double number, int digits);

constexpr std::size_t most_shown = 200;

/// The text on one line, cut after so many characters: control characters, those that change the direction of writing,
/// line ends and bytes that are no UTF-8 stand as \x1b, \u202e.
std::string shown(std::string_view text, std::size_t most = most_shown);

}  // namespace haloscope
