// Values of a run's fields: initial values, poisoned halos, checksums, errors.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/core/combine.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/field/poison.hpp"
#include "haloscope/rank/measure/run.hpp"
#include "haloscope/reduce/keys.hpp"

namespace haloscope {

namespace {

std::uint64_t hash(std::uint64_t id, std::uint64_t bits) {
  std::uint64_t x = id * 0x9e3779b97f4a7c15ull ^ (bits + 0x632be59bd9b4e019ull);
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull;
  return x ^ (x >> 32);
}

Index moved(Index p, const Index& by) {
  for (int d = 0; d < 3; ++d) p[d] += by[d];
  return p;
}

/// Returns the bits of a value in a quantity's points. The first bytes are used.
std::uint64_t bits_of(const Quantity& q, double value) {
  std::uint64_t bits = 0;
  const auto put = [&](auto typed) { std::memcpy(&bits, &typed, sizeof typed); };
  if (q.type == ScalarType::integer)
    q.element_bytes == 4 ? put(static_cast<std::int32_t>(value)) : put(static_cast<std::int64_t>(value));
  else
    q.element_bytes == 4 ? put(static_cast<float>(value)) : put(value);
  return bits;
}

double value_of(const Quantity& q, const std::byte* at) {
  const auto get = [&](auto typed) {
    std::memcpy(&typed, at, sizeof typed);
    return static_cast<double>(typed);
  };
  if (q.type == ScalarType::integer) return q.element_bytes == 4 ? get(std::int32_t{}) : get(std::int64_t{});
  return q.element_bytes == 4 ? get(float{}) : get(double{});
}

/// All ones: a NaN, or a number that no field holds.
constexpr int poison_byte = 0xff;

/// Returns true if a global point lies beyond the edge of a grid that does not wrap around: its value never changes.
bool is_beyond(const GridSpec& grid, const Quantity& quantity, const Index& point) {
  for (int d = 0; d < grid.dims; ++d)
    if (!grid.periodic[d] && (point[d] < 0 || point[d] >= grid.cells[d] + staggered(quantity.centring, d))) return true;
  return false;
}

/// Makes the values of points before the first step. @param points the rank's, whose first cell is `first`, global.
void make_row(const RowPart& row, std::byte* here, const GridSpec& grid, const Plan& points, const Index& first,
              const std::function<double(const Index&)>& start) {
  const Quantity& quantity = points.spec.quantities[row.quantity];
  const auto element = static_cast<std::size_t>(quantity.element_bytes);
  const Box owned = points.owned(row.quantity);
  std::memset(here, poison_byte, row.bytes.size());
  Index p = row.first;
  for (std::int64_t i = 0; i < row.points; ++i, ++p[0], here += element) {
    const Index point = moved(p, first);
    if (!is_beyond(grid, quantity, point) && (row.slot > 0 || !owned.contains(p))) continue;
    const std::uint64_t bits = bits_of(quantity, start(point));
    std::memcpy(here, &bits, element);
  }
}

}  // namespace

std::uint64_t checksum_term(const GridSpec& grid, int quantity, const Index& point, std::uint64_t bits) {
  std::uint64_t id = 0;
  for (int d = 2; d >= 0; --d) id = id * static_cast<std::uint64_t>(grid.cells[d] + (quantity > 0)) + point[d];
  return hash(quantity > 0 ? id ^ hash(static_cast<std::uint64_t>(quantity), 0) : id, bits);
}

/// Reads the current points of a box, x first, row by row or in parts of rows.
void Run::read(int quantity, const Box& box, const DeviceFields::LookAtRow& look) const {
  const int slot = loop_->at.slot < arrangement().slots(quantity) ? loop_->at.slot : 0;
  if (!storage_) return fields_->read(quantity, slot, box, look);
  refresh();
  arrangement().each_row(arrangement().range(quantity, slot, box), [&](const RowPart& row) {
    const RowPart inside = intersect(row, box);
    if (inside.points > 0) look(inside, storage_->all().data() + inside.bytes.begin);
  });
}

/// Calls visit(global point, its bytes) for the points that this rank counts, x first: a plane that two ranks hold
/// belongs to the higher rank.
template <class Visit>
void Run::for_owned_points(int quantity, Visit visit) const {
  const Quantity& q = points_.spec.quantities[quantity];
  Box box = points_.owned(quantity);
  for (int d = 0; d < points_.dims; ++d)
    if (staggered(q.centring, d) && points_.has_neighbour[d][1]) --box.hi[d];
  const Index first = candidate_.layout.owned(rank_).lo;
  read(quantity, box, [&](const RowPart& row, const std::byte* here) {
    Index point = moved(row.first, first);
    for (std::int64_t i = 0; i < row.points; ++i, ++point[0]) visit(point, here + i * q.element_bytes);
  });
}

/// Adds the halos that each exchange fills: they are poisoned before it.
void Run::add_poison() {
  poison_ = std::make_unique<HaloPoison>(candidate_.step.quantities, views_,
                                         messages_on_device(choice_) ? fields_.get() : nullptr);
  for (const auto& stage : loop_->all()) {
    const Plan& plan = stage->plan();
    const std::vector<int> numbers = exchanged(candidate_, stage->number());
    std::vector<PoisonSpot> spots;
    const auto add = [&](int quantity, const Box& box) {
      spots.push_back({numbers[quantity], box, side_of(box, plan.owned(quantity))});
    };
    for (const Message& m : plan.messages)
      if (!m.out)
        for (const Region& r : m.regions) add(r.quantity, r.box);
    for (const Copy& c : plan.copies) add(c.quantity, c.to);
    poison_->add(std::move(spots));
  }
}

/// Poisons the margin in all slots.
void Run::poison_margin() {
  const std::vector<Quantity>& quantities = candidate_.step.quantities;
  for (int q = 0; q < static_cast<int>(quantities.size()); ++q) {
    const Box all = points_.allocated(q);
    for (int d = 0; d < points_.dims; ++d)
      for (const bool high : {false, true}) {
        Box box = all;
        (high ? box.lo : box.hi)[d] = high ? all.hi[d] - margin_ : all.lo[d] + margin_;
        for (const SlotView& slot : views_[q]) poison(slot, quantities[q], box, {d, high});
      }
  }
}

void Run::require_unread_margin() const {
  agree(comm_.get(), [&] {
    for (int q = 0; q < static_cast<int>(candidate_.step.quantities.size()); ++q) {
      const Quantity& quantity = candidate_.step.quantities[q];
      if (const auto leak = find_poison(views_[q][loop_->at.slot], quantity, points_.owned(q)))
        throw UsageError("a sweep of app '" + choice_.app + "' reads more than its stage names: " +
                         name_point(*leak, quantity, candidate_.layout.owned(rank_).lo, points_.dims) +
                         " depends on points beyond the halo at " + to_string(leak->from) +
                         "; name more layers in `reads`, for each field that the sweep reads there");
    }
  });
}

void Run::initialise() { initialise(candidate_.problem.parameters.word("initial")); }

void Run::initialise(const std::string& initial) {
  Choice other = choice_;
  other.set["initial"] = initial;
  const Problem problem = problem_of(other);
  const Box cells = candidate_.layout.owned(rank_);
  std::vector<std::function<double(const Index&)>> starts;
  for (int q = 0; q < static_cast<int>(candidate_.step.quantities.size()); ++q)
    starts.push_back(initial_values(candidate_.app, problem, q, cells));
  const auto make = [&](const RowPart& row, std::byte* here) {
    const auto q = static_cast<std::size_t>(row.quantity);
    make_row(row, here, problem.grid, points_, cells.lo, starts[q]);
  };
  if (storage_)
    arrangement().each_row({0, arrangement().bytes()},
                           [&](const RowPart& row) { make(row, storage_->all().data() + row.bytes.begin); });
  if (margin_ > 0) poison_margin();
  if (temporaries_) temporaries_->free_all();
  if (fields_) storage_ ? fields_->upload(*storage_) : fields_->write(make);
  sweeper_->begin();
  loop_->forget_numbers();
  std::fill(loop_->latest().begin(), loop_->latest().end(), 0.0);
  std::fill(scalars_.begin(), scalars_.end(), 0.0);
  stale_ = false;
  loop_->at = {};
}

double Run::sum_of(int quantity, const std::function<double(const Index& point, double value)>& term) const {
  require_lasting(quantity);
  double sum = 0;
  const Quantity& q = candidate_.step.quantities[quantity];
  for_owned_points(quantity, [&](const Index& point, const std::byte* at) { sum += term(point, value_of(q, at)); });
  return sum;
}

void Run::require_lasting(int quantity) const {
  if (temporaries_ && lives_[quantity])
    throw UsageError("app '" + choice_.app + "' reads '" + candidate_.step.quantities[quantity].name +
                     "' after a step, and it was freed within; use temporaries 'kept'");
}

double Run::value(const Index& p, int quantity) const {
  const Quantity& q = candidate_.step.quantities[quantity];
  double found = 0;
  read(quantity, {p, {p[0] + 1, p[1] + 1, p[2] + 1}},
       [&](const RowPart&, const std::byte* here) { found = value_of(q, here); });
  return found;
}

std::uint64_t Run::checksum() const {
  std::uint64_t sum = 0;
  for (int q = 0; q < static_cast<int>(views_.size()); ++q) {
    if (lives_[q]) continue;
    const auto bytes = static_cast<std::size_t>(candidate_.step.quantities[q].element_bytes);
    for_owned_points(q, [&](const Index& point, const std::byte* at) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, at, bytes);
      sum += checksum_term(choice_.grid, q, point, bits);
    });
  }
  CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, comm_.get()));
  return sum;
}

