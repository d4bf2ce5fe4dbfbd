// Exhausted memory: one error for all kinds of memory, with the bytes needed and available.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "haloscope/core/making.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

/// Returns the bytes that this process may still allocate: the minimum of the system's free memory (page cache and
/// swap count), the limit of its control group and its limit of addresses; -1 where the system reports none of them.
/// Other processes allocate memory too.
/// Cost: some files below /proc and /sys are read. Allocates nothing.
std::int64_t available_memory() noexcept;

/// Returns the total bytes of the machine, or of the control group of this process, including swap; -1: not reported.
/// Read once.
std::int64_t total_memory() noexcept;

/// Memory is exhausted on this rank, possibly not on others. Inside agree() the error reaches all ranks, elsewhere
/// collectively() detects an error of all ranks.
struct OutOfMemory : Error {
  /// @param purpose    purpose of the memory, "fields".
  /// @param available  available bytes; -1: not reported.
  /// @param where      "on device H100", "in /dev/shm"; "" for the memory of the host.
  OutOfMemory(const std::string& purpose, std::size_t bytes, std::int64_t available, const std::string& where = "");
  explicit OutOfMemory(const char* text) : Error(Exit::failed, text) {}
};

using ShortText = std::array<char, 256>;

/// Returns "123 bytes of memory are available", or a text that the system does not report the number. Allocates
/// nothing.
ShortText available_text() noexcept;

/// Returns the text of OutOfMemory, with its parameters. Allocates nothing.
ShortText exhausted_memory(const char* purpose, std::int64_t bytes, std::int64_t available, const char* where) noexcept;

/// Returns a text for a std::bad_alloc, whose size is unknown: the object that was being made, and the available
/// bytes. Allocates nothing.
ShortText exhausted_memory() noexcept;

/// Runs a local call. A std::bad_alloc becomes an OutOfMemory.
template <class Work>
decltype(auto) locally(const char* object, Work&& work) {
  const Making making(object);
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(exhausted_memory().data());
  }
}

}  // namespace haloscope
