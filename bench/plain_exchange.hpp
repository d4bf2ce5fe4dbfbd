// The counterpart of the `exchange` figure: an expert's handwritten code for periodic blocks with 26 neighbours. One
// packed message per peer, nonblocking; regions whose neighbour is the rank itself are copied while messages travel.
// The code shares nothing with the library.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace haloscope::bench {

class PlainExchange {
 public:
  /// Opens the exchange of blocks of n[0] x n[1] x n[2] doubles with one ghost layer, dense; `ranks` blocks per
  /// dimension, all periodic.
  PlainExchange(MPI_Comm comm, std::array<int, 3> n, std::array<int, 3> ranks, int fields)
      : comm_(comm), n_(n), fields_(fields) {
    row_ = n[0] + 2;
    plane_ = row_ * (n[1] + 2);
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    const std::array<int, 3> here{rank % ranks[0], rank / ranks[0] % ranks[1], rank / (ranks[0] * ranks[1])};
    for (int z = -1; z <= 1; ++z)
      for (int y = -1; y <= 1; ++y)
        for (int x = -1; x <= 1; ++x) {
          if (x == 0 && y == 0 && z == 0) continue;
          // Both ends list the regions by direction of travel: a message that leaves to one side arrives from the
          // opposite side.
          const std::array<int, 3> v{x, y, z};
          const int to = neighbour(here, ranks, v, +1), from = neighbour(here, ranks, v, -1);
          if (to == rank) {
            copies_.push_back({edge(v), ghost(v)});
            continue;
          }
          peer(to).out.push_back(edge(v));
          peer(from).in.push_back(ghost(v));
        }
    for (Peer& p : peers_) {
      p.send_buffer.resize(volume(p.out) * fields);
      p.receive_buffer.resize(volume(p.in) * fields);
    }
    requests_.resize(2 * peers_.size());
  }

  /// Fills the ghosts of all fields; `field[f]` points at the first allocated element (a corner ghost).
  void run(double* const* field) {
    std::size_t r = 0;
    for (Peer& p : peers_)
      MPI_Irecv(p.receive_buffer.data(), static_cast<int>(p.receive_buffer.size()), MPI_DOUBLE, p.rank, 0, comm_,
                &requests_[r++]);
    for (Peer& p : peers_) {
      double* buffer = p.send_buffer.data();
      for (int f = 0; f < fields_; ++f)
        for (const Region& region : p.out) {
          copy(buffer, region.size[0], region.size[0] * region.size[1], field[f] + region.at, row_, plane_,
               region.size);
          buffer += region.volume();
        }
      MPI_Isend(p.send_buffer.data(), static_cast<int>(p.send_buffer.size()), MPI_DOUBLE, p.rank, 0, comm_,
                &requests_[r++]);
    }
    for (int f = 0; f < fields_; ++f)
      for (const Pair& c : copies_)
        copy(field[f] + c.to.at, row_, plane_, field[f] + c.from.at, row_, plane_, c.to.size);
    // Not MPI_Waitall: MPICH's version yields the core while it waits, which costs milliseconds if other programs run.
    for (int done = 0; !done;)
      MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
    for (Peer& p : peers_) {
      const double* buffer = p.receive_buffer.data();
      for (int f = 0; f < fields_; ++f)
        for (const Region& region : p.in) {
          copy(field[f] + region.at, row_, plane_, buffer, region.size[0], region.size[0] * region.size[1],
               region.size);
          buffer += region.volume();
        }
    }
  }

 private:
  struct Region {
    std::int64_t at;  ///< offset of its first element
    std::array<std::int64_t, 3> size;
    std::int64_t volume() const { return size[0] * size[1] * size[2]; }
  };
  struct Pair {
    Region from, to;
  };
  struct Peer {
    int rank;
    std::vector<Region> out{}, in{};
    std::vector<double> send_buffer{}, receive_buffer{};
  };

  static int neighbour(const std::array<int, 3>& here, const std::array<int, 3>& ranks, const std::array<int, 3>& v,
                       int sign) {
    std::array<int, 3> c;
    for (int d = 0; d < 3; ++d) c[d] = (here[d] + sign * v[d] + ranks[d]) % ranks[d];
    return c[0] + ranks[0] * (c[1] + ranks[1] * c[2]);
  }
  Peer& peer(int rank) {
    for (Peer& p : peers_)
      if (p.rank == rank) return p;
    return peers_.emplace_back(Peer{rank});
  }
  static std::size_t volume(const std::vector<Region>& regions) {
    std::int64_t sum = 0;
    for (const Region& r : regions) sum += r.volume();
    return static_cast<std::size_t>(sum);
  }
  Region region(const std::array<int, 3>& first, const std::array<int, 3>& v) const {
    Region r{first[0] + first[1] * row_ + first[2] * plane_, {}};
    for (int d = 0; d < 3; ++d) r.size[d] = v[d] == 0 ? n_[d] : 1;
    return r;
  }
  /// Returns the owned cells sent in direction v; ghost() returns the ghosts filled by messages in direction v.
  Region edge(const std::array<int, 3>& v) const {
    std::array<int, 3> first;
    for (int d = 0; d < 3; ++d) first[d] = v[d] > 0 ? n_[d] : 1;
    return region(first, v);
  }
  Region ghost(const std::array<int, 3>& v) const {
    std::array<int, 3> first;
    for (int d = 0; d < 3; ++d) first[d] = v[d] == 0 ? 1 : v[d] > 0 ? 0 : n_[d] + 1;
    return region(first, v);
  }

  static void copy(double* to, std::int64_t to_row, std::int64_t to_plane, const double* from, std::int64_t from_row,
                   std::int64_t from_plane, const std::array<std::int64_t, 3>& size) {
    for (std::int64_t z = 0; z < size[2]; ++z, to += to_plane, from += from_plane) {
      double* t = to;
      const double* f = from;
      if (size[0] == 1)  // x faces and their edges: a call per element would dominate
        for (std::int64_t y = 0; y < size[1]; ++y, t += to_row, f += from_row) *t = *f;
      else
        for (std::int64_t y = 0; y < size[1]; ++y, t += to_row, f += from_row)
          std::memcpy(t, f, static_cast<std::size_t>(size[0]) * sizeof(double));
    }
  }

  MPI_Comm comm_;
  std::array<int, 3> n_;
  int fields_;
  std::int64_t row_, plane_;
  std::vector<Peer> peers_;
  std::vector<Pair> copies_;
  std::vector<MPI_Request> requests_;
};

}  // namespace haloscope::bench
