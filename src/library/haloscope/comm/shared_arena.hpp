// Many small pieces of shared memory in few windows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "haloscope/field/memory.hpp"

namespace haloscope {

class Node;

/// Pieces of memory that the ranks of a node can access, as returned by allocate_shared(). A window costs a
/// communicator of the MPI library, so windows are opened for many pieces. The place of a piece differs between
/// ranks: see shared_place().
class SharedArena {
 public:
  SharedArena();
  ~SharedArena();
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  struct Allocation {
    Memory memory;
    bool ends_alone;  ///< freeing the memory is local; else it frees a window. Equal on all ranks
  };
  /// Returns zeroed memory from the beginning of a page. Collective over node.everyone(): a reduction to all and,
  /// where the windows are full or any rank's memory is large, allocate_shared(). All ranks end the same pieces
  /// before the next call. Ranks may request different sizes, 0 included.
  /// @throws as allocate_shared().
  Allocation allocate(const Node& node, std::size_t bytes);

  /// Returns the bytes of all windows of all arenas of this process that are in no piece.
  static std::int64_t free_bytes();

 private:
  struct Slab;
  struct Piece;
  std::vector<std::shared_ptr<Slab>> slabs_;
  std::size_t next_bytes_;
};

}  // namespace haloscope