bool Run::has_exact_solution() const {
  const App& app = candidate_.app;
  return app.exact && app.exact(candidate_.problem, 0, Box{}, 0) != nullptr;
}

namespace {

/// Returns the maximum or minimum of the ranks' numbers; a NaN of any rank stays. Collective.
double extreme_of(MPI_Comm comm, ReduceOp op, double number) {
  to_keys(op, {&number, 1});
  CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &number, 1, mpi_type(op), mpi_op(op), comm));
  from_keys(op, {&number, 1});
  return number;
}

}  // namespace

Run::Norms Run::error_norms() const {
  const auto exact = candidate_.app.exact(candidate_.problem, 0, candidate_.layout.owned(rank_), time());
  double worst = 0, sum = 0;
  const Quantity& quantity = candidate_.step.quantities.front();
  for_owned_points(0, [&](const Index& point, const std::byte* at) {
    const double e = value_of(quantity, at) - exact(point);
    worst = combined(ReduceOp::max, worst, std::abs(e));
    sum += e * e;
  });
  worst = extreme_of(comm_.get(), ReduceOp::max, worst);
  CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, comm_.get()));
  const double cells = static_cast<double>(choice_.grid.cells[0] * choice_.grid.cells[1] * choice_.grid.cells[2]);
  return {worst, std::sqrt(sum / cells)};
}

