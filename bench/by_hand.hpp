// Exchanges by hand, with the structure of public codes: packed sides, messages of derived datatypes, sums of nodes.
// They share nothing with the library.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <vector>

namespace haloscope::bench {

/// An array of a block of own points and ghost layers around them, x contiguous.
template <class T>
class Array {
 public:
  Array(const std::array<int, 3>& own, const std::array<int, 3>& layers) : own_(own), layers_(layers) {
    std::size_t points = 1;
    for (int d = 0; d < 3; ++d) {
      stride_[d] = static_cast<std::int64_t>(points);
      points *= static_cast<std::size_t>(own[d] + 2 * layers[d]);
    }
    memory_.resize(points, T(-1));
  }
  const std::array<int, 3>& own() const { return own_; }
  const std::array<int, 3>& layers() const { return layers_; }
  std::int64_t stride(int d) const { return stride_[d]; }
  std::vector<T>& memory() { return memory_; }
  T& operator()(std::int64_t i, std::int64_t j, std::int64_t k) {
    return memory_[static_cast<std::size_t>(i + layers_[0] + stride_[1] * (j + layers_[1]) +
                                            stride_[2] * (k + layers_[2]))];
  }

 private:
  std::array<int, 3> own_, layers_;
  std::array<std::int64_t, 3> stride_{};
  std::vector<T> memory_;
};

/// A box of points.
struct Part {
  std::array<int, 3> first{}, size{};
  std::size_t points() const { return std::size_t(size[0]) * std::size_t(size[1]) * std::size_t(size[2]); }
};

template <class T, class Visit>
void each_point(const Part& part, Visit visit) {
  for (int k = part.first[2]; k < part.first[2] + part.size[2]; ++k)
    for (int j = part.first[1]; j < part.first[1] + part.size[1]; ++j)
      for (int i = part.first[0]; i < part.first[0] + part.size[0]; ++i) visit(i, j, k);
}

/// The points that a block sends and receives in one direction along a dimension.
struct Way {
  int to = MPI_PROC_NULL, from = MPI_PROC_NULL;
  Part edge, ghost;
};

/// Returns the ways along a dimension. @param with_ghosts  ghost layers of earlier dimensions travel too.
inline std::array<Way, 2> ways_along(MPI_Comm cart, int d, const std::array<int, 3>& own,
                                     const std::array<int, 3>& layers, bool with_ghosts) {
  std::array<Way, 2> ways;
  for (const int up : {0, 1}) {
    Way& way = ways[static_cast<std::size_t>(up)];
    MPI_Cart_shift(cart, d, up ? 1 : -1, &way.from, &way.to);
    way.edge.size = own;
    for (int e = 0; e < d && with_ghosts; ++e) {
      way.edge.first[e] = -layers[e];
      way.edge.size[e] += 2 * layers[e];
    }
    way.edge.size[d] = layers[d];
    way.ghost = way.edge;
    way.edge.first[d] = up ? own[d] - layers[d] : 0;
    way.ghost.first[d] = up ? -layers[d] : own[d];
  }
  return ways;
}

/// Packs all fields into one message a side, by loops.
template <class T>
class PackedSides {
 public:
  /// @param in_turn  one dimension after the other, which fills corners; false: all sides concurrently.
  PackedSides(MPI_Comm cart, std::vector<Array<T>>& fields, int dims, bool in_turn) : cart_(cart), fields_(fields) {
    for (int d = 0; d < dims; ++d)
      for (const Way& way : ways_along(cart, d, fields[0].own(), fields[0].layers(), in_turn)) {
        const std::size_t size = fields.size() * way.edge.points();
        sides_.push_back({way, in_turn ? d : 0, std::vector<T>(size), std::vector<T>(size)});
      }
    rounds_ = in_turn ? dims : 1;
  }

  void exchange() {
    for (int round = 0; round < rounds_; ++round) {
      int begun = 0;
      for (Side& side : sides_)
        if (side.round == round && side.way.from != MPI_PROC_NULL)
          MPI_Irecv(side.in.data(), bytes(side), MPI_BYTE, side.way.from, 0, cart_, &requests_[begun++]);
      for (Side& side : sides_) {
        if (side.round != round || side.way.to == MPI_PROC_NULL) continue;
        T* packed = side.out.data();
        for (Array<T>& u : fields_) each_point<T>(side.way.edge, [&](int i, int j, int k) { *packed++ = u(i, j, k); });
        MPI_Isend(side.out.data(), bytes(side), MPI_BYTE, side.way.to, 0, cart_, &requests_[begun++]);
      }
      MPI_Waitall(begun, requests_.data(), MPI_STATUSES_IGNORE);
      for (Side& side : sides_) {
        if (side.round != round || side.way.from == MPI_PROC_NULL) continue;
        const T* packed = side.in.data();
        for (Array<T>& u : fields_) each_point<T>(side.way.ghost, [&](int i, int j, int k) { u(i, j, k) = *packed++; });
      }
    }
  }

