// Shared by the files of the C interface: errors at the border, versioned structs, the objects behind the handles.
#pragma once

#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "haloscope/c/handles.hpp"
#include "haloscope/choice.hpp"
#include "haloscope/core/out_of_memory.hpp"
#include "haloscope/error.hpp"
#include "haloscope/haloscope.h"
#include "haloscope/model/case.hpp"
#include "haloscope/program.hpp"

struct hs_choice {
  using Handle = void;
  haloscope::Choice choice;
};

struct hs_profile {
  using Handle = void;
  haloscope::model::Profile profile;
};

struct hs_step {
  using Handle = void;
  haloscope::Step step;
};

struct hs_layout {
  using Handle = void;
  haloscope::Layout layout;
};

/// A plan and the flat arrays that hs_plan_data points into.
struct hs_plan {
  using Handle = void;
  haloscope::Plan plan;
  std::vector<hs_message> messages;
  std::vector<hs_region> regions;
  std::vector<hs_copy> copies;
};

struct hs_program {
  using Handle = void;
  haloscope::Program program;
  std::vector<hs_op> ops;
  std::vector<std::int32_t> after;
  std::vector<hs_sweep> sweeps;
  std::vector<std::int32_t> set_starts, set_messages, copy_set_starts;
  std::vector<hs_copy> set_copies;
  std::vector<std::int32_t> ring_to_device, ring_starts;
  std::vector<hs_box> ring_boxes;
};

namespace haloscope::c {

/// Keeps the text of the calling thread's last failure, for hs_last_error(). Where memory is exhausted, its first 255
/// characters.
void keep_failure(const char* prefix, const char* text) noexcept;

/// Run `body`; exceptions end here, as a status and a text.
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
  throw UsageError(std::string("argument '") + name +
                   "' is no handle of this library's, or was freed before; pass one that its _create function gave and "
                   "that is still in use");
}

/// What a required pointer points to, or a handle stands for.
/// @throws UsageError naming the argument where it is NULL, or a handle of nothing that is there.
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

/// Frees what a handle stands for; NULL is nothing.
template <Handled T>
hs_status release(const T* handle, const char* name) noexcept {
  return guarded([&] {
    if (handle && !Handles<T>::all().drop(handle)) refuse_handle(name);
  });
}

/// A struct that starts with struct_size, as this library knows it: members that an older caller lacks keep `defaults`.
template <class T>
T versioned(const T* given, T defaults, const char* name) {
  const std::uint64_t size = needed(given, name).struct_size;
  if (size > sizeof(T) || size < sizeof size)
    throw UsageError(std::string("'") + name + "' has struct_size " + std::to_string(size) + ", this library knows " +
                     std::to_string(sizeof(T)) + "; initialise it with its _init function, and use the header of " +
                     "version " + hs_version());
  std::memcpy(&defaults, given, size);
  return defaults;
}

inline std::string text(const char* given) { return given ? given : ""; }

/// @throws UsageError when `value` is not one of 0..count-1.
template <class Enum>
Enum enumerator(std::int32_t value, int count, const char* name) {
  if (value < 0 || value >= count)
    throw UsageError(std::string(name) + " " + std::to_string(value) + " is none of the values 0 to " +
                     std::to_string(count - 1));
  return static_cast<Enum>(value);
}

/// @throws UsageError as parsed_json() does.
nlohmann::json parsed(const char* json, const char* name);

/// @throws UsageError for a stage that a step does not have.
const Stage& stage_of(const Step& step, std::int32_t stage);

/// @throws UsageError for a rank outside the layout.
void check_rank(const Layout& layout, std::int32_t rank);

/// A program and its flat arrays.
hs_program flatten(Program&& program);

model::Setting from_c(const hs_setting* setting);

/// Hands out JSON that lives in `result`, one per function and thread.
void answer(std::string& result, const nlohmann::json& found, const char** json);

hs_box to_c(const Box& box);
hs_copy to_c(const Copy& copy);
Box from_c(const hs_box& box);
Copy from_c(const hs_copy& copy);
ExchangeSpec from_c(const hs_spec* spec);

template <class To, class From>
void copy3(const From& from, To& to) {
  for (int d = 0; d < 3; ++d) to[d] = static_cast<std::decay_t<decltype(to[d])>>(from[d]);
}

}  // namespace haloscope::c
