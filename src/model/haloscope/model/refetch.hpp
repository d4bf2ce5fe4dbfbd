// Data that an exchange fetches from memory although it has accessed it before: its data outgrow the cache.
//
// The ranks of a socket share a cache of `cache_bytes`. An exchange accesses lines of fields, lines at the ends of rows
// as a whole even if it needs few bytes of them, and buffers of messages. Let all ranks of the socket access F bytes
// between two visits to the same line. Then the share 1 - (cache_bytes / F)^4 is gone when the line is visited again.
// It comes back, and is written back where it was changed, at the socket's memory bandwidth, which its ranks share.
//
// Between the same visits of two exchanges lie all fields. A transport that returns to the lines of a field within an
// exchange (it packs one side, then the other, then unpacks them: `field_returns`) has in between accessed only the
// data that travels together: one field, where fields travel sequentially, all of them where they are merged.
#pragma once

#include <span>
#include <vector>

#include "haloscope/model/op_costs.hpp"

namespace haloscope::model {

/// Bytes of the lines of one field that an exchange accesses, and of the lines that it writes.
struct Touched {
  double lines = 0, dirty = 0;
};
/// Rows are assumed to follow each other without a gap, so that the end of one and the start of the next share a line.
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
/// None where the profile has no memory costs. Cost O(messages).
Refetch refetch_of(const Plan& plan, std::span<const Traffic> traffic, const StageUnitCosts& prices,
                   const RankLocation& where);

}  // namespace haloscope::model
