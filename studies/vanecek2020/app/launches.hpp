// Launches of kernels whose blocks of threads each have a buffer to pack and one to unpack (Vanecek 2020, chapter 3).
// Plain values, no device code.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "haloscope/device/kernels.hpp"
#include "haloscope/device/stay.hpp"
#include "haloscope/error.hpp"

namespace haloscope::device {

class Stream;

inline constexpr int most_chunks = 16;         ///< of one buffer
inline constexpr int line_words = 32;          ///< words of 4 bytes in 128 bytes, the longest cache line of a GPU
inline constexpr std::uint32_t copied = 1;     ///< bit of BlocksQueue::notices: the input is in device memory
inline constexpr std::uint32_t no_task = ~0u;  ///< -1 in BlocksQueue::posted: nothing has been posted yet
/// Bit of BlocksQueue::notices: a chunk has arrived.
HALOSCOPE_ON_BOTH_SIDES constexpr std::uint32_t arrived(int chunk) { return 2u << chunk; }

/// The type of the buffers' elements.
enum class ElementType : std::uint8_t { f64, f32, i32 };
HALOSCOPE_ON_BOTH_SIDES constexpr int bytes_of(ElementType type) { return type == ElementType::f64 ? 8 : 4; }

/// One block's buffers with their source and destination. A side has a separate process in the thesis.
struct BlockEntry {
  void* out = nullptr;        ///< packed into: pinned or device memory
  const void* in = nullptr;   ///< arrives here: pinned memory
  std::int64_t elements = 0;  ///< of either
  std::int32_t side = 0, source = 0;
  std::int32_t number = 0;  ///< of the block within its side
};

/// A wrong element that a block found while unpacking.
struct BlockFault {
  std::int64_t element = -1;  ///< -1: all as expected
  double expected = 0, found = 0;
};

/// Ticks of the device's clock.
struct BlockStamps {
  std::uint64_t begin, posting, packed, arrived, unpacked;
};

/// Positions that elements of less than 8 bytes can distinguish.
inline constexpr std::int64_t most_places = 1024;
/// Returns the slope by which elements differ from each other where all are checked.
constexpr double slope_of(ElementType type) {
  switch (type) {
    case ElementType::f64:
      return 0x1p-21;
    case ElementType::f32:
      return 1.0 / most_places;
    case ElementType::i32:
      return 1;
  }
  return 0;
}
/// Returns element i of a block: its value, which integers hold multiplied, and the slope times the position.
template <class T>
HALOSCOPE_ON_BOTH_SIDES constexpr T element_at(double value, double slope, std::int64_t i) {
  if constexpr (sizeof(T) == sizeof(double))
    return value + slope * static_cast<double>(i);
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(value + slope * static_cast<double>(i % most_places));
  else
    return static_cast<T>(static_cast<std::int64_t>(value) * most_places +
                          static_cast<std::int64_t>(slope) * (i % most_places));
}

struct BlocksLaunch {
  const BlockEntry* entries = nullptr;  ///< device memory
  int first = 0, count = 0;             ///< blocks
  int threads = 1;                      ///< of each
  std::int64_t iteration = 0;
  std::int32_t sides = 1, numbers = 1;  ///< of all processes; blocks of a side
  ElementType type = ElementType::f64;  ///< of the elements
  double slope = 0;                     ///< added to a value per element, see element_at()
  bool every = false;                   ///< unpacking checks every element instead of one per thread
  BlockFault* faults = nullptr;         ///< mapped memory, by block
  BlockStamps* stamps = nullptr;        ///< the same; null: none are taken
  bool detailed = false;                ///< stamp `posting` too
};

/// The words of a task queue. Each is written by one side only: the GPU or the CPU.
struct BlocksQueue {
  /// Mapped, no_task before a launch. A word a block, its last packed chunk; or, with a lock, tasks in their order:
  /// block x most_chunks + chunk.
  std::uint32_t* posted = nullptr;
  const std::uint32_t* notices = nullptr;  ///< mapped, a word a block: `copied` and `arrived` bits
  int stride = 1;                          ///< words from one block's, or task's, to the next
  /// Device memory, 0 between two launches; null: a channel for each block.
  std::uint32_t* lock = nullptr;
  std::uint32_t* tail = nullptr;    ///< the same: tasks in the list
  std::uint32_t tasks = 0;          ///< that the list takes in a launch
  std::uint32_t* packed = nullptr;  ///< the same: blocks that have packed
  int at_once = 0;                  ///< blocks that pack at the same time; 0: all
  int chunks = 1;                   ///< of each buffer, at most
  bool copies = false;              ///< a block packs once its input has been copied
  /// Mapped, a word a block: 0, or its position when the kernel left; a launch that resumes continues there.
  std::uint32_t* left = nullptr;
  bool resumes = false;
  Stay stay;
};

/// Returns the chunks of a buffer: at most its elements.
HALOSCOPE_ON_BOTH_SIDES constexpr int chunks_of(std::int64_t elements, int chunks) {
  return elements < chunks ? static_cast<int>(elements) : chunks;
}
HALOSCOPE_ON_BOTH_SIDES constexpr std::int64_t chunk_begin(std::int64_t elements, int chunks, int chunk) {
  return elements * chunk / chunks;
}

/// The kernels of blocks, an entry of Kernels::of_guests.
inline constexpr const char* blocks_kernels_name = "blocks";
struct BlocksKernels {
  void (*pack)(Stream&, const BlocksLaunch&) = nullptr;
  void (*unpack)(Stream&, const BlocksLaunch&) = nullptr;
  /// Packs, waits and unpacks; all its blocks run concurrently.
  void (*queue)(Stream&, const BlocksLaunch&, const BlocksQueue&) = nullptr;
  /// Returns the most blocks of that kernel that are sure to run concurrently on the current device. Loads it.
  int (*resident)(int threads) = nullptr;
};

/// Returns the kernels of blocks. @throws Error if the back end has none: add_kernels() has not been called for them.
inline const BlocksKernels& find_blocks_kernels(const Kernels& kernels) {
  for (const Kernels::OfGuest& one : kernels.of_guests)
    if (one.name == std::string(blocks_kernels_name)) return *static_cast<const BlocksKernels*>(one.table);
  throw Error(Exit::failed, "this device has no kernels of blocks; call blocks_kind() before it is opened");
}

}  // namespace haloscope::device
