#include "haloscope/runner/field_sums.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>

#include "haloscope/comm/library_comm.hpp"
#include "haloscope/comm/together.hpp"
#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/reproducible_sum.hpp"
#include "haloscope/extend/topology.hpp"
#include "haloscope/runner/exchange_request.hpp"
#include "haloscope/runner/memory_space.hpp"
#include "haloscope/transport/views.hpp"

namespace haloscope {
namespace {

constexpr int batch = 256;  // terms at a time
using Terms = std::array<double, batch>;

/// The numbers of a field, by point.
struct Numbers {
  const FieldRef* field;
  const SlotView* view;
  Summand type;
  int of_point;
};

/// Reads numbers of one type. @param step  bytes from one to the next.
template <class Number>
void read_as(const std::byte* at, std::int64_t step, int count, Terms& terms) {
  for (int n = 0; n < count; ++n) {
    Number number;
    std::memcpy(&number, at + n * step, sizeof number);
    terms[static_cast<std::size_t>(n)] = static_cast<double>(number);
  }
}

void read(Summand type, const std::byte* at, std::int64_t step, int count, Terms& terms) {
  type == Summand::f64 ? read_as<double>(at, step, count, terms) : read_as<float>(at, step, count, terms);
}

/// @param boxes  points that the rank reads. @param reads  the rank has points of the field.
Numbers numbers_of(const FieldRef& field, int slot, const std::vector<Box>& boxes, bool reads) {
  const Quantity& quantity = field.quantity;
  if (slot < 0 || slot >= static_cast<int>(field.slots.size()))
    throw UsageError("slot " + std::to_string(slot) + " of field '" + quantity.name + "' does not exist; it has " +
                     std::to_string(field.slots.size()));
  const Summand type = summand_of(quantity);
  if (type != Summand::f32 && type != Summand::f64)
    throw UsageError("field '" + quantity.name +
                     "' has points that are not made of reals of 4 or 8 bytes, and sums take no others; pass a field "
                     "of such reals");
  if (!place_of_fields({quantity}, {field.slots}).backend.empty())
    throw UsageError("field '" + quantity.name +
                     "' is in the memory of a device; sums take host memory: copy it, or reduce it in a Stepper");
  const SlotView& view = field.slots[static_cast<std::size_t>(slot)];
  if (reads) require_memory(view, quantity.name);
  for (const Box& box : boxes)
    if (!box.empty()) require_apart(view, box, quantity.name);
  return {&field, &view, type, quantity.element_bytes / bytes_of(type)};
}

/// The numbers of the field of one block, or the products of the numbers of two fields.
class BlockTerms {
 public:
  /// @param v      null: one field. They outlive this. @param boxes  the points that count, in local indices.
  BlockTerms(const SumFields& fields, const FieldRef& u, const FieldRef* v, std::vector<Box> boxes, int dims,
             bool reads)
      : boxes_(std::move(boxes)) {
    factors_.push_back(numbers_of(u, fields.slot_u, boxes_, reads));
    if (v != nullptr) factors_.push_back(numbers_of(*v, fields.slot_v, boxes_, reads));
    if (v == nullptr && factors_[0].of_point != 1)
      throw UsageError("field '" + u.quantity.name + "' has points of " + std::to_string(factors_[0].of_point) +
                       " numbers; add up one number of each point: pass a field of it alone");
    if (v != nullptr && (factors_[1].of_point != factors_[0].of_point || v->quantity.centring != u.quantity.centring))
      throw UsageError("fields '" + u.quantity.name + "' and '" + v->quantity.name +
                       "' differ in centring or in the numbers of a point; an inner product takes fields of one kind");
    const SlotView& view = *factors_[0].view;
    along_ = std::abs(view.stride[0]) <= std::abs(view.stride[1]) || dims < 2 ? 0 : 1;
    if (dims > 2 && std::abs(view.stride[2]) < std::abs(view.stride[along_])) along_ = 2;
  }
  int numbers_of_point() const { return factors_[0].of_point; }
  /// Calls visit(terms, number of them) for all terms.
  template <class Visit>
  void each(Visit& visit) const {
    for (const Box& box : boxes_)
      for (int component = 0; component < factors_[0].of_point; ++component) {
        Box rows = box;
        rows.hi[along_] = rows.lo[along_] + 1;
        for (std::int64_t z = rows.lo[2]; z < rows.hi[2]; ++z)
          for (std::int64_t y = rows.lo[1]; y < rows.hi[1]; ++y)
            for (std::int64_t x = rows.lo[0]; x < rows.hi[0]; ++x)
              visit_row({x, y, z}, box.extent(along_), component, visit);
      }
  }

