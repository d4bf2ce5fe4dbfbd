// Neighbourhood alltoallw in its three forms, and the plain alltoall once. On periodic Cartesian dimensions of one or
// two ranks both neighbours are the same rank, and several libraries swap the two blocks there.
#include <algorithm>
#include <array>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/mpi_traits.hpp"
#include "haloscope/rank/probe/probe.hpp"

namespace haloscope::probing {

namespace {

enum class Form { blocking, nonblocking, persistent };

/// The arguments of an alltoallw with one block of `ints` integers per edge, every second one of a strided buffer, so
/// that a derived datatype is needed as for the faces of a grid.
class Blocks {
 public:
  Blocks(int sends, int receives, int ints)
      : ints_(ints),
        out_(static_cast<std::size_t>(sends) * 2 * ints, -1),
        in_(static_cast<std::size_t>(receives) * 2 * ints) {
    REQUIRE_MPI(MPI_Type_vector(ints, 1, 2, MPI_INT, &type_));
    REQUIRE_MPI(MPI_Type_commit(&type_));
    lay_out(sends, send_counts_, send_places_, send_types_);
    lay_out(receives, receive_counts_, receive_places_, receive_types_);
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  ~Blocks() { REQUIRE_MPI(MPI_Type_free(&type_)); }

  /// Returns the content of block `edge` of `rank` in a round.
  static int value(int rank, int edge, int round, int i) { return ((round * 64 + rank) * 64 + edge) * 64 + i; }

  void fill(int rank, int round) {
    for (std::size_t edge = 0; edge < send_counts_.size(); ++edge)
      for (int i = 0; i < ints_; ++i) out_[(edge * ints_ + i) * 2] = value(rank, static_cast<int>(edge), round, i);
    std::fill(in_.begin(), in_.end(), -1);
  }
  /// Complains if block `slot` differs from the block that `rank` sent along its `edge`, or if a gap was written to.
  void check(std::string& complaint, int slot, int rank, int edge, int round) const {
    for (int i = 0; i < ints_; ++i) {
      const std::size_t at = (static_cast<std::size_t>(slot) * ints_ + i) * 2;
      if (complaint.empty() && in_[at] != value(rank, edge, round, i))
        complaint = "block " + std::to_string(slot) + " is not the block that rank " + std::to_string(rank) +
                    " sent along edge " + std::to_string(edge);
      expect(complaint, "a place outside the block", in_[at + 1], -1);
    }
  }
  void blocking(MPI_Comm comm) {
    REQUIRE_MPI(MPI_Neighbor_alltoallw(out_.data(), send_counts_.data(), send_places_.data(), send_types_.data(),
                                       in_.data(), receive_counts_.data(), receive_places_.data(),
                                       receive_types_.data(), comm));
  }
  void nonblocking(MPI_Comm comm, MPI_Request& request) {
    REQUIRE_MPI(MPI_Ineighbor_alltoallw(out_.data(), send_counts_.data(), send_places_.data(), send_types_.data(),
                                        in_.data(), receive_counts_.data(), receive_places_.data(),
                                        receive_types_.data(), comm, &request));
  }
#if HALOSCOPE_HAVE_NEIGHBOR_INIT
  void persistent(MPI_Comm comm, MPI_Request& request) {
    REQUIRE_MPI(MPI_Neighbor_alltoallw_init(out_.data(), send_counts_.data(), send_places_.data(), send_types_.data(),
                                            in_.data(), receive_counts_.data(), receive_places_.data(),
                                            receive_types_.data(), comm, MPI_INFO_NULL, &request));
  }
#endif

 private:
  void lay_out(int edges, std::vector<int>& counts, std::vector<MPI_Aint>& places, std::vector<MPI_Datatype>& types) {
    counts.assign(edges, 1);
    types.assign(edges, type_);
    for (int e = 0; e < edges; ++e) places.push_back(static_cast<MPI_Aint>(sizeof(int)) * 2 * ints_ * e);
    // MPI needs an address even without edges.
    counts.reserve(1), types.reserve(1), places.reserve(1);
  }

  int ints_;
  std::vector<int> out_, in_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  std::vector<int> send_counts_, receive_counts_;
  std::vector<MPI_Aint> send_places_, receive_places_;
  std::vector<MPI_Datatype> send_types_, receive_types_;
};

/// The source of a slot: the block that `rank` sent along its `edge`.
struct Origin {
  int rank = 0, edge = 0;
};

/// Exchanges a few times over a communicator with `sends` outgoing edges; `origins` has the expected blocks.
std::string exchange(MPI_Comm comm, Form form, int sends, const std::vector<Origin>& origins) {
  int rank = 0;
  REQUIRE_MPI(MPI_Comm_rank(comm, &rank));
  Blocks blocks(sends, static_cast<int>(origins.size()), 5);
  MPI_Request request = MPI_REQUEST_NULL;
#if HALOSCOPE_HAVE_NEIGHBOR_INIT
  if (form == Form::persistent) blocks.persistent(comm, request);
#endif
  std::string complaint;
  for (int round = 0; round < rounds; ++round) {
    blocks.fill(rank, round);
    if (form == Form::blocking) blocks.blocking(comm);
    if (form == Form::nonblocking) blocks.nonblocking(comm, request);
    if (form == Form::persistent) REQUIRE_MPI(MPI_Start(&request));
    REQUIRE_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (std::size_t slot = 0; slot < origins.size(); ++slot)
      blocks.check(complaint, static_cast<int>(slot), origins[slot].rank, origins[slot].edge, round);
  }
  if (form == Form::persistent) REQUIRE_MPI(MPI_Request_free(&request));
  return complaint;
}

/// Tests a periodic process grid: the lower neighbour receives a rank's block from its upper neighbour.
std::string on_grid(MPI_Comm comm, Form form, std::array<int, 2> extents) {
  const int periodic[2] = {1, 1};
  MPI_Comm grid;
  REQUIRE_MPI(MPI_Cart_create(comm, 2, extents.data(), periodic, 0, &grid));
  std::vector<Origin> origins;
  for (int d = 0; d < 2; ++d) {
    int low = 0, high = 0;
    REQUIRE_MPI(MPI_Cart_shift(grid, d, 1, &low, &high));
    origins.push_back({low, 2 * d + 1});
    origins.push_back({high, 2 * d});
  }
  std::string complaint = exchange(grid, form, 4, origins);
  if (!complaint.empty())
    complaint += ", on " + std::to_string(extents[0]) + " x " + std::to_string(extents[1]) + " periodic ranks";
  REQUIRE_MPI(MPI_Comm_free(&grid));
  return complaint;
}

/// Everyone sends to the ranks `steps` further on, along one edge for each entry; equal entries are parallel edges,
/// whose blocks arrive in the order of the edges.
std::string on_graph(MPI_Comm comm, Form form, const std::vector<int>& steps) {
  int rank = 0, size = 0;
  REQUIRE_MPI(MPI_Comm_rank(comm, &rank));
  REQUIRE_MPI(MPI_Comm_size(comm, &size));
  std::vector<int> to, from;
  std::vector<Origin> origins;
  for (std::size_t e = 0; e < steps.size(); ++e) {
    to.push_back((rank + steps[e]) % size);
    from.push_back((rank - steps[e] + size) % size);
    origins.push_back({from.back(), static_cast<int>(e)});
  }
  to.reserve(1), from.reserve(1);
  const int degree = static_cast<int>(steps.size());
  MPI_Comm graph;
  REQUIRE_MPI(MPI_Dist_graph_create_adjacent(comm, degree, from.data(), MPI_UNWEIGHTED, degree, to.data(),
                                             MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph));
  const std::string complaint = exchange(graph, form, degree, origins);
  REQUIRE_MPI(MPI_Comm_free(&graph));
  return complaint;
}

constexpr bool lacks(Form form) { return !mpi_traits.neighbor_init && form == Form::persistent; }

const Finding lacking{false, "this MPI has no persistent neighbourhood collectives"};

template <Form form>
Finding cartesian(MPI_Comm comm) {
  if (lacks(form)) return lacking;
  int size = 0;
  REQUIRE_MPI(MPI_Comm_size(comm, &size));
  std::string complaint = on_grid(comm, form, {size, 1});
  if (complaint.empty() && size % 2 == 0) complaint = on_grid(comm, form, {2, size / 2});
  return wrong_if(complaint);
}

template <Form form>
Finding parallel_edges(MPI_Comm comm) {
  if (lacks(form)) return lacking;
  return wrong_if(on_graph(comm, form, {1, 1, 0, 0}));
}

template <Form form>
Finding one_edge_per_peer(MPI_Comm comm) {
  if (lacks(form)) return lacking;
  int size = 0;
  REQUIRE_MPI(MPI_Comm_size(comm, &size));
  std::vector<int> steps;  // to all others, each once; none when there is only one rank
  for (int step = 1; step < size; ++step) steps.push_back(step);
  return wrong_if(on_graph(comm, form, steps));
}

/// Parallel edges again, through MPI_Neighbor_alltoall: a library may be right in one of the calls only.
Finding parallel_edges_plain(MPI_Comm comm) {
  int rank = 0, size = 0;
  REQUIRE_MPI(MPI_Comm_rank(comm, &rank));
  REQUIRE_MPI(MPI_Comm_size(comm, &size));
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  const std::array<int, 4> to{next, next, rank, rank}, from{previous, previous, rank, rank};
  std::array<int, 4> out{}, in{};
  for (int e = 0; e < 4; ++e) out[e] = Blocks::value(rank, e, 0, 0);
  MPI_Comm graph;
  REQUIRE_MPI(MPI_Dist_graph_create_adjacent(comm, 4, from.data(), MPI_UNWEIGHTED, 4, to.data(), MPI_UNWEIGHTED,
                                             MPI_INFO_NULL, 0, &graph));
  REQUIRE_MPI(MPI_Neighbor_alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, graph));
  REQUIRE_MPI(MPI_Comm_free(&graph));
  for (int e = 0; e < 4; ++e)
    if (in[e] != Blocks::value(from[e], e, 0, 0))
      return {false, "block " + std::to_string(e) + " is not the block that rank " + std::to_string(from[e]) +
                         " sent along its edge of that number"};
  return {};
}

}  // namespace

std::vector<Probe> neighbour_probes() {
  using enum Form;
  return {{"neighbor-graph-blocking", one_edge_per_peer<blocking>},
          {"neighbor-graph-nonblocking", one_edge_per_peer<nonblocking>},
          {"neighbor-graph-persistent", one_edge_per_peer<persistent>},
          {"neighbor-parallel-blocking", parallel_edges<blocking>},
          {"neighbor-parallel-nonblocking", parallel_edges<nonblocking>},
          {"neighbor-parallel-persistent", parallel_edges<persistent>},
          {"neighbor-parallel-alltoall", parallel_edges_plain},
          {"neighbor-cart-blocking", cartesian<blocking>},
          {"neighbor-cart-nonblocking", cartesian<nonblocking>},
          {"neighbor-cart-persistent", cartesian<persistent>}};
}

}  // namespace haloscope::probing
