#include "haloscope/comm/shared_arena.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <iterator>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/shared_memory.hpp"

namespace haloscope {
namespace {

constexpr std::size_t large = std::size_t{256} << 10;  // larger pieces have a separate window
std::atomic<std::int64_t> all_free = 0;                // bytes

constexpr std::size_t largest_slab = std::size_t{16} << 20;

}  // namespace

/// One window, with its free ranges by offset.
struct SharedArena::Slab {
  Memory memory;
  std::map<std::size_t, std::size_t> free;  // bytes by offset

  bool reached;  // by other ranks

  Slab(Memory whole, std::size_t bytes, bool reached_by_others)
      : memory(std::move(whole)), free{{0, bytes}}, reached(reached_by_others) {
    count(static_cast<std::int64_t>(bytes));
  }
  ~Slab() {
    for (const auto& [offset, bytes] : free) count(-static_cast<std::int64_t>(bytes));
  }
  void count(std::int64_t change) const {
    if (reached) all_free += change;
  }

  using Free = std::map<std::size_t, std::size_t>;
  using Range = Free::node_type;  // made when a piece is allocated, so that freeing it allocates nothing

  Free::iterator find(std::size_t bytes) {
    return std::find_if(free.begin(), free.end(), [&](const auto& range) { return range.second >= bytes; });
  }
  Range take(std::size_t bytes) {
    Free made{{0, bytes}};
    Range piece = made.extract(made.begin()), rest = free.extract(find(bytes));
    piece.key() = rest.key();
    rest.key() += bytes;
    rest.mapped() -= bytes;
    if (rest.mapped() > 0) free.insert(std::move(rest));
    count(-static_cast<std::int64_t>(bytes));
    return piece;
  }
  void give_back(Range piece) {
    count(static_cast<std::int64_t>(piece.mapped()));
    const auto at = free.insert(std::move(piece)).position;
    if (const auto next = std::next(at); next != free.end() && at->first + at->second == next->first) {
      at->second += next->second;
      free.erase(next);
    }
    if (at == free.begin()) return;
    if (const auto before = std::prev(at); before->first + before->second == at->first) {
      before->second += at->second;
      free.erase(at);
    }
  }
};

struct SharedArena::Piece {
  std::shared_ptr<Slab> slab;
  Slab::Range range;

  Piece(const std::shared_ptr<Slab>& of, std::size_t bytes) : slab(of), range(of->take(bytes)) {}
  ~Piece() { slab->give_back(std::move(range)); }
  Piece(const Piece&) = delete;
  std::byte* begin() const { return slab->memory.data() + range.key(); }
};

SharedArena::SharedArena() : next_bytes_(large) {}
SharedArena::~SharedArena() = default;

std::int64_t SharedArena::free_bytes() { return all_free; }

SharedArena::Allocation SharedArena::allocate(const Node& node, std::size_t bytes) {
  const std::size_t size = std::max(round_up(bytes, small_page), std::size_t{small_page});
  const auto fits = [&](const std::shared_ptr<Slab>& slab) { return slab->find(size) != slab->free.end(); };
  auto slab = std::find_if(slabs_.begin(), slabs_.end(), fits);
  std::array<std::int64_t, 2> most{static_cast<std::int64_t>(size), slab == slabs_.end()};
  CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, most.data(), 2, MPI_INT64_T, MPI_MAX, node.everyone()));
  if (most[0] >= static_cast<std::int64_t>(large)) return {allocate_shared(node, bytes), false};
  if (most[1] != 0) {
    slabs_.push_back(std::make_shared<Slab>(allocate_shared(node, next_bytes_), next_bytes_, node.size() > 1));
    next_bytes_ = std::min(2 * next_bytes_, largest_slab);
    note_kept();
    slab = std::prev(slabs_.end());
  }
  const auto piece = std::make_shared<Piece>(*slab, size);
  std::memset(piece->begin(), 0, size);
  return {Memory(piece->begin(), bytes, piece), true};
}

}  // namespace haloscope