namespace {

/// A run's fields for an app's entries in records.
class RunReader final : public FieldReader {
 public:
  RunReader(const Run& run, MPI_Comm comm, int rank) : run_(run), comm_(comm), rank_(rank) {}

  std::vector<double> values(int quantity, std::span<const Index> points) const override {
    run_.require_lasting(quantity);
    const Index first = run_.layout().owned(rank_).lo;
    std::vector<double> found(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      Index cell = points[i], local = points[i];
      for (int d = 0; d < 3; ++d) {
        cell[d] = std::min(cell[d], run_.choice().grid.cells[d] - 1);
        local[d] -= first[d];
      }
      if (run_.layout().owner(cell) == rank_) found[i] = run_.value(local, quantity);
    }
    sum(found);
    return found;
  }
  void sum(std::span<double> numbers) const override {
    CHECK_MPI(
        MPI_Allreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()), MPI_DOUBLE, MPI_SUM, comm_));
  }
  double least(double number) const override { return extreme_of(comm_, ReduceOp::min, number); }
  double sum_of(int quantity, const std::function<double(const Index& point, double value)>& term) const override {
    double all = run_.sum_of(quantity, term);
    sum({&all, 1});
    return all;
  }
  std::span<const double> scalars() const override { return run_.scalars(); }
  std::span<const double> reduced() const override { return run_.reduced(); }

 private:
  const Run& run_;
  MPI_Comm comm_;
  int rank_;
};

}  // namespace

std::vector<RecordEntry> Run::entries() const {
  if (!candidate_.app.entries) return {};
  return candidate_.app.entries(candidate_.problem, *sweeper_, RunReader(*this, comm_.get(), rank_));
}

}  // namespace haloscope
