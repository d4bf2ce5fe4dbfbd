// Arrangements of the fields of one rank in one piece of memory, of the host or a device: offsets, without the
// memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "haloscope/field/memory.hpp"
#include "haloscope/plan.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

/// Points of one slot that are contiguous in x: a row of it, or a part of a row.
struct RowPart {
  int quantity = 0, slot = 0;
  Index first{0, 0, 0};
  std::int64_t points = 0;
  ByteRange bytes;  ///< their place, from the beginning of the memory
};

/// Returns the part of a row in a box, possibly without points.
RowPart intersect(const RowPart& row, const Box& box);

/// The places of every quantity of a plan, in every slot, with its halos, and guards around them.
class Arrangement {
 public:
  Arrangement() = default;
  /// @param plan   has the points of each quantity, `plan.allocated(q)`.
  /// @param slots  buffers per quantity, >= 1.
  /// @param on_device  rows begin at cache lines of a device.
  /// @param shared  other ranks access the memory: a private middle that fills a huge page begins on one.
  /// @throws UsageError for slots < 1.
  Arrangement(const Plan& plan, const std::vector<int>& slots, bool on_device, bool shared = false);

  /// Returns the bytes of everything, guards included.
  std::size_t bytes() const { return bytes_; }
  /// Returns the bytes of all slots of all quantities.
  std::int64_t size() const;
  /// Returns the bytes of one slot, halos and padding included, from its first to its last allocated point.
  ByteRange range(int quantity, int slot) const { return block(quantity, slot).bytes; }
  /// Returns the bytes from the first to the last point of a box of a slot; none for an empty box.
  ByteRange range(int quantity, int slot, const Box& box) const;
  /// Returns the bytes that other ranks may read or write during an exchange, in ascending order.
  const std::vector<ByteRange>& reached() const { return reached_; }
  int slots(int quantity) const;
  Views views(std::byte* memory) const;

  /// Returns at most `most` bytes from the beginning of `rest`, without cutting a point.
  /// @throws UsageError if a point is larger than `most`.
  ByteRange cut(const ByteRange& rest, std::size_t most) const;
  /// Calls visit(const RowPart&) for all rows within some bytes, in the order of addresses. No point may be cut.
  template <class Visit>
  void each_row(const ByteRange& within, Visit visit) const {
    for (const Block& block : blocks_) each_row(block, within, visit);
  }

  /// Writes a canary into every byte between and around the rows (row padding included) that is within some bytes.
  /// @param here  current address of these bytes.
  void set_canaries(const ByteRange& within, std::byte* here) const;
  /// Returns true if every canary is as set_canaries() left it.
  bool canaries_alive(const ByteRange& within, const std::byte* here) const;
  /// Removes the canaries in the gaps between a quantity's rows from now on.
  void drop_canaries_within(int quantity);

 private:
  struct Block {
    int quantity, slot;
    ByteRange bytes;
    Index low;  ///< its first point
    std::int64_t row_points, rows, planes;
    std::array<std::int64_t, 3> stride;
    bool gaps = true;  ///< its rows have canaries between them

    /// Rows are numbered through all planes.
    std::size_t begin_of(std::int64_t row) const {
      return bytes.begin + static_cast<std::size_t>(row / rows * stride[2] + row % rows * stride[1]);
    }
    std::size_t end_of(std::int64_t row) const {
      return begin_of(row) + static_cast<std::size_t>(row_points * stride[0]);
    }
  };
  const Block& block(int quantity, int slot) const {
    return blocks_[first_[static_cast<std::size_t>(quantity)] + static_cast<std::size_t>(slot)];
  }
  static std::int64_t row_at(const Block& block, std::size_t at);
  std::size_t cut_before(std::size_t end) const;
  template <class Visit>
  static void each_row(const Block& block, const ByteRange& within, Visit visit);
  template <class Visit>
  bool all_gaps(const ByteRange& within, Visit visit) const;

  std::size_t bytes_ = 0;
  std::vector<std::size_t> first_;  // by quantity: its first block
  std::vector<Block> blocks_;       // by quantity, then slot, which is the order of addresses
  std::vector<ByteRange> reached_;
};

template <class Visit>
void Arrangement::each_row(const Block& block, const ByteRange& within, Visit visit) {
  if (block.bytes.end <= within.begin || within.end <= block.bytes.begin) return;
  for (std::int64_t row = row_at(block, within.begin); row < block.rows * block.planes; ++row) {
    const std::size_t first = block.begin_of(row);
    if (first >= within.end) return;
    const ByteRange part{std::max(first, within.begin), std::min(block.end_of(row), within.end)};
    if (part.begin >= part.end) continue;
    const auto element = static_cast<std::size_t>(block.stride[0]);
    const auto points_before = static_cast<std::int64_t>((part.begin - first) / element);
    visit(RowPart{block.quantity,
                  block.slot,
                  {block.low[0] + points_before, block.low[1] + row % block.rows, block.low[2] + row / block.rows},
                  static_cast<std::int64_t>(part.size() / element),
                  part});
  }
}

}  // namespace haloscope