 private:
  struct Side {
    Way way;
    int round;
    std::vector<T> out, in;
  };
  static int bytes(const Side& side) { return static_cast<int>(side.out.size() * sizeof(T)); }

  MPI_Comm cart_;
  std::vector<Array<T>>& fields_;
  std::vector<Side> sides_;
  std::array<MPI_Request, 12> requests_{};
  int rounds_ = 1;
};

/// Sends and receives each side of each field by MPI_Sendrecv with derived datatypes, one dimension after the other.
template <class T>
class TypedSides {
 public:
  /// @param first  dimension; those below are not exchanged. @param with_ghosts  their ghost layers travel too.
  TypedSides(MPI_Comm cart, std::vector<Array<T>>& fields, int first, int dims, bool with_ghosts)
      : cart_(cart), fields_(fields) {
    for (int d = first; d < dims; ++d)
      for (const Way& way : ways_along(cart, d, fields[0].own(), fields[0].layers(), with_ghosts))
        sides_.push_back({way, type_of(way.edge), type_of(way.ghost)});
  }
  ~TypedSides() {
    for (Side& side : sides_) MPI_Type_free(&side.edge), MPI_Type_free(&side.ghost);
  }
  TypedSides(const TypedSides&) = delete;

  void exchange() {
    for (Array<T>& u : fields_)
      for (const Side& side : sides_)
        MPI_Sendrecv(u.memory().data(), 1, side.edge, side.way.to, 0, u.memory().data(), 1, side.ghost, side.way.from,
                     0, cart_, MPI_STATUS_IGNORE);
  }

 private:
  struct Side {
    Way way;
    MPI_Datatype edge, ghost;
  };
  MPI_Datatype type_of(const Part& part) const {
    const auto &own = fields_[0].own(), &layers = fields_[0].layers();
    std::array<int, 3> all{}, first{};
    for (int d = 0; d < 3; ++d) {
      all[d] = own[d] + 2 * layers[d];
      first[d] = part.first[d] + layers[d];
    }
    MPI_Datatype type;
    MPI_Type_create_subarray(3, all.data(), part.size.data(), first.data(), MPI_ORDER_FORTRAN,
                             sizeof(T) == 8 ? MPI_DOUBLE : MPI_FLOAT, &type);
    MPI_Type_commit(&type);
    return type;
  }

  MPI_Comm cart_;
  std::vector<Array<T>>& fields_;
  std::vector<Side> sides_;
};

/// Adds up the nodes that blocks share: faces, edges and corners, a message of all fields to each neighbour.
class NodeSums {
 public:
  NodeSums(MPI_Comm cart, std::vector<Array<double>>& fields) : cart_(cart), fields_(fields) {
    int rank = 0, ranks[3], wrap[3], here[3];
    MPI_Comm_rank(cart, &rank);
    MPI_Cart_get(cart, 3, ranks, wrap, here);
    for (int z = -1; z <= 1; ++z)
      for (int y = -1; y <= 1; ++y)
        for (int x = -1; x <= 1; ++x) {
          const int v[3] = {x, y, z};
          int there[3], peer = MPI_PROC_NULL;
          bool inside = x != 0 || y != 0 || z != 0;
          Part shared;
          for (int d = 0; d < 3; ++d) {
            there[d] = here[d] + v[d];
            inside = inside && there[d] >= 0 && there[d] < ranks[d];
            shared.size[d] = v[d] == 0 ? fields[0].own()[d] : 1;
            shared.first[d] = v[d] > 0 ? fields[0].own()[d] - 1 : 0;
          }
          if (!inside) continue;
          MPI_Cart_rank(cart, there, &peer);
          const std::size_t size = fields.size() * shared.points();
          neighbours_.push_back({peer, shared, std::vector<double>(size), std::vector<double>(size)});
        }
  }

  void exchange() {
    int begun = 0;
    for (Neighbour& n : neighbours_)
      MPI_Irecv(n.in.data(), static_cast<int>(n.in.size()), MPI_DOUBLE, n.rank, 0, cart_, &requests_[begun++]);
    for (Neighbour& n : neighbours_) {
      double* packed = n.out.data();
      for (Array<double>& u : fields_)
        each_point<double>(n.shared, [&](int i, int j, int k) { *packed++ = u(i, j, k); });
      MPI_Isend(n.out.data(), static_cast<int>(n.out.size()), MPI_DOUBLE, n.rank, 0, cart_, &requests_[begun++]);
    }
    MPI_Waitall(begun, requests_.data(), MPI_STATUSES_IGNORE);
    for (Neighbour& n : neighbours_) {
      const double* packed = n.in.data();
      for (Array<double>& u : fields_)
        each_point<double>(n.shared, [&](int i, int j, int k) { u(i, j, k) += *packed++; });
    }
  }

 private:
  struct Neighbour {
    int rank;
    Part shared;
    std::vector<double> out, in;
  };

  MPI_Comm cart_;
  std::vector<Array<double>>& fields_;
  std::vector<Neighbour> neighbours_;
  std::array<MPI_Request, 52> requests_{};
};

}  // namespace haloscope::bench
