// A handwritten exchange, as in many codes: each of the six faces of a block is packed, sent, received and unpacked.
#pragma once

#include <mpi.h>

#include <array>
#include <cstring>
#include <vector>

class Faces {
 public:
  /// Opens the exchange of blocks of n[0] x n[1] x n[2] doubles with one ghost layer on every side, x contiguous.
  /// cart  three dimensions, x first; the communicator determines which of them wrap around.
  Faces(MPI_Comm cart, const std::array<int, 3>& n) : cart_(cart), n_(n), row_(n[0] + 2), plane_(row_ * (n[1] + 2)) {
    MPI_Comm_rank(cart, &self_);
    for (int side = 0; side < 6; ++side) {
      const int d = side / 2;
      MPI_Cart_shift(cart, d, side % 2 ? 1 : -1, &from_[side], &to_[side]);
      const std::size_t points = n[0] * n[1] * n[2] / n[d];
      out_[side].resize(points);
      in_[side].resize(points);
    }
  }

  /// Fills the ghost faces of `u`, which points at the first ghost corner.
  void exchange(double* u) {
    std::array<MPI_Request, 12> requests;
    int count = 0;
    for (int side = 0; side < 6; ++side)
      if (is_other(from_[side]))
        MPI_Irecv(in_[side].data(), int(in_[side].size()), MPI_DOUBLE, from_[side], side, cart_, &requests[count++]);
    for (int side = 0; side < 6; ++side) {
      const int d = side / 2;
      const bool up = side % 2;
      if (to_[side] == MPI_PROC_NULL) continue;
      if (to_[side] == self_) {  // wraps around to this block
        copy(u + at(d, up ? 0 : n_[d] + 1), row_, plane_, u + at(d, up ? n_[d] : 1), row_, plane_, d);
        continue;
      }
      copy(out_[side].data(), packed_row(d), packed_plane(d), u + at(d, up ? n_[d] : 1), row_, plane_, d);
      MPI_Isend(out_[side].data(), int(out_[side].size()), MPI_DOUBLE, to_[side], side, cart_, &requests[count++]);
    }
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    for (int side = 0; side < 6; ++side) {
      const int d = side / 2;
      const bool up = side % 2;
      if (is_other(from_[side]))
        copy(u + at(d, up ? 0 : n_[d] + 1), row_, plane_, in_[side].data(), packed_row(d), packed_plane(d), d);
    }
  }

 private:
  bool is_other(int rank) const { return rank != MPI_PROC_NULL && rank != self_; }

  /// Returns the begin of the face with coordinate `layer` in dimension `d`; the other dimensions begin at their first
  /// owned point.
  long at(int d, int layer) const {
    return (d == 0 ? layer : 1) + row_ * (d == 1 ? layer : 1) + plane_ * (d == 2 ? layer : 1);
  }
  long packed_row(int d) const { return d == 0 ? 1 : n_[0]; }
  long packed_plane(int d) const { return packed_row(d) * (d == 1 ? 1 : n_[1]); }

  /// Copies one face, normal to `d`, between memory with different strides.
  void copy(double* to, long to_row, long to_plane, const double* from, long from_row, long from_plane, int d) const {
    const int nx = d == 0 ? 1 : n_[0], ny = d == 1 ? 1 : n_[1], nz = d == 2 ? 1 : n_[2];
    for (int k = 0; k < nz; ++k)
      for (int j = 0; j < ny; ++j) {
        double* t = to + k * to_plane + j * to_row;
        const double* f = from + k * from_plane + j * from_row;
        if (nx == 1)
          *t = *f;
        else
          std::memcpy(t, f, nx * sizeof(double));
      }
  }

  MPI_Comm cart_;
  std::array<int, 3> n_;
  long row_, plane_;
  int self_ = 0;
  std::array<int, 6> from_, to_;  // ranks, by direction of travel: -x, +x, -y, +y, -z, +z
  std::array<std::vector<double>, 6> out_, in_;
};
