// The library's communicator on a user's communicator. All exchanges on the user's communicator share it.
#pragma once

#include <mpi.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "haloscope/comm/shared_memory.hpp"

namespace haloscope {

class LibraryComm;

/// Message tags that are reserved for one exchange until this object ends. Move-only.
class TagRange {
 public:
  TagRange() = default;
  TagRange(std::shared_ptr<LibraryComm> of, int first_block, int blocks);
  ~TagRange();
  TagRange(TagRange&& other) noexcept { swap(other); }
  TagRange& operator=(TagRange&& other) noexcept {
    swap(other);
    return *this;
  }
  int first() const;
  /// Retires the tags: no exchange gets them any more, and their communicator is never freed, since messages with
  /// these tags may be in flight.
  void retire();

 private:
  void swap(TagRange& other) {
    std::swap(of_, other.of_);
    std::swap(first_block_, other.first_block_);
    std::swap(blocks_, other.blocks_);
  }
  std::shared_ptr<LibraryComm> of_;
  int first_block_ = 0, blocks_ = 0;
};

/// A duplicate of a user's communicator. An MPI library has few communicators (MPICH: 2048), and every exchange needs
/// messages that match no others. Therefore the first exchange on a communicator duplicates it, and later ones find
/// the duplicate in an attribute of the communicator and reserve separate tags. It lives until the user's
/// communicator and everything opened on it have ended.
class LibraryComm : public std::enable_shared_from_this<LibraryComm> {
 public:
  /// Returns the library's communicator on `users`, which may be a communicator of the library itself. Collective the
  /// first time: one MPI_Comm_dup.
  static std::shared_ptr<LibraryComm> on(MPI_Comm users);
  ~LibraryComm();
  LibraryComm(const LibraryComm&) = delete;
  LibraryComm& operator=(const LibraryComm&) = delete;

  MPI_Comm comm() const { return comm_.get(); }
  /// Returns the ranks that share memory, see Node. Collective the first time for these `nodes`.
  const Node& node(const std::vector<int>& nodes = {});
  /// Returns more_ranks_than_cores() of this communicator. Collective the first time for this number of threads.
  bool has_more_ranks_than_cores(int threads);

  /// Returns an object that the exchanges with a key share; made by the first one, and kept as long as this. Local.
  template <class T>
  std::shared_ptr<T> shared(const std::string& key) {
    const auto make = []() -> std::shared_ptr<void> { return std::make_shared<T>(); };
    return std::static_pointer_cast<T>(shared(key, make));
  }

  /// Reserves tags that no exchange on any rank uses. Collective; a reduction to all, and another one where tags are
  /// fragmented. All ranks end the ranges of the same exchanges before the next call.
  /// @param count  the ranks may need different numbers; the largest counts.
  /// @throws Error on all ranks where no tags are left.
  TagRange reserve_tags(int count);

 private:
  friend class TagRange;
  explicit LibraryComm(MPI_Comm users);
  std::shared_ptr<void> shared(const std::string& key, std::shared_ptr<void> (*make)());

  OwnedComm comm_;
  std::map<std::vector<int>, std::unique_ptr<Node>> nodes_;
  std::map<int, bool> crowded_;  // by threads
  std::map<std::string, std::shared_ptr<void>> shared_;
  std::vector<unsigned char> used_;  // by block of tags
  int most_blocks_ = 0;
  std::shared_ptr<LibraryComm> itself_;  // keeps it alive, where messages may be in flight that no rank receives
};

/// Returns the ranks that share memory with this one, on the communicator of a link. Collective the first time.
inline const Node& node_of(MPI_Comm comm, const std::vector<int>& nodes = {}) {
  return LibraryComm::on(comm)->node(nodes);
}

}  // namespace haloscope
