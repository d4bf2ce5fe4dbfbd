// Memory that all ranks of a node can access with plain loads and stores: MPI-3 shared windows.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "haloscope/comm/handles.hpp"
#include "haloscope/comm/shared_arena.hpp"
#include "haloscope/field.hpp"
#include "haloscope/field/memory.hpp"

namespace haloscope {

/// The ranks of a communicator that share memory with this one: the ranks of the same machine, or fewer where nodes
/// are emulated by splitting a machine's ranks.
class Node {
 public:
  /// Collective over `comm`, which must outlive this object.
  /// @param nodes  node of each rank; empty: every machine is one node. Ranks of one node must be on one machine.
  /// @throws UsageError if `nodes` does not have one number per rank or puts ranks of several machines on one node.
  explicit Node(MPI_Comm comm, const std::vector<int>& nodes = {});
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  MPI_Comm everyone() const { return everyone_; }  ///< the communicator it was made from
  MPI_Comm comm() const { return comm_->get(); }   ///< the ranks of this node, in the order of everyone()
  int size() const;                                ///< ranks of this node
  /// Returns the memory for flags and buffers of links. Its windows are freed with the node.
  SharedArena& arena() const { return arena_; }
  /// Returns the number of a rank of everyone() within this node's communicator, -1 if it is on another node.
  int local(int rank) const { return locals_[static_cast<std::size_t>(rank)]; }

 private:
  friend Memory allocate_shared(const Node&, std::size_t, const std::vector<ByteRange>&);
  MPI_Comm everyone_;
  OwnedComm machine_;
  std::shared_ptr<const OwnedComm> comm_;  // windows need it until they end
  std::vector<int> locals_;
  mutable SharedArena arena_;
};

/// Returns zeroed memory in a shared window of the node, registered so that links find its address in every process.
/// Collective over node.everyone(), and so is freeing it, except during stack unwinding: then the memory stays. Ranks
/// may request different sizes, 0 included. The memory starts at a page, for any result of the MPI library. The
/// calling thread writes every shared page first.
/// @param reached  the ranges that other ranks may access. Where they are less than half of the memory, only their
///        pages are in the window; the rest is private memory on huge pages, which shared windows do not get (128^3
///        doubles split in z: the exchange takes 25 % less time). A rank that accesses other bytes of another rank
///        dies of a memory fault.
/// @throws Error (exit code 1) on all ranks, when the ranks of some machine together request more than its
///         shared-memory file system has free, or than HALOSCOPE_SHARED_LIMIT (bytes per machine) allows;
///         UnavailableError when the MPI library's shared windows are not of the unified memory model.
Memory allocate_shared(const Node& node, std::size_t bytes, const std::vector<ByteRange>& reached);
/// The same with all of the memory accessible to other ranks.
inline Memory allocate_shared(const Node& node, std::size_t bytes) {
  return allocate_shared(node, bytes, {{0, bytes}});
}

/// Returns an allocator of Storage in a shared window. `node` must live until the Storage is made.
inline Allocator shared_by(const Node& node) {
  return [&node](std::size_t bytes, const std::vector<ByteRange>& reached) {
    return allocate_shared(node, bytes, reached);
  };
}

/// A place in shared memory, expressed so that all processes of a node can resolve it.
struct SharedPlace {
  int window = -1;          ///< number of the window; -1: not in shared memory
  std::int64_t offset = 0;  ///< bytes from the beginning of the owning rank's memory
};

/// Returns the place of an address in this rank's part of a shared window.
SharedPlace shared_place(const void* address);
/// Returns true if other ranks of the node may access all bytes from an address to another one.
bool is_reached(const std::byte* first, const std::byte* end);
/// Returns the address, in this process, of a place that rank `owner` of `comm` has named; nullptr if this process
/// does not share that window with it. It is valid as long as the memory lives.
std::byte* shared_address(MPI_Comm comm, int owner, const SharedPlace& place);
/// Returns the MPI window of that number, for fences.
MPI_Win shared_window(int number);
/// Returns the bytes of shared memory that this rank currently holds, in pages that other ranks can access. Free
/// bytes in windows for many pieces do not count.
std::int64_t shared_bytes();
/// Limits the bytes that a machine's ranks hold together from now on: lets tests run out of shared memory.
void cap_shared_memory(std::int64_t bytes);

}  // namespace haloscope
