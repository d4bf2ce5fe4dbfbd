// Memory that is not there: one error for all kinds of memory, with the bytes needed and the bytes there.
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

/// Bytes that this process may still take: the smallest of what the system has (page cache and swap count), its control
/// group's limit and its limit of addresses; -1 where the system reports none of them. Other processes take memory too.
/// Cost: some files below /proc and /sys are read. Allocates nothing.
std::int64_t available_memory() noexcept;

/// Bytes that the machine, or the control group of this process, has in all, swap included; -1: not reported. Read
/// once.
std::int64_t total_memory() noexcept;

/// This rank has not got memory; other ranks may have got theirs. Inside agree() the error reaches all ranks, elsewhere
/// collectively() finds out whether all ranks met one.
struct OutOfMemory : Error {
  /// @param purpose    of the memory, "fields".
  /// @param available  bytes that are there; -1: not reported.
  /// @param where      "on device H100", "in /dev/shm"; "" for the memory of the host.
  OutOfMemory(const std::string& purpose, std::size_t bytes, std::int64_t available, const std::string& where = "");
  explicit OutOfMemory(const char* text) : Error(Exit::failed, text) {}
};

using ShortText = std::array<char, 256>;

/// "123 bytes of memory are available", or that the system does not report how many. Allocates nothing.
ShortText available_text() noexcept;

/// The text of OutOfMemory, with its parameters. Allocates nothing.
ShortText exhausted_memory(const char* purpose, std::int64_t bytes, std::int64_t available, const char* where) noexcept;

/// A text for a std::bad_alloc, whose size nobody has recorded: what was being made, and the bytes there. Allocates
/// nothing.
ShortText exhausted_memory() noexcept;

/// Runs a local call. A std::bad_alloc becomes an OutOfMemory.
template <class Work>
decltype(auto) locally(const char* what, Work&& work) {
  const Making making(what);
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(exhausted_memory().data());
  }
}

}  // namespace haloscope
