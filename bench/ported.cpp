// Figure `ported`: exchanges with the structure of five codes, written by hand, against the library's exchanges of the
// same points, on equal arrays, each after a pass over them. Run by mpiexec -n 2.
#include <mpi.h>

#include <cstdlib>
#include <functional>

#include "by_hand.hpp"
#include "haloscope/haloscope.hpp"
#include "harness.hpp"
#include "slowest.hpp"

namespace haloscope::bench {
namespace {

/// The exchange of a code.
struct Code {
  std::string name;  ///< of the code, with its fields and layers
  int dims;
  std::array<int, 3> cells, layers;  ///< of a block, on each side
  int fields, split;                 ///< the dimension that is split
  bool wraps;
  std::string same;  ///< the library's strategy that moves points as the code does
  bool corners = true;
  bool sums_nodes = false;  ///< sums of nodes, not ghost points
  int first = 0;  ///< dimension that is exchanged; ghost layers of those below travel as the code has set them
  bool floats = false;
};

const std::array<Code, 5> codes{{
    {"PRK Stencil: 1 field, 2 layers, packed sides", 2, {1000, 500, 1}, {2, 2, 0}, 1, 1, false, "direct/p2p", false},
    {"CloverLeaf: 7 fields, 2 layers, packed in turn", 2, {480, 960, 1}, {2, 2, 0}, 7, 0, false, "ordered:merged/p2p"},
    {"CaNS: 4 fields, 1 layer, datatypes",
     3,
     {64, 32, 64},
     {1, 1, 1},
     4,
     1,
     true,
     "ordered:fields=serial/p2p:blocking,datatype",
     true,
     false,
     1},
    {"hpcscan: 1 field of floats, 4 layers, datatypes",
     3,
     {128, 128, 64},
     {4, 4, 4},
     1,
     2,
     false,
     "ordered/p2p:blocking,datatype",
     false,
     false,
     0,
     true},
    {"LULESH: sums of 3 fields at nodes", 3, {46, 46, 46}, {0, 0, 0}, 3, 2, false, "direct/p2p", true, true},
}};

/// The arrays of a code. Each own point has a number of its own among all ranks, and ghost points have another one.
template <class T>
std::vector<Array<T>> arrays_of(const Code& code) {
  std::array<int, 3> own = code.cells;
  for (int d = 0; d < code.dims && code.sums_nodes; ++d) ++own[d];
  std::vector<Array<T>> fields(static_cast<std::size_t>(code.fields), Array<T>(own, code.layers));
  int rank = 0, number = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (Array<T>& u : fields)
    each_point<T>({{}, own}, [&](int i, int j, int k) { u(i, j, k) = static_cast<T>(2 * number++ + rank); });
  return fields;
}

/// Passes over the arrays, as a sweep does.
template <class T>
void pass_over(std::vector<Array<T>>& fields) {
  for (Array<T>& u : fields)
    for (T& point : u.memory()) point = T(0.25) * point + T(0.5);
}

/// Returns the code's exchange, by hand.
template <class T>
std::function<void()> by_hand(const Code& code, MPI_Comm cart, std::vector<Array<T>>& fields) {
  const auto running = [](auto made) { return [made] { made->exchange(); }; };
  if constexpr (std::is_same_v<T, double>)
    if (code.sums_nodes) return running(std::make_shared<NodeSums>(cart, fields));
  if (code.same.ends_with("datatype"))
    return running(std::make_shared<TypedSides<T>>(cart, fields, code.first, code.dims, code.corners));
  return running(std::make_shared<PackedSides<T>>(cart, fields, code.dims, code.corners));
}

/// Returns the library's exchange of the same points.
template <class T, int D>
Exchange by_library(const Code& code, MPI_Comm cart, std::vector<Array<T>>& fields, const std::string& strategy) {
  PerDimension<std::int64_t, D> cells{};
  ViewOptions<D> options{.centring = code.sums_nodes ? Centring::node : Centring::cell};
  int ranks = 1;
  MPI_Comm_size(cart, &ranks);
  for (int d = 0; d < D; ++d) {
    cells[d] = code.cells[d] * (d == code.split ? ranks : 1);
    options.stride[d] = static_cast<std::int64_t>(sizeof(T)) * fields[0].stride(d);
    options.low[d] = options.high[d] = code.layers[d];
  }
  const auto grid = Grid<D>::of_cartesian(cart, cells);
  std::vector<FieldRef> refs;
  for (Array<T>& u : fields) refs.push_back(view<T, D>(grid, {&u(0, 0, 0)}, options));
  return make_exchange(grid, refs, strategy, {.corners = code.corners});
}

/// The part of an exchange that a code's exchange is.
ExchangePart part_of(const Code& code) {
  ExchangePart part{.ghost_rows = code.first > 0};
  for (int d = 0; d < code.first; ++d) part.low[d] = part.high[d] = 0;
  return part;
}

/// @throws Error where the two have other points.
template <class T>
void require_same(const Code& code, std::vector<Array<T>>& a, std::vector<Array<T>>& b) {
  int differ = 0;
  for (std::size_t f = 0; f < a.size(); ++f) differ += a[f].memory() != b[f].memory();
  MPI_Allreduce(MPI_IN_PLACE, &differ, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (differ > 0) throw Error(Exit::failed, code.name + ": the exchange by hand and the library's differ");
}

/// Returns "; TRANSPORT chosen" for the report of an exchange by `auto`.
std::string chosen_by(const std::string& report) {
  const std::string mark = "auto: chose ";
  const auto at = report.find(mark);
  if (at == std::string::npos) return "";
  const auto begin = at + mark.size();
  return "; " + report.substr(begin, report.find(',', begin) - begin) + " chosen";
}

template <class T, int D>
void compare(const Code& code, MPI_Comm cart, const std::string& strategy, int pairs) {
  std::vector<Array<T>> mine = arrays_of<T>(code), theirs = mine;
  const std::function<void()> hand = by_hand(code, cart, theirs);
  Exchange halo = by_library<T, D>(code, cart, mine, strategy);
  const ExchangePart part = part_of(code);
  const auto library = [&] { code.sums_nodes ? halo.accumulate() : halo.exchange(part); };
  library();
  hand();
  require_same(code, mine, theirs);
  Result result;
  result.figure = "ported";
  result.name = code.name + ", " + strategy;
  result.a = strategy;
  result.b = "by hand";
  result.value = "a/b";
  result.direction = "<=";
  result.bar = strategy == "auto" ? 1.0 : no_bar;
  MPI_Comm_size(cart, &result.ranks);
  for (int pair = -200; pair < pairs; ++pair) {  // first a warm-up, in which `auto` tries transports and decides
    double a = 0, b = 0;
    for (const bool first : {true, false})  // each goes first in half of the pairs
      if (first == ((pair & 1) == 0)) {
        pass_over(mine);
        a = slowest_s(library);
      } else {
        pass_over(theirs);
        b = slowest_s(hand);
      }
    if (pair < 0) continue;
    result.samples_a.push_back(a);
    result.samples_b.push_back(b);
  }
  char text[64];
  std::snprintf(text, sizeof text, "%.1f us by hand", 1e6 * median(result.samples_b));
  result.notes = text + chosen_by(halo.report());
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) emit(result);
}

void compare_all(const Code& code, int pairs) {
  int places[3] = {1, 1, 1}, wrap[3] = {code.wraps, code.wraps, code.wraps};
  MPI_Comm_size(MPI_COMM_WORLD, &places[code.split]);
  MPI_Comm cart;
  MPI_Cart_create(MPI_COMM_WORLD, code.dims, places, wrap, 0, &cart);
  for (const std::string& strategy : {code.same, std::string("auto")})
    if (code.dims == 2)
      compare<double, 2>(code, cart, strategy, pairs);
    else if (code.floats)
      compare<float, 3>(code, cart, strategy, pairs);
    else
      compare<double, 3>(code, cart, strategy, pairs);
  MPI_Comm_free(&cart);
}

}  // namespace
}  // namespace haloscope::bench

int main(int argc, char** argv) {
  setenv("HALOSCOPE_CACHE", "", 1);        // each launch tries all transports
  setenv("HALOSCOPE_HUGE_PAGES", "0", 1);  // pages of one size
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto cpus = haloscope::bench::usable_cpus();
  haloscope::bench::pin_to(cpus[static_cast<std::size_t>(rank) % cpus.size()]);
  const int pairs = haloscope::bench::has_flag(argc, argv, "--quick") ? 21 : 101;
  for (const auto& code : haloscope::bench::codes) haloscope::bench::compare_all(code, pairs);
  MPI_Finalize();
}