 private:
  template <class Visit>
  void visit_row(Index at, std::int64_t points, int component, Visit& visit) const {
    Terms terms, others;
    for (std::int64_t done = 0; done < points; done += batch) {
      const int count = static_cast<int>(std::min<std::int64_t>(batch, points - done));
      load(factors_[0], at, component, count, terms);
      if (factors_.size() > 1) {
        load(factors_[1], at, component, count, others);
        for (int n = 0; n < count; ++n) terms[static_cast<std::size_t>(n)] *= others[static_cast<std::size_t>(n)];
      }
      visit(terms, count);
      at[along_] += count;
    }
  }
  void load(const Numbers& from, const Index& at, int component, int count, Terms& terms) const {
    read(from.type, from.view->at(at) + component * bytes_of(from.type), from.view->stride[along_], count, terms);
  }

  std::vector<Numbers> factors_;
  std::vector<Box> boxes_;
  int along_ = 0;  // the dimension whose points are nearest to each other in memory
};

/// The terms of all blocks of a rank.
class Sum {
 public:
  Sum(const Layout& layout, int rank, SumFields fields) : fields_(std::move(fields)) {
    check_field(fields_.u, layout, rank);
    if (fields_.v) check_field(*fields_.v, layout, rank);
    const bool reads = layout.owns_cells(rank);
    for (std::size_t n = 0; n < fields_.u.size(); ++n) {
      const FieldRef& u = fields_.u[n];
      const int block = layout.first_block(rank) + static_cast<int>(n);
      std::vector<Box> boxes;
      if (reads) boxes = owned_once(layout.by_block(), block, u.quantity);
      blocks_.emplace_back(fields_, u, fields_.v ? &(*fields_.v)[n] : nullptr, std::move(boxes), layout.dims(), reads);
    }
    count_ = blocks_.front().numbers_of_point();
    const Quantity& quantity = fields_.u.front().quantity;
    const int call = (fields_.of_complex ? 2 : 0) + (fields_.v ? 1 : 0), type = summand_of(quantity) == Summand::f64;
    kind_ = 64.0 * quantity.element_bytes + 16 * call + 8 * type + static_cast<int>(quantity.centring);
    const auto most_planes = static_cast<std::int64_t>(layout.grid().panels.boxes.size()) + 1;  // staggered, at ends
    for (int d = 0; d < layout.dims(); ++d) count_ *= static_cast<double>(layout.grid().cells[d] + most_planes);
  }
  Sum(const Sum&) = delete;
  Sum& operator=(const Sum&) = delete;
  /// Returns a number of terms that all ranks together do not exceed; the same for any split of the grid.
  double count() const { return count_; }
  /// Returns a number that is the same for sums of equal fields.
  double kind() const { return kind_; }
  /// Calls visit(terms, number of them) for all terms of this rank.
  template <class Visit>
  void each(Visit visit) const {
    for (const BlockTerms& block : blocks_) block.each(visit);
  }

 private:
  SumFields fields_;
  std::vector<BlockTerms> blocks_;  // point into fields_
  double count_ = 1, kind_ = 0;
};

/// Returns the largest magnitude of the terms; infinity if one is infinite or undefined.
double largest_term(const Sum& sum) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  double largest = 0;
  sum.each([&](const Terms& terms, int count) {
    for (int n = 0; n < count; ++n) {
      const double size = std::abs(terms[static_cast<std::size_t>(n)]);
      largest = size <= largest ? largest : size < infinite ? size : infinite;
    }
  });
  return largest;
}

/// Returns the parts of the sum of this rank's terms. Parts are exact, so that lanes may be added in any order.
std::array<double, ReproducibleSum::parts> parts_of(const Sum& sum, const ReproducibleSum& split, double scale) {
  constexpr int lanes = 8;
  double sums[ReproducibleSum::parts][lanes]{};
  sum.each([&](Terms& terms, int count) {
    std::fill(terms.begin() + count, terms.begin() + (count + lanes - 1) / lanes * lanes, 0.0);
    for (int first = 0; first < count; first += lanes)
      for (int lane = 0; lane < lanes; ++lane) {
        double term = terms[static_cast<std::size_t>(first + lane)] * scale;
        for (int i = 0; i < ReproducibleSum::parts; ++i) {
          const double part = (term + split.split[i]) - split.split[i];
          sums[i][lane] += part;
          term -= part;
        }
      }
  });
  std::array<double, ReproducibleSum::parts> all{};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const double one : sums[i]) all[i] += one;
  return all;
}

