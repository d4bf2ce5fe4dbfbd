// The fields of one rank in the memory of the host: every quantity of a plan, in every slot, with its halos.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "haloscope/extend/plan.hpp"
#include "haloscope/field/arrangement.hpp"
#include "haloscope/field/memory.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

/// Owns the memory of all fields of a plan. Movable; views stay valid when it is moved.
class Storage {
 public:
  /// A function that is called once per field slot with its unwritten (zero) bytes: the first writer of a page
  /// decides its NUMA node.
  using Touch = std::function<void(std::span<std::byte>)>;

  /// @param plan   has the points of each quantity, `plan.allocated(q)`.
  /// @param slots  buffers per quantity, >= 1.
  /// @param touch  first touch; without one, the first writer of a page places it.
  /// @param allocate  source of the memory; without one, private memory of this process (see Memory).
  /// @param on_device  a device will hold the same bytes at the same offsets: rows begin at cache lines of the
  ///                  device.
  /// @throws UsageError for slots < 1, Error where memory is exhausted.
  Storage(const Plan& plan, int slots, const Touch& touch = {}, const Allocator& allocate = {}, bool on_device = false)
      : Storage(plan, std::vector<int>(plan.spec.quantities.size(), slots), touch, allocate, on_device) {}
  /// The same with a number of slots for each quantity.
  Storage(const Plan& plan, const std::vector<int>& slots, const Touch& touch = {}, const Allocator& allocate = {},
          bool on_device = false);

  const Arrangement& arrangement() const { return arrangement_; }
  const Views& views() const { return views_; }
  /// Returns all bytes of one slot, halos and padding included, from its first to its last allocated point.
  std::span<std::byte> bytes(int quantity, int slot) const;
  /// Returns all bytes, guards included.
  std::span<std::byte> all() const { return {memory_.data(), arrangement_.bytes()}; }

  /// Writes a canary into every byte between and around the rows of all fields (row padding included).
  void set_canaries() { arrangement_.set_canaries({0, arrangement_.bytes()}, memory_.data()); }
  /// Returns true if every canary is as set_canaries() left it.
  bool canaries_alive() const { return arrangement_.canaries_alive({0, arrangement_.bytes()}, memory_.data()); }

  /// Removes the canaries in the gaps between a quantity's rows from now on: its bytes are zeroed and freed as a
  /// whole.
  void drop_canaries_within(int quantity) { arrangement_.drop_canaries_within(quantity); }

 private:
  Arrangement arrangement_;
  Memory memory_;
  Views views_;
};

}  // namespace haloscope
