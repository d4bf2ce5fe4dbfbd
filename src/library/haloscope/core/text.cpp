#include "haloscope/core/text.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "haloscope/error.hpp"

namespace haloscope {

namespace {

/// One character of a text: its code and its bytes; a byte that does not begin valid UTF-8 is a separate character.
struct Character {
  std::uint32_t code;
  std::size_t bytes;
  bool valid;
};

Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t lead = byte(0);
  const std::size_t bytes = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (bytes == 1) return {lead, 1, true};
  if (bytes == 0 || bytes > text.size()) return {lead, 1, false};
  std::uint32_t code = lead & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {lead, 1, false};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::uint32_t least[]{0, 0, 0x80, 0x800, 0x10000};
  const bool good = code >= least[bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return good ? Character{code, bytes, true} : Character{lead, 1, false};
}

/// Returns true if a character controls a terminal or the direction of writing.
bool steers(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || (code >= 0x200e && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

std::string escaped(std::string_view text, std::size_t max_characters, bool keep_lines) {
  std::string found;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == max_characters) return found + "...";
    const Character one = first_of(text);
    if (one.valid && (!steers(one.code) || (keep_lines && (one.code == '\n' || one.code == '\t')))) {
      found += text.substr(0, one.bytes);
    } else {
      char code[8];
      std::snprintf(code, sizeof code, one.code < 0x100 ? "\\x%02x" : "\\u%04x", one.code & 0xffffu);
      found += code;
    }
    text.remove_prefix(one.bytes);
  }
  return found;
}

}  // namespace

std::string with_digits(double number, int digits) {
  std::array<char, 400> text;  // the largest number has 309 digits before the point
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed, digits).ptr;
  return {text.data(), end};
}

std::string shown(std::string_view text, std::size_t max_characters) { return escaped(text, max_characters, false); }

std::string printable(const std::string& text) { return escaped(text, std::numeric_limits<std::size_t>::max(), true); }

}  // namespace haloscope
