// Messages between neighbours of a line or ring of ranks, through the Link, plans and programs that exchanges use.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "haloscope/runner/status.hpp"
#include "haloscope/strategy.hpp"

namespace haloscope {

/// The pair that a rank belongs to, its side (0 or 1), and the other rank.
struct Paired {
  int pair = 0, side = 0, partner = 0;
};
/// Ranks in pairs with a fixed distance: in each 2 x gap ranks, i with i + gap. With gap = ranks per node all traffic
/// of a node goes to one other node. Source: Davis 2017, the pairing rule of DawnDev's runs with several pairs.
constexpr Paired find_pair(int rank, int gap) {
  const int within = rank % (2 * gap), side = within / gap;
  return {rank / (2 * gap) * gap + within % gap, side, side == 0 ? rank + gap : rank - gap};
}

/// Ranks that send to their neighbours: a pair, or a ring. Idle on ranks that belong to none.
class PeerGroup {
 public:
  /// The pair of this rank by find_pair(); only the first `pairs` are busy. Collective over `all`.
  /// @param nodes  emulated nodes, ranks in blocks; 0: as MPI reports.
  static std::unique_ptr<PeerGroup> open_pair(MPI_Comm all, int gap, int pairs, int nodes, bool yield);
  /// All ranks in a ring, as IMB's Exchange has them. Collective over `all`.
  static std::unique_ptr<PeerGroup> open_ring(MPI_Comm all, int nodes, bool yield);
  ~PeerGroup();
  PeerGroup(const PeerGroup&) = delete;
  PeerGroup& operator=(const PeerGroup&) = delete;

  bool idle() const { return comm_ == MPI_COMM_NULL; }
  /// The rank of `all` that this rank waits for, -1 when idle.
  int partner() const { return partner_; }
  /// The communicator of the group's ranks, and this rank in it: its side in a pair.
  MPI_Comm comm() const { return comm_; }
  int rank() const { return rank_; }

 private:
  friend class Transfer;
  PeerGroup() = default;
  void take_nodes(MPI_Comm all, int emulated);

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, partner_ = -1;
  bool ring_ = false, yield_ = false;
  std::vector<int> nodes_;  // of the ranks of comm_; empty: as MPI reports
};

enum class Way { forth, back, both };

/// Messages of one size between the neighbours of a group: the halo exchange of a line of blocks of `bytes` one-byte
/// cells, with a halo on one side (one way) or on both. Does nothing on idle ranks.
class Transfer {
 public:
  /// Collective over the ranks of the group.
  Transfer(const PeerGroup& group, const Strategy& strategy, Way way, std::int64_t bytes, int messages);
  ~Transfer();

  /// Writes the data that this rank sends, as computing does: the bytes are then only in its cache.
  void rewrite() const;
  void run();
  /// Returns true if the arrived bytes equal the sent bytes.
  bool right(RankStatus& status);

 private:
  struct Open;
  std::unique_ptr<Open> open_;  // null where idle
};

}  // namespace haloscope
