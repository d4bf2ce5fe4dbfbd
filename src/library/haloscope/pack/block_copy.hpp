// The copy engine: lists of 3D block transfers, compiled once, then run without allocation. Used for own-neighbour
// halos, packing and unpacking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "haloscope/extend/plan.hpp"
#include "haloscope/extend/share.hpp"

namespace haloscope {

/// A copy, addition or clearing of `planes` x `rows` rows of `row_bytes` contiguous bytes. Strides in bytes.
struct BlockCopy {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t row_bytes = 0, rows = 1, planes = 1;
  std::int64_t from_row = 0, from_plane = 0;
  std::int64_t to_row = 0, to_plane = 0;
  int negated = 0;               ///< bytes of reals whose sign changes, 4 or 8; 0: bytes as they are
  Store store = Store::replace;  ///< add: rows of `summand`; clear: zeros, for any content of `from`
  Summand summand = Summand::none;
  bool streams = false;                ///< set by CopyList: stores pass the caches
  int from_field = -1, to_field = -1;  ///< number of the field that an end is in, and moves with; -1: none
};

/// A compiled list of block copies. The result equals running it in list order; where the result cannot change,
/// consecutive copies within one field run plane by plane, and two short-row copies of equal shape in one row pass
/// (which loads each cache line once for both x faces).
///
/// A team may share a list. Its copies form stages: shares of one stage do not depend on each other; a stage may depend
/// on the ones before it (y halos that read x halos across planes, for instance).
class CopyList {
 public:
  CopyList() = default;
  /// Compiles the list. A copy may read bytes that an earlier copy of the list wrote; no copy may write bytes that it
  /// reads itself.
  explicit CopyList(std::vector<BlockCopy> copies);
  /// Runs everything on the calling thread. No allocation; cost: bytes() read and written.
  void run() const;
  /// Runs one share; all shares together, in any order and on any threads, are run(). Share 0 runs a list of several
  /// stages whole: use run_stage() with a barrier between stages to share it.
  void run(Share share) const;
  int stages() const { return static_cast<int>(stages_.size()); }
  /// Runs one share of one stage; all shares of all stages, with stages in order, are run(). Shares are equal: of the
  /// planes where there are enough, else of the rows, else of the bytes of a row.
  void run_stage(int stage, Share share) const;
  /// Moves the ends of copies with their fields. @param moved bytes, by field.
  void follow(std::span<const std::ptrdiff_t> moved);
  std::int64_t bytes() const { return bytes_; }
  /// Returns the cache lines read, counted row by row: time is proportional to them, for long and short rows.
  std::int64_t lines() const { return lines_; }
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
    bool planes_apart, rows_apart;  ///< different planes, rows may be run by different threads
  };
  /// Sheets whose shares do not depend on each other.
  struct Stage {
    std::size_t begin, end;
  };
  void choose_stores();
  void join_sheets();
  void find_stages();
  std::vector<std::size_t> find_latest_dependencies() const;
  void run_planes(const Sheet& sheet, std::int64_t begin, std::int64_t end) const;
  void run_rows(const Sheet& sheet, Share share) const;
  std::span<const BlockCopy> copies_of(const Sheet& sheet) const;

  std::vector<BlockCopy> copies_;
  std::vector<Group> groups_;
  std::vector<Sheet> sheets_;
  std::vector<Stage> stages_;
  std::int64_t bytes_ = 0, lines_ = 0;
  bool streams_ = false;
};

}  // namespace haloscope
