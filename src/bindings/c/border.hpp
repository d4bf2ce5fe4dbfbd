// The border of the C interfaces: converts exceptions to a status and a text, reads structs of older callers, looks up
// handles.
#pragma once

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>

#include "bindings/c/handles.hpp"
#include "haloscope/core/out_of_memory.hpp"
#include "haloscope/error.hpp"
#include "haloscope/status.h"

namespace haloscope::c {

/// Stores the text of the calling thread's last failure, for hs_last_error(). Where memory is exhausted, its first 255
/// characters.
void keep_failure(const char* prefix, const char* text) noexcept;

/// Runs `body`; exceptions end here, as a status and a text.
template <class Body>
hs_status guarded(const Body& body) noexcept {
  try {
    body();
    return HS_OK;
  } catch (const Error& error) {
    keep_failure("", error.what());
    return static_cast<hs_status>(error.exit_code());
  } catch (const std::bad_alloc&) {
    keep_failure("", exhausted_memory().data());
  } catch (const std::exception& error) {
    keep_failure("Haloscope failed inside: ", error.what());
  } catch (...) {
    keep_failure("Haloscope failed inside for an unknown reason", "");
  }
  return HS_FAILED;
}

[[noreturn]] inline void refuse_handle(const char* name) {
  throw UsageError(
      std::string("argument '") + name +
      "' is not a handle of this library, or was freed before; pass one that its _create function returned and "
      "that is still in use");
}

/// The object that a required pointer or a handle refers to.
/// @throws UsageError naming the argument where it is NULL, or a handle of an object that does not exist.
template <class T>
T& needed(T* pointer, const char* name) {
  if (!pointer) throw UsageError(std::string("argument '") + name + "' is NULL; pass a valid address");
  if constexpr (Handled<std::remove_const_t<T>>) {
    T* const object = Handles<std::remove_const_t<T>>::all().find(pointer);
    if (!object) refuse_handle(name);
    return *object;
  } else {
    return *pointer;
  }
}

/// Frees the object of a handle; does nothing for NULL.
template <Handled T>
hs_status release(const T* handle, const char* name) noexcept {
  return guarded([&] {
    if (handle && !Handles<T>::all().drop(handle)) refuse_handle(name);
  });
}

/// A struct that starts with struct_size, as this library defines it: members that an older caller lacks have the
/// values of `defaults`.
/// @param least  bytes that every caller has.
template <class T>
T versioned(const T* passed, T defaults, const char* name, std::size_t least = sizeof(std::uint64_t)) {
  const std::uint64_t size = needed(passed, name).struct_size;
  if (size > sizeof(T) || size < least || size % alignof(T) != 0)
    throw UsageError(std::string("'") + name + "' has struct_size " + std::to_string(size) + ", this library's has " +
                     std::to_string(sizeof(T)) + "; initialise it with its _init function, and use the header of " +
                     "version " + hs_version());
  std::memcpy(&defaults, passed, size);
  return defaults;
}

/// An element of an array of such structs, which lie as far apart as in the caller's header.
template <class T>
T versioned_element(const T* array, int number, const T& defaults, const char* name, std::size_t least) {
  const std::uint64_t size = versioned(array, defaults, name, least).struct_size;
  const T* at = reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(array) + size * number);
  const T found = versioned(at, defaults, name, least);
  if (found.struct_size != size)
    throw UsageError(std::string("'") + name + "' has elements of struct_size " + std::to_string(size) + " and " +
                     std::to_string(found.struct_size) + "; initialise each with its _init function");
  return found;
}

/// Writes the members of `from` that the caller's header has.
template <class T>
void put_versioned(T from, T* to, const char* name) {
  from.struct_size = versioned(to, from, name).struct_size;
  std::memcpy(to, &from, from.struct_size);
}

/// Initialises a struct of a caller whose header may be older or newer. @param size  of the caller's struct.
template <class T>
void put_defaults(T defaults, T* to, std::uint64_t size) {
  if (to == nullptr || size < sizeof defaults.struct_size) return;
  defaults.struct_size = size;
  std::memset(to, 0, size);
  std::memcpy(to, &defaults, std::min<std::uint64_t>(size, sizeof defaults));
}

inline std::string text(const char* value) { return value ? value : ""; }

/// @throws UsageError when `value` is not one of 0..count-1.
template <class Enum>
Enum enumerator(std::int32_t value, int count, const char* name) {
  if (value < 0 || value >= count)
    throw UsageError(std::string(name) + " " + std::to_string(value) + " is not one of the values 0 to " +
                     std::to_string(count - 1));
  return static_cast<Enum>(value);
}

template <class To, class From>
void copy3(const From& from, To& to) {
  for (int d = 0; d < 3; ++d) to[d] = static_cast<std::decay_t<decltype(to[d])>>(from[d]);
}

}  // namespace haloscope::c
