#include "haloscope/field/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>
#include <utility>

#include "haloscope/core/out_of_memory.hpp"

namespace haloscope {
namespace {

constexpr std::int64_t line_bytes = cache_line;
constexpr std::size_t checked_from = std::size_t{64} << 20;  // smaller pieces are not checked
constexpr std::size_t huge_from = std::size_t{128} << 10;
constexpr std::int64_t in_step_from = std::int64_t{64} << 20;  // bytes of a block that no cache holds

std::atomic<std::int64_t> taken{0};

std::int64_t off_page(std::int64_t pitch, int element_bytes) {
  if (pitch == 0 || pitch % static_cast<std::int64_t>(small_page) != 0 || element_bytes % small_page == 0) return pitch;
  return pitch + (line_bytes + element_bytes - 1) / element_bytes * element_bytes;
}

}  // namespace

void require_memory(std::size_t bytes, const char* purpose) {
  if (bytes >= checked_from && total_memory() >= 0 && bytes > static_cast<std::size_t>(total_memory()))
    throw OutOfMemory(purpose, bytes, available_memory());
}

Memory::Memory(std::size_t bytes, const char* purpose) {
  if (bytes == 0) return;
  require_memory(bytes, purpose);
  const bool huge = bytes >= huge_from;
  const std::size_t wanted = round_up(bytes, huge ? huge_page : small_page);
  const std::size_t mapped = wanted + (huge ? huge_page : 0);
  void* at = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw OutOfMemory(purpose, bytes, available_memory());
  auto* begin = static_cast<std::byte*>(at);
  if (huge) {  // unmap the unaligned ends
    const auto head = round_up(reinterpret_cast<std::uintptr_t>(at), huge_page) - reinterpret_cast<std::uintptr_t>(at);
    if (head > 0) munmap(begin, head);
    if (huge_page - head > 0) munmap(begin + head + wanted, huge_page - head);
    begin += head;
    madvise(begin, wanted, MADV_HUGEPAGE);  // optional: the memory works without it
  }
  data_ = begin;
  size_ = wanted;
  taken += static_cast<std::int64_t>(wanted);
}

std::int64_t taken_bytes() { return taken; }

Memory::~Memory() {
  if (data_ != nullptr && keeper_ == nullptr) munmap(data_, size_);
}

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      keeper_(std::move(other.keeper_)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(keeper_, other.keeper_);
  return *this;
}

void move_to_huge_pages(std::span<std::byte> bytes) {
#ifndef MADV_COLLAPSE
  constexpr int MADV_COLLAPSE = 25;
#endif
  static const bool allowed = [] {
    const std::string setting = huge_page_setting();
    return !setting.empty() && setting != "never";
  }();
  const auto first = round_up(reinterpret_cast<std::uintptr_t>(bytes.data()), huge_page);
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size()) / huge_page * huge_page;
  if (allowed && first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_COLLAPSE);  // optional
}

std::string huge_page_setting() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  std::getline(file, line);
  const auto begin = line.find('['), end = line.find(']');
  return begin == std::string::npos || end == std::string::npos ? "" : line.substr(begin + 1, end - begin - 1);
}

void free_pages(std::span<std::byte> bytes) {
  const auto first = round_up(reinterpret_cast<std::uintptr_t>(bytes.data()), small_page);
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size()) / small_page * small_page;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

std::int64_t resident_bytes(std::span<const std::byte> bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(bytes.data()) / small_page * small_page;
  const auto length = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size()) - first;
  std::vector<unsigned char> pages((length + small_page - 1) / small_page);
  if (mincore(reinterpret_cast<void*>(first), length, pages.data()) != 0) return 0;
  const auto resident = std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; });
  return static_cast<std::int64_t>(resident) * static_cast<std::int64_t>(small_page);
}

std::size_t staggered_offset(std::size_t at, std::uint64_t number) {
  // Half a page and three lines: consecutive blocks start far apart, and a start repeats only after 64 blocks.
  const std::size_t start = number * (small_page / 2 + 3 * line_bytes) % small_page;
  const std::size_t candidate = at / small_page * small_page + start;
  return candidate >= at ? candidate : candidate + small_page;
}

std::array<std::int64_t, 3> field_strides(const Index& extent, int element_bytes) {
  std::int64_t row = extent[0] * element_bytes;
  const bool flat = extent[2] == 1;  // a row is a whole face, and stays in one piece
  if ((flat || row * extent[1] * extent[2] >= in_step_from) && line_bytes % element_bytes == 0)
    row = (round_up(row, line_bytes) / line_bytes | 1) * line_bytes;
  row = off_page(row, element_bytes);
  return {element_bytes, row, off_page(row * extent[1], element_bytes)};
}

std::array<std::int64_t, 3> device_strides(const Index& extent, int element_bytes) {
  std::int64_t row = extent[0] * element_bytes;
  if (device_line % element_bytes == 0) row = round_up(row, device_line);
  return {element_bytes, row, row * extent[1]};
}

}  // namespace haloscope
