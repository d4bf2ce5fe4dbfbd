// What an exchange fetches from memory although it has touched it before: its data outgrow the cache.
//
// The ranks of a socket share a cache of `cache_bytes`. An exchange touches lines of fields, those at the ends of rows
// as a whole however few bytes of them it needs, and buffers of messages. Of F bytes that all ranks of the socket touch
// between two visits to the same line, the share 1 - (cache_bytes / F)^4 is gone when the line is visited again, and
// comes back, and is written back where it was changed, at the socket's memory bandwidth, which its ranks share.
//
// Between the same visits of two exchanges lie all fields. A transport that comes back to the lines of a field within
// an exchange (it packs one side, then the other, then unpacks them: `field_returns`) has touched only what travels
// together in between: one field, where fields travel one after another, all of them where they are merged.
#pragma once

#include <span>
#include <vector>

#include "haloscope/model/op_costs.hpp"

namespace haloscope::model {

/// Bytes of the lines of one field that an exchange touches, and of those that it writes.
struct Touched {
  double lines = 0, dirty = 0;
};
/// Rows are taken to follow one another without a gap, so that the end of one and the start of the next share a line.
Touched touched_lines(const Plan& plan, int quantity, double line_bytes);

/// Seconds of one rank by message: for lines of fields, at the end that packs or unpacks, and for buffers inside a
/// node.
class Refetch {
 public:
  double fields_s(std::size_t message) const { return fields_.empty() ? 0.0 : fields_[message]; }
  double buffers_s(std::size_t message) const { return buffers_.empty() ? 0.0 : buffers_[message]; }
  bool none() const { return fields_.empty(); }

 private:
  friend Refetch refetch_of(const Plan&, std::span<const Traffic>, const StageUnitCosts&, const RankLocation&);
  std::vector<double> fields_, buffers_;
};
/// None where the profile says nothing of the memory. Cost O(messages).
Refetch refetch_of(const Plan& plan, std::span<const Traffic> traffic, const StageUnitCosts& prices,
                   const RankLocation& where);

}  // namespace haloscope::model
