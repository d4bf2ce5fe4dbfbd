#include "haloscope/core/npy.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "haloscope/core/bounds.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

constexpr std::string_view magic{"\x93NUMPY", 6};
constexpr std::size_t alignment = 64;
constexpr std::size_t most_axes = 4;  // three, and the numbers of a point

[[noreturn]] void refuse(const std::string& path, const std::string& fault) {
  throw UsageError("file '" + path + "' " + fault + "; pass a file in NumPy's format .npy, as numpy.save() writes");
}

/// The text of a header, a dictionary of Python with three keys, as far as it has been read.
class Dictionary {
 public:
  Dictionary(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  /// Returns the text after a key, without leading blanks.
  std::string_view after(const std::string& key) const {
    const std::size_t found = text_.find("'" + key + "':");
    if (found == std::string_view::npos) refuse(path_, "has no '" + key + "' in its header");
    std::string_view rest = text_.substr(found + key.size() + 3);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest;
  }
  std::string type() const {
    const std::string_view rest = after("descr");
    const std::size_t end = rest.find('\'', 1);
    if (!rest.starts_with('\'') || end == std::string_view::npos)
      refuse(path_, "has elements that are structures, or a type that cannot be read");
    return std::string(rest.substr(1, end - 1));
  }
  bool first_axis_fastest() const {
    const std::string_view rest = after("fortran_order");
    if (!rest.starts_with("True") && !rest.starts_with("False")) refuse(path_, "has an unknown order of axes");
    return rest.starts_with("True");
  }
  std::vector<std::int64_t> shape() const {
    const std::string_view rest = after("shape");
    const std::size_t end = rest.find(')');
    if (!rest.starts_with('(') || end == std::string_view::npos) refuse(path_, "has a shape that cannot be read");
    std::vector<std::int64_t> numbers;
    for (std::string one : split(std::string(rest.substr(1, end - 1)), ',')) {
      std::erase(one, ' ');
      if (!one.empty()) numbers.push_back(number(one));
    }
    if (numbers.size() > most_axes) refuse(path_, "has " + std::to_string(numbers.size()) + " axes");
    return numbers;
  }

 private:
  std::int64_t number(const std::string& text) const {
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0 ||
        static_cast<double>(value) > bound.cells.most)
      refuse(path_, "has an impossible extent, '" + text + "'");
    return value;
  }

  std::string_view text_;
  const std::string& path_;
};

}  // namespace

std::string npy_bytes(const NpyHeader& header) {
  std::string shape;
  for (const std::int64_t extent : header.shape) shape += std::to_string(extent) + ", ";
  std::string text = "{'descr': '" + header.type +
                     "', 'fortran_order': " + (header.first_axis_fastest ? "True" : "False") + ", 'shape': (" + shape +
                     "), }";
  const std::size_t before = magic.size() + 4;
  text.append(alignment - 1 - (before + text.size()) % alignment, ' ');
  text += '\n';
  std::string bytes(magic);
  bytes += {'\1', '\0', static_cast<char>(text.size() % 256), static_cast<char>(text.size() / 256)};
  return bytes + text;
}

NpyHeader parse_npy(std::string_view file, std::size_t& at, const std::string& path) {
  const auto byte = [&](std::size_t n) { return static_cast<std::size_t>(static_cast<unsigned char>(file[n])); };
  if (!file.starts_with(magic) || file.size() < 12) refuse(path, "is not of this format");
  const std::size_t version = byte(6), before = version == 1 ? 10 : 12;
  if (version < 1 || version > 3)
    refuse(path, "is of version " + std::to_string(version) + " of the format, not 1 to 3");
  const std::size_t length =
      version == 1 ? byte(8) + 256 * byte(9) : byte(8) + 256 * (byte(9) + 256 * (byte(10) + 256 * byte(11)));
  if (length > longest_npy_header - before || before + length > file.size())
    refuse(path, "has a header that does not end");
  at = before + length;
  const Dictionary found(file.substr(before, length), path);
  return {found.type(), found.first_axis_fastest(), found.shape()};
}

int bytes_of_type(const std::string& type) {
  int bytes = 0;
  const bool known =
      type.size() > 2 && std::strchr("<|", type[0]) != nullptr && std::strchr("biufcSV", type[1]) != nullptr;
  const auto [end, error] =
      std::from_chars(type.data() + std::min<std::size_t>(2, type.size()), type.data() + type.size(), bytes);
  if (!known || error != std::errc() || end != type.data() + type.size() || bytes < 1)
    throw UsageError("type '" + type +
                     "' is not one of NumPy with the bytes of this machine's order, such as <f8, <i4, |u1");
  return bytes;
}

}  // namespace haloscope