/// Returns the sum of terms one of which is infinite or undefined, for which no order matters.
double plain_sum(MPI_Comm comm, const Sum& sum) {
  std::array<double, 1> all{0};
  sum.each([&](const Terms& terms, int count) {
    for (int n = 0; n < count; ++n)
      if (!std::isfinite(terms[static_cast<std::size_t>(n)])) all[0] += terms[static_cast<std::size_t>(n)];
  });
  reduce_together(comm, all, MPI_DOUBLE, MPI_SUM);
  return all[0];
}

double sum_of(MPI_Comm comm, const Sum& sum, double largest) {
  if (largest == 0) return 0;
  if (std::isinf(largest)) return plain_sum(comm, sum);
  constexpr int safe = 900;  // powers of two with which neither the terms' parts nor their sums leave the range
  int power = 0;
  std::frexp(largest, &power);
  if (std::abs(power) < safe) power = 0;
  const double scale = std::ldexp(1.0, -power / 2);  // applied twice: a power alone may be out of range
  const ReproducibleSum split(largest * scale * scale, sum.count());
  auto parts = parts_of(sum, split, scale * scale);
  reduce_together(comm, parts, MPI_DOUBLE, MPI_SUM);
  return ReproducibleSum::total(parts.data()) / scale / scale;
}

}  // namespace

double sum_of_fields(MPI_Comm users, const Layout& layout, const std::function<SumFields()>& fields) {
  require_communicator(users);
  return collectively(users, "a sum of a field", [&] {
    const MPI_Comm comm = LibraryComm::on(users)->comm();
    std::optional<Sum> sum;
    std::exception_ptr refused;
    constexpr double none = -std::numeric_limits<double>::infinity();
    // The largest term, 1 where a rank has refused, and kind and grid, each with its negative.
    std::array<double, 6> common{0, 0, none, none, none, none};
    try {
      check_size(comm, layout);
      sum.emplace(layout, rank_in(comm), fields());
      const double kind = sum->kind(), grid = static_cast<double>(layout.number() >> 11);  // exact
      common = {largest_term(*sum), 0, kind, -kind, grid, -grid};
    } catch (...) {
      refused = std::current_exception();
      common[1] = 1;
    }
    reduce_together(comm, common, MPI_DOUBLE, MPI_MAX);
    if (common[1] != 0)
      agree(comm, [&] {
        if (refused) std::rethrow_exception(refused);
      });
    if (common[4] != -common[5])
      throw UsageError(
          "the ranks add up fields of different grids, of other cells, periods, blocks, ranks, folds or panels; make "
          "the same "
          "grid on all of them");
    if (common[2] != -common[3])
      throw UsageError(
          "the ranks add up different fields, of other types, centrings or numbers of a point; make the same call with "
          "the same field on all of them");
    return sum_of(comm, *sum, common[0]);
  });
}

double sum(MPI_Comm comm, const Layout& layout, const FieldRef& u, int slot) {
  return field_sum(comm, layout, [&] { return SumFields{{u}, {}, slot}; });
}
double sum(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& u, int slot) {
  return field_sum(comm, layout, [&] { return SumFields{u, {}, slot}; });
}

double dot(MPI_Comm comm, const Layout& layout, const FieldRef& u, const FieldRef& v, int slot_u, int slot_v) {
  return field_sum(comm, layout, [&] { return SumFields{{u}, std::vector{v}, slot_u, slot_v}; });
}
double dot(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& u, const std::vector<FieldRef>& v,
           int slot_u, int slot_v) {
  return field_sum(comm, layout, [&] { return SumFields{u, v, slot_u, slot_v}; });
}

double norm(MPI_Comm comm, const Layout& layout, const FieldRef& u, int slot) {
  return std::sqrt(dot(comm, layout, u, u, slot, slot));
}
double norm(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& u, int slot) {
  return std::sqrt(dot(comm, layout, u, u, slot, slot));
}

}  // namespace haloscope
