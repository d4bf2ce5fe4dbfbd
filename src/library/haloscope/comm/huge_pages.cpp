#include "haloscope/comm/huge_pages.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <span>

#include "haloscope/field/memory.hpp"

namespace haloscope {
namespace {

constexpr std::size_t field_bytes = std::size_t{64} << 20;

/// Returns the bytes on huge pages of the mappings that some memory lies in.
std::size_t huge_bytes(std::span<const std::byte> memory) {
  const auto from = reinterpret_cast<std::uintptr_t>(memory.data());
  std::ifstream file("/proc/self/smaps");
  std::size_t kib = 0;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    unsigned long long begin = 0, end = 0, held = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2)
      inside = begin < from + memory.size() && end > from;
    else if (inside && std::sscanf(line.c_str(), "AnonHugePages: %llu kB", &held) == 1)
      kib += held;
  }
  return std::min(kib << 10, memory.size());
}

}  // namespace

std::string HugePages::text() const {
  return std::to_string(huge >> 20) + " of " + std::to_string(total >> 20) + " MiB of a field on huge pages";
}

HugePages try_huge_pages() {
  const Memory field(field_bytes);
  for (std::size_t at = 0; at < field.size(); at += small_page) field.data()[at] = std::byte{1};
  return {huge_bytes({field.data(), field.size()}), field.size()};
}

}  // namespace haloscope
