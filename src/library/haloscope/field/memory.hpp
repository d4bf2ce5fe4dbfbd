// Memory for fields and buffers: page-wise from the system, on huge pages where the system allows them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "haloscope/box.hpp"

namespace haloscope {

constexpr std::size_t cache_line = 64, small_page = 4096, huge_page = std::size_t{2} << 20;  ///< bytes

/// Returns the smallest multiple of `to` that is not less than `bytes`.
constexpr std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }
/// Returns `bytes` rounded up to whole cache lines, so that subsequent data begin on a new line.
constexpr std::size_t whole_lines(std::int64_t bytes) { return round_up(static_cast<std::size_t>(bytes), cache_line); }

/// @param purpose  for errors, such as "fields".
/// @throws OutOfMemory for more than the total of the machine, or of the control group of this process: the system
///         may grant that, and end the process when it is written.
void require_memory(std::size_t bytes, const char* purpose);

/// Zeroed memory that was not accessed yet, so that the first thread to write a page decides its NUMA node.
/// Move-only.
class Memory {
 public:
  Memory() = default;
  /// @param bytes  size; from 128 KiB on, the memory is aligned to 2 MiB and huge pages are requested.
  /// @param purpose  for errors, such as "fields".
  /// @throws OutOfMemory where the system refuses, and as require_memory() does.
  explicit Memory(std::size_t bytes, const char* purpose = "fields");
  /// Refers to memory that `keeper` owns (such as a shared window) and frees when it is destroyed.
  Memory(std::byte* data, std::size_t bytes, std::shared_ptr<void> keeper)
      : data_(data), size_(bytes), keeper_(std::move(keeper)) {}
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::shared_ptr<void> keeper_;
};

/// Returns the bytes that the Memory objects of this process have allocated so far, freed since or not. Memory of
/// keepers does not count.
std::int64_t taken_bytes();

/// Returns the whole pages among some bytes of private memory to the system. The addresses stay usable; the bytes are
/// zeros at the next access.
void free_pages(std::span<std::byte> bytes);
/// Moves some bytes of private memory, also of a caller, to huge pages, where the system provides them on request
/// (Linux 6.1 or newer). Contents and addresses stay; the system copies them once.
void move_to_huge_pages(std::span<std::byte> bytes);
/// Returns the system's setting of transparent huge pages: "always", "madvise", "never"; "" where this kernel has
/// none.
std::string huge_page_setting();
/// Returns the number of some bytes that are resident, by whole pages; 0 where the system does not report it.
std::int64_t resident_bytes(std::span<const std::byte> bytes);

/// Bytes `begin` to `end` of some memory, `end` not included.
struct ByteRange {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

/// A source of memory for fields: called with a number of bytes and the ranges of them that other ranks may read or
/// write during an exchange, in ascending order; returns zeroed memory at the start of a page.
using Allocator = std::function<Memory(std::size_t, const std::vector<ByteRange>&)>;

/// Returns the first offset >= `at` for block number `number`. Successive blocks start at different places of a page:
/// a load stalls when its address equals that of a recent store modulo 4096 (a sweep over two such fields runs 2.5
/// times slower).
std::size_t staggered_offset(std::size_t at, std::uint64_t number);

/// Returns the bytes between points neighbouring in x, y, z of a block of `extent` points. Dense (fewest cache lines
/// per halo), with two exceptions: a row or plane pitch that is 0 modulo 4096 gets one more cache line, and rows of
/// 2D blocks, and of blocks of 64 MiB or more, are an odd number of whole lines. In 2D, stores then cross no line,
/// which makes sweeps in the cache up to 1.6 times faster; in 3D that gains little, and planes would have gaps.
/// Non-temporal stores of several rows in one sweep then need not be joined, which makes 3D sweeps from memory a
/// fifth faster.
std::array<std::int64_t, 3> field_strides(const Index& extent, int element_bytes);

/// The same for a block in the memory of a device: rows are whole cache lines of a device, so that a warp's loads,
/// and loads of 16 bytes, all begin at lines. Rows of elements that do not fill a line are dense.
std::array<std::int64_t, 3> device_strides(const Index& extent, int element_bytes);
inline constexpr std::int64_t device_line = 128;

}  // namespace haloscope
