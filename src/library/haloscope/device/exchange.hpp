// Launches of the kernel that packs messages, signals each ready part to the CPU, and unpacks messages that
// arrive while it runs. Plain values, no device code.
#pragma once

#include <cstdint>

#include "haloscope/device/copy.hpp"
#include "haloscope/device/stay.hpp"

namespace haloscope::device {

class Stream;

/// The value of a word of an exchange: a part that is ready, or the progress of a block. Words of other exchanges mean
/// nothing, so none is ever reset.
HALOSCOPE_ON_BOTH_SIDES constexpr std::uint64_t signal(std::uint32_t exchange, int of) {
  return std::uint64_t{exchange} << 32 | static_cast<std::uint32_t>(of);
}
HALOSCOPE_ON_BOTH_SIDES constexpr int of_signal(std::uint64_t word) { return static_cast<int>(word & 0xffffffffu); }
HALOSCOPE_ON_BOTH_SIDES constexpr std::uint32_t exchange_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32);
}

inline constexpr int most_parts = 16;  ///< of one message

/// The progress of a block. The first one decides that a kernel leaves before everything has arrived; the others follow
/// it.
enum class Progress : std::int32_t { packs, waits, ended, left };

inline constexpr int signal_words = 16;  ///< distance of consecutive words of 8 bytes: a cache line each

struct ExchangeLaunch {
  /// Pieces [first, end) of a part of a message, which travels alone.
  struct Part {
    std::int32_t first, end;
  };
  const CopyLaunch::Piece* pieces = nullptr;  ///< device memory
  const Part* parts = nullptr;                ///< device memory: the sent parts, then the received parts
  int sent = 0, received = 0;                 ///< parts
  int blocks = 1;                             ///< they all run concurrently
  std::uint32_t exchange = 0;                 ///< its number, from 1 on
  std::uint32_t* moved = nullptr;             ///< device memory, by sent part: pieces packed in all exchanges so far
  std::uint32_t* tasks = nullptr;             ///< device memory: of all exchanges so far; null: a word for each part
  std::uint64_t* packed = nullptr;            ///< mapped: parts that are ready, in their order or by part
  const std::uint64_t* arrived =
      nullptr;                        ///< mapped: parts that have arrived, in their order; the first block reads it
  std::uint64_t* relayed = nullptr;   ///< device memory: the same for the other blocks, in order
  std::uint64_t* progress = nullptr;  ///< mapped, by block
  Stay stay;
};

struct ExchangeKernels {
  void (*run)(Stream&, const ExchangeLaunch&) = nullptr;
  /// Max blocks that are guaranteed to run concurrently on the current device. Loads the kernel.
  int (*resident)() = nullptr;
};

}  // namespace haloscope::device
