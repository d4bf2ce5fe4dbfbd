// Headers of files of NumPy's format .npy: the type of the numbers of an array, and its shape.
// Source: NumPy enhancement proposal 1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace haloscope {

struct NpyHeader {
  std::string type;  ///< of the array's elements: byte order, kind, bytes, as "<f8"
  bool first_axis_fastest = false;
  std::vector<std::int64_t> shape{};
  bool operator==(const NpyHeader&) const = default;
};

/// The bytes of a file in which its header ends at the latest.
constexpr std::size_t longest_npy_header = 4096;

/// Returns the bytes of a file before its numbers: a multiple of 64.
std::string npy_bytes(const NpyHeader& header);
/// Parses the beginning of a file.
/// @param at  out: the position of its numbers. @param path  for errors.
/// @throws UsageError where it is not the header of such a file, or of a version after 3.
NpyHeader parse_npy(std::string_view file, std::size_t& at, const std::string& path);
/// Returns the bytes of an element of a type. @throws UsageError for types that are not made of bytes in this machine's
/// order, or are structures.
int bytes_of_type(const std::string& type);

}  // namespace haloscope
