// Values as JSON in both directions, by lists of their members.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "haloscope/core/text.hpp"
#include "haloscope/extend/words.hpp"

namespace haloscope::bridge {

using Json = nlohmann::json;

template <class Struct, class Value>
struct Member {
  const char* name;
  Value Struct::*at;
};

/// The members of a struct that cross, in a tuple; HALOSCOPE_MEMBERS sets it, in values.hpp.
template <class Struct>
inline constexpr std::nullptr_t members_of{};

/// Sets members_of a struct: the members of these names, in this order.
#define HALOSCOPE_MEMBERS(Struct, ...)                                                                            \
  template <>                                                                                                     \
  inline constexpr auto members_of<Struct> = [] {                                                                 \
    using T = Struct;                                                                                             \
    return std::tuple_cat(NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(HALOSCOPE_MEMBER, __VA_ARGS__)) std::tuple()); \
  }()
#define HALOSCOPE_MEMBER(name) std::tuple(Member{#name, &T::name}),

/// The members cross as a list, in their order, and not as an object.
template <class Struct>
inline constexpr bool crosses_as_list = false;

template <class T>
inline constexpr bool has_members = !std::is_same_v<const std::nullptr_t, decltype(members_of<T>)>;
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_array = false;
template <class T, std::size_t n>
inline constexpr bool is_array<std::array<T, n>> = true;

/// The JSON of a value: objects by their members, enumerations by their words.
template <class T>
Json json_of(const T& value) {
  if constexpr (crosses_as_list<T>) {
    Json list = Json::array();
    std::apply([&](const auto&... m) { (list.push_back(json_of(value.*m.at)), ...); }, members_of<T>);
    return list;
  } else if constexpr (has_members<T>) {
    Json object = Json::object();
    std::apply([&](const auto&... m) { ((object[m.name] = json_of(value.*m.at)), ...); }, members_of<T>);
    return object;
  } else if constexpr (is_vector<T> || is_array<T>) {
    Json array = Json::array();
    for (const auto& one : value) array.push_back(json_of(one));
    return array;
  } else if constexpr (requires { Words<T>::all(); }) {
    return to_word(value);
  } else if constexpr (std::is_enum_v<T>) {
    return to_string(value);
  } else {
    return value;
  }
}

[[noreturn]] void refuse(const Json& json, const std::string& name, const std::string& wanted);

/// @throws UsageError for JSON that is not a list of `length` values.
void require_list(const Json& json, const std::string& name, std::size_t length);

/// @param names  of all members. @throws UsageError for an entry with another name.
void require_known(const Json& object, const std::string& name, const std::vector<std::string>& names);

/// Reads values of all kinds: `name` is for messages.
struct Reader {
  template <class T>
  requires(has_members<T> && !crosses_as_list<T>) static void read(const Json& json, const std::string& name,
                                                                   T& value) {
    if (!json.is_object()) refuse(json, name, "an object");
    const auto one = [&](const auto& m) {
      if (json.contains(m.name)) read(json.at(m.name), m.name, value.*m.at);
    };
    std::apply(
        [&](const auto&... m) {
          require_known(json, name, {m.name...});
          (one(m), ...);
        },
        members_of<T>);
  }
  template <class T>
  requires crosses_as_list<T>
  static void read(const Json& json, const std::string& name, T& value) {
    require_list(json, name, std::tuple_size_v<std::remove_const_t<decltype(members_of<T>)>>);
    std::size_t next = 0;
    std::apply([&](const auto&... m) { (read(json[next++], name, value.*m.at), ...); }, members_of<T>);
  }
  template <class T>
  static void read(const Json& json, const std::string& name, std::vector<T>& value) {
    if (!json.is_array()) refuse(json, name, "a list");
    value.resize(json.size());
    for (std::size_t i = 0; i < json.size(); ++i) read(json[i], name, value[i]);
  }
  template <class T, std::size_t n>
  static void read(const Json& json, const std::string& name, std::array<T, n>& value) {
    require_list(json, name, n);
    for (std::size_t i = 0; i < n; ++i) read(json[i], name, value[i]);
  }
  template <class A, class B>
  static void read(const Json& json, const std::string& name, std::pair<A, B>& value) {
    require_list(json, name, 2);
    read(json[0], name, value.first);
    read(json[1], name, value.second);
  }
  template <class T>
  requires std::is_enum_v<T>
  static void read(const Json& json, const std::string& name, T& value) {
    if (!json.is_string()) refuse(json, name, "a word");
    value = from_word<T>(json.get<std::string>());
  }
  static void read(const Json& json, const std::string& name, std::string& value) {
    if (!json.is_string()) refuse(json, name, "a text");
    value = json.get<std::string>();
  }
  static void read(const Json& json, const std::string& name, bool& value) {
    if (!json.is_boolean()) refuse(json, name, "true or false");
    value = json.get<bool>();
  }
  template <std::floating_point T>
  static void read(const Json& json, const std::string& name, T& value) {
    if (!json.is_number()) refuse(json, name, "a number");
    value = json.get<T>();
  }
  template <std::integral T>
  static void read(const Json& json, const std::string& name, T& value) {
    const bool fits = json.is_number_unsigned()
                          ? std::in_range<T>(json.get<std::uint64_t>())
                          : json.is_number_integer() && std::in_range<T>(json.get<std::int64_t>());
    if (!fits) refuse(json, name, "a whole number that fits into " + std::to_string(8 * sizeof(T)) + " bits");
    value = json.get<T>();
  }
};

/// Reads a value; members that a JSON object lacks are unchanged.
/// @param name  for messages, "low". @throws UsageError for JSON that is not such a value.
template <class T>
void read(const Json& json, const std::string& name, T& value) {
  Reader::read(json, name, value);
}

}  // namespace haloscope::bridge
