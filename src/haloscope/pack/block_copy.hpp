// The one copy engine: lists of 3D block transfers, compiled once, then run without allocation.
// Serves own-neighbour halos, packing and unpacking alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace haloscope {

/// One thread's part of a piece of work that a team shares: number `part` of `parts`.
struct Share {
  int part = 0, parts = 1;
};

/// Copy `planes` x `rows` rows of `row_bytes` contiguous bytes. Strides in bytes.
struct BlockCopy {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t row_bytes = 0, rows = 1, planes = 1;
  std::int64_t from_row = 0, from_plane = 0;
  std::int64_t to_row = 0, to_plane = 0;
};

/// A compiled list of block copies. The result is that of running it in list order; where that cannot change it, copies
/// that follow each other within one field run plane by plane, and two short-row copies of equal shape in one row pass
/// (both x faces touch each cache line once).
class CopyList {
 public:
  CopyList() = default;
  /// Compile. A copy may read what an earlier copy of the list wrote; no copy may write what it reads itself.
  explicit CopyList(std::vector<BlockCopy> copies);
  /// Run everything on the calling thread. No allocation; cost: bytes() read and written.
  void run() const;
  /// Run one share; all shares together, in any order and on any threads, are run(). A list whose copies depend on each
  /// other across planes is run whole by share 0.
  void run(Share share) const;
  std::int64_t bytes() const { return bytes_; }
  bool empty() const { return bytes_ == 0; }

 private:
  /// One copy, or two that share a row pass.
  struct Group {
    std::size_t begin, end;
    bool fuse_rows;
  };
  /// Groups that run plane by plane.
  struct Sheet {
    std::size_t begin, end;
    std::int64_t planes;
  };
  std::vector<BlockCopy> copies_;
  std::vector<Group> groups_;
  std::vector<Sheet> sheets_;
  std::int64_t bytes_ = 0;
};

}  // namespace haloscope
