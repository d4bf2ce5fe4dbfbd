// The fields of a rig: fields of a run, or arrays as third-party codes have them, of any strides.
#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "each_point.hpp"
#include "haloscope/field/field.hpp"

namespace haloscope::test {

/// Arrays whose axes are in a random order and direction, with gaps between points, rows and planes; other ones for
/// each quantity and each rank, the same for all slots of a quantity.
class StridedArrays {
 public:
  StridedArrays(const Plan& plan, int slots, unsigned seed) : plan_(plan) {
    std::mt19937 random(seed);
    for (int q = 0; q < static_cast<int>(plan.spec.quantities.size()); ++q) {
      const Shape shape = random_shape(random, plan.allocated(q), plan.spec.quantities[q].element_bytes);
      views_.emplace_back();
      for (int s = 0; s < slots; ++s) {
        bytes_.emplace_back(std::max<std::size_t>(1, static_cast<std::size_t>(shape.bytes)), canary);  // never null
        views_.back().push_back({bytes_.back().data() + shape.origin, shape.stride, shape.element});
      }
    }
  }
  const Views& views() const { return views_; }
  /// True if only points have changed.
  bool canaries_alive() const {
    std::size_t array = 0;
    for (std::size_t q = 0; q < views_.size(); ++q)
      for (const SlotView& view : views_[q])
        if (!gaps_untouched(view, plan_.allocated(static_cast<int>(q)), bytes_[array++])) return false;
    return true;
  }

 private:
  static constexpr std::byte canary{0xA5};
  struct Shape {
    std::array<std::int64_t, 3> stride;
    std::int64_t element, bytes, origin;
  };
  static Shape random_shape(std::mt19937& random, const Box& points, std::int64_t element) {
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    std::array<int, 3> order{0, 1, 2};
    std::shuffle(order.begin(), order.end(), random);
    Shape shape{{}, element, 0, 0};
    std::int64_t reach = element * pick(1, 3);
    for (const int d : order) {
      const bool backwards = pick(0, 3) == 0;
      shape.stride[d] = backwards ? -reach : reach;
      shape.origin += reach * (backwards ? points.hi[d] - 1 : -points.lo[d]);
      reach = reach * points.extent(d) + element * pick(0, 2);
    }
    shape.bytes = reach;
    return shape;
  }
  static bool gaps_untouched(const SlotView& view, const Box& points, const std::vector<std::byte>& bytes) {
    std::vector<bool> is_point(bytes.size());
    each_point(points, [&](const Index& p) {
      std::fill_n(is_point.begin() + (view.at(p) - bytes.data()), view.element, true);
    });
    for (std::size_t b = 0; b < bytes.size(); ++b)
      if (!is_point[b] && bytes[b] != canary) return false;
    return true;
  }

  Plan plan_;
  std::vector<std::vector<std::byte>> bytes_;  // by quantity, then slot
  Views views_;
};

/// Fields of a run, or strided arrays.
class RigFields {
 public:
  explicit RigFields(Storage storage) : storage_(std::move(storage)) {}
  explicit RigFields(StridedArrays arrays) : arrays_(std::move(arrays)) {}
  const Views& views() const { return storage_ ? storage_->views() : arrays_->views(); }
  void set_canaries() {
    if (storage_) storage_->set_canaries();
  }
  bool canaries_alive() const { return storage_ ? storage_->canaries_alive() : arrays_->canaries_alive(); }
  /// Only of fields of a run.
  std::span<std::byte> bytes(int quantity, int slot) const { return storage_->bytes(quantity, slot); }

 private:
  std::optional<Storage> storage_;
  std::optional<StridedArrays> arrays_;
};

}  // namespace haloscope::test
