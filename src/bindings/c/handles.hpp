// Handles of the C interface: numbers in the place of addresses. A handle of an object that was freed, or of another
// kind, is recognised without a read of memory that may be gone.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "haloscope/error.hpp"

namespace haloscope::c {

/// Types that a caller of the C interface holds by a handle.
template <class T>
concept Handled = requires {
  typename T::Handle;
};

/// A number for each kind of object, from 0.
inline std::uint64_t next_kind() {
  static std::atomic<std::uint64_t> kinds{0};
  return kinds++;
}

/// The objects of one kind. Finding one takes no lock; it must not be freed meanwhile.
template <Handled T>
class Handles {
 public:
  static Handles& all() {
    static Handles& handles = *new Handles;  // never destroyed: objects may be freed while the program ends
    return handles;
  }
  T* keep(std::unique_ptr<T> object) {
    const std::lock_guard lock(changing_);
    const std::uint64_t index = free_.empty() ? new_place() : free_.back();
    Place& place = *find_place(index);
    place.object.store(object.release(), std::memory_order_relaxed);
    const std::uint32_t life = place.life.load(std::memory_order_relaxed) + 1;
    place.life.store(life, std::memory_order_release);
    if (!free_.empty()) free_.pop_back();
    return to_handle(life, index);
  }
  /// Null for a handle of an object that does not exist.
  T* find(const T* handle) const {
    const auto [life, index] = from_handle(handle);
    const Place* const place = life % 2 == 1 ? find_place(index) : nullptr;
    if (place == nullptr || place->life.load(std::memory_order_acquire) != life) return nullptr;
    return place->object.load(std::memory_order_relaxed);
  }
  std::unique_ptr<T> drop(const T* handle) {
    const std::lock_guard lock(changing_);
    T* const object = find(handle);
    if (object == nullptr) return nullptr;
    const auto [life, index] = from_handle(handle);
    free_.push_back(index);
    find_place(index)->life.store(life + 1, std::memory_order_release);
    return std::unique_ptr<T>(object);
  }

 private:
  static_assert(sizeof(void*) == 8, "a handle holds four numbers");
  static constexpr int index_bits = 24, kind_bits = 7;
  static constexpr std::uint64_t chunk = 4096, chunks = (1u << index_bits) / chunk;

  /// Objects are made and freed: lives are counted, and odd while one exists.
  struct Place {
    std::atomic<std::uint32_t> life{0};
    std::atomic<T*> object{nullptr};
  };
  struct Parts {
    std::uint32_t life;
    std::uint64_t index;
  };

  /// Odd, which the address of an object never is.
  T* to_handle(std::uint32_t life, std::uint64_t index) const {
    const std::uint64_t number = std::uint64_t{life} << 32 | index << (kind_bits + 1) | kind_ << 1 | 1;
    return reinterpret_cast<T*>(number);
  }
  /// Life 0 for anything but a handle of this kind.
  Parts from_handle(const T* handle) const {
    const auto number = reinterpret_cast<std::uint64_t>(handle);
    const std::uint64_t tag = number & ((1u << (kind_bits + 1)) - 1);
    if (tag != (kind_ << 1 | 1)) return {0, 0};
    return {static_cast<std::uint32_t>(number >> 32), number >> (kind_bits + 1) & ((1u << index_bits) - 1)};
  }
  Place* find_place(std::uint64_t index) const {
    Place* const places = places_[index / chunk].load(std::memory_order_acquire);
    return places == nullptr ? nullptr : places + index % chunk;
  }
  std::uint64_t new_place() {
    const std::uint64_t index = count_;
    if (index / chunk == chunks)
      throw UsageError("there are " + std::to_string(count_) + " objects of one kind; free the unused ones");
    if (free_.capacity() <= index) free_.reserve(2 * index + 16);  // drop() must find room
    auto& places = places_[index / chunk];
    if (places.load(std::memory_order_relaxed) == nullptr) places.store(new Place[chunk], std::memory_order_release);
    ++count_;
    return index;
  }

  const std::uint64_t kind_ = next_kind();
  std::mutex changing_;
  std::uint64_t count_ = 0;
  std::vector<std::uint64_t> free_;
  std::array<std::atomic<Place*>, chunks> places_{};
};

/// The handle of a new object.
template <Handled T>
T* keep(T* object) {
  return Handles<T>::all().keep(std::unique_ptr<T>(object));
}

}  // namespace haloscope::c
