#include "haloscope/runner/exchange_request.hpp"

#include <algorithm>
#include <utility>

#include "haloscope/comm/same_request.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/field/memory.hpp"
#include "haloscope/transport/views.hpp"

namespace haloscope {
namespace {

/// Returns the layers of a field that an exchange fills where the options have no widths of fields.
ExchangeSpec::Sides layers_of(const FieldRef& field, int dims, const ExchangeOptions& options) {
  ExchangeSpec::Sides sides;
  const auto chosen = [&](int of_side, int whole) {
    return of_side >= 0 ? of_side : options.width >= 0 ? options.width : whole;
  };
  for (int d = 0; d < dims; ++d) {
    sides.low[d] = chosen(options.low[d], field.low[d]);
    sides.high[d] = chosen(options.high[d], field.high[d]);
  }
  return sides;
}

/// @throws UsageError where a field has no room for the layers that an exchange fills.
void check_room(const FieldRef& field, int dims, const ExchangeSpec::Sides& sides) {
  for (int d = 0; d < dims; ++d)
    for (const auto& [layers, room] : {std::pair{sides.low[d], field.low[d]}, std::pair{sides.high[d], field.high[d]}})
      if (layers > room)
        throw UsageError("field '" + field.quantity.name + "' has room for " + std::to_string(room) +
                         " ghost layers in " + std::string(1, "xyz"[d]) + ", and the exchange fills " +
                         std::to_string(layers) + "; give it a wider halo or the exchange a smaller width");
}

}  // namespace

void check_size(MPI_Comm comm, const Layout& layout) {
  const int size = ranks_in(comm);
  if (size != layout.size())
    throw UsageError("the layout has " + std::to_string(layout.size()) + " ranks but the communicator " +
                     std::to_string(size) + "; make the layout for the communicator's size");
}

void check_cells(const std::vector<FieldRef>& fields, const Layout& layout, int rank) {
  if (rank >= layout.size()) return;  // refused elsewhere
  const Index cells = layout.local_cells(rank);
  for (const FieldRef& field : fields)
    if (field.cells != Index{} && field.cells != cells)
      throw UsageError("field '" + field.quantity.name + "' was made for a grid of which this rank owns " +
                       join_numbers(field.cells, "x") + " cells, and of this grid it owns " + join_numbers(cells, "x") +
                       "; pass a field of the grid itself");
}

namespace {

/// Returns the name of field number q, among fields of `each` a block, for error texts.
std::string name_in_block(const std::vector<FieldRef>& fields, std::size_t q, std::size_t each) {
  return "field '" + fields[q].quantity.name + "' (number " + std::to_string(q % each + 1) + " of block " +
         std::to_string(q / each) + ")";
}

}  // namespace

void check_blocks(const std::vector<FieldRef>& fields, const Layout& layout, int rank) {
  if (!layout.has_several_blocks()) return check_cells(fields, layout, rank);
  const auto blocks = static_cast<std::size_t>(blocks_moved(layout, rank));
  if (fields.size() % blocks != 0)
    throw UsageError("an exchange got " + std::to_string(fields.size()) + " fields for " + std::to_string(blocks) +
                     " blocks of this rank; pass the fields of the first block, then the same ones of the next");
  const std::size_t each = fields.size() / blocks;
  for (std::size_t q = 0; q < fields.size(); ++q) {
    const std::string name = name_in_block(fields, q, each);
    const int block = layout.first_block(rank) + static_cast<int>(q / each);
    const Index cells = layout.owns_cells(rank) ? layout.by_block().local_cells(block) : Index{};
    if (fields[q].cells != Index{} && fields[q].cells != cells)
      throw UsageError(name + " was made for " + join_numbers(fields[q].cells, "x") + " cells, and that block has " +
                       join_numbers(cells, "x") +
                       "; pass the fields of the first block, then the same ones of the next");
    const std::string kind = kind_of(fields[q].quantity), first = kind_of(fields[q % each].quantity);
    if (kind != first)
      throw UsageError(name + " has " + kind + ", and that of block 0 " + first +
                       "; pass the same fields for each block, in the same order");
  }
}

void check_field(const std::vector<FieldRef>& blocks, const Layout& layout, int rank) {
  if (static_cast<int>(blocks.size()) != blocks_moved(layout, rank))
    throw UsageError("the call takes the field of each block; this rank passed " + std::to_string(blocks.size()) +
                     " and has " + std::to_string(layout.blocks_of(rank)) +
                     " blocks; a rank without blocks passes the field once, without cells");
  check_blocks(blocks, layout, rank);
}

ExchangeSpec spec_of(const std::vector<FieldRef>& fields, int dims, const ExchangeOptions& options, int blocks) {
  if (fields.empty()) throw UsageError("an exchange needs at least one field");
  ExchangeSpec spec;
  spec.quantities.clear();
  spec.corners = options.corners;
  spec.beyond = true;
  const std::size_t each = fields.size() / static_cast<std::size_t>(blocks);
  for (std::size_t q = 0; q < fields.size(); ++q) {
    const FieldRef& field = fields[q];
    if (field.slots.size() != fields.front().slots.size() || field.slots.empty())
      throw UsageError("the fields of one exchange need the same number of slots, at least 1");
    const ExchangeSpec::Sides layers = layers_of(field, dims, options);
    if (q >= each && layers != spec.widths[q % each] && options.widths.empty())
      throw UsageError(name_in_block(fields, q, each) + " has a halo of " + name_of(layers) +
                       " layers, and that of block 0 " + name_of(spec.widths[q % each]) +
                       "; give the fields of all blocks the same halo");
    if (q >= each) continue;
    spec.widths.push_back(layers);
    spec.quantities.push_back(field.quantity);
  }
  if (!options.widths.empty()) spec.widths = options.widths;
  for (std::size_t q = 0; q < fields.size(); ++q)
    if (q % each < spec.widths.size()) check_room(fields[q], dims, spec.widths[q % each]);
  return spec;
}

namespace {

/// Returns the numbers of a part's fields in ascending order.
std::vector<int> fields_of_part(const ExchangePart& part, int fields) {
  std::vector<int> numbers = part.only;
  if (numbers.empty())
    for (int q = 0; q < fields; ++q) numbers.push_back(q);
  std::sort(numbers.begin(), numbers.end());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0 || numbers[i] >= fields)
      throw UsageError("field " + std::to_string(numbers[i]) +
                       " of a part does not exist; the exchange has fields 0 to " + std::to_string(fields - 1));
    if (i > 0 && numbers[i] == numbers[i - 1])
      throw UsageError("field " + std::to_string(numbers[i]) + " is twice in a part of the exchange; name it once");
  }
  return numbers;
}

/// Returns the layers of one side in a part. @param opened  layers that the whole exchange fills there.
int layers_of_part(const std::string& field, int d, int of_side, int depth, int opened) {
  if (std::min(of_side, depth) < -1)
    throw UsageError("a part of the exchange requests " + std::to_string(std::min(of_side, depth)) +
                     " layers; pass 0 or more, or -1 for all layers of the exchange");
  const int layers = of_side >= 0 ? of_side : depth >= 0 && opened > 0 ? depth : opened;
  if (layers > opened)
    throw UsageError("a part of the exchange requests " + std::to_string(layers) + " layers of field '" + field +
                     "' in " + std::string(1, "xyz"[d]) + ", and the exchange fills " + std::to_string(opened) +
                     "; open it with a wider halo, or pass a smaller depth");
  return layers;
}

}  // namespace

PartRequest request_of(const ExchangePart& part, Motion motion, const ExchangeSpec& spec, int dims) {
  PartRequest request{motion, fields_of_part(part, static_cast<int>(spec.quantities.size())), {}};
  if (motion == Motion::share) {
    if (part != ExchangePart{.only = part.only})
      throw UsageError("a share moves points that ranks own, and the request names layers; pass fields only");
    request.widths.resize(request.fields.size());
    return request;
  }
  for (const int q : request.fields) {
    ExchangeSpec::Sides& sides = request.widths.emplace_back();
    const std::string& name = spec.quantities[static_cast<std::size_t>(q)].name;
    const ExchangeSpec::Sides opened = spec.sides_of(q);
    for (int d = 0; d < dims; ++d) {
      sides.low[d] = layers_of_part(name, d, part.low[d], part.depth, opened.low[d]);
      sides.high[d] = layers_of_part(name, d, part.high[d], part.depth, opened.high[d]);
      if (sides.low[d] > 0 || sides.high[d] > 0) continue;
      sides.rows_low[d] = opened.rows_low[d] + (part.ghost_rows ? opened.low[d] : 0);
      sides.rows_high[d] = opened.rows_high[d] + (part.ghost_rows ? opened.high[d] : 0);
    }
  }
  return request;
}

std::string name_of(const ExchangeSpec::Sides& sides) {
  const auto both = [](const Widths& low, const Widths& high) {
    return join_numbers(low, "x") + " and " + join_numbers(high, "x");
  };
  const bool rows = sides.rows_low != Widths{} || sides.rows_high != Widths{};
  return both(sides.low, sides.high) + (rows ? " with ghost rows " + both(sides.rows_low, sides.rows_high) : "");
}

Views views_of(const std::vector<FieldRef>& fields) {
  Views views;
  for (const FieldRef& field : fields) views.push_back(field.slots);
  return views;
}

Plan plan_of(MPI_Comm comm, const Layout& layout, ExchangeSpec spec, const Strategy& strategy) {
  check_size(comm, layout);
  apply(strategy, layout, spec);
  return make_plan(layout, rank_in(comm), spec);
}

Plan plan_of_part(MPI_Comm comm, const Layout& layout, const ExchangeSpec& spec, const PartRequest& request,
                  const Strategy& strategy) {
  ExchangeSpec part = spec;
  part.quantities = chosen(spec.quantities, request.fields);
  part.widths = request.widths;
  part.motion = request.motion;
  Strategy how = strategy;
  if (part.reverse()) how.corners = false;
  return plan_of(comm, layout, std::move(part), how);
}

namespace {

/// Returns the memory of some points and of the gaps that share pages with them, at most.
std::int64_t bytes_in_use(const SlotView& view, const Box& points) {
  constexpr auto page = static_cast<std::int64_t>(small_page);
  std::int64_t run = view.element_bytes(), runs = 1;
  for (const int d : dims_by_stride(view)) {
    const std::int64_t step = std::abs(view.stride[d]);
    if (runs == 1 && step <= run + page)
      run += (points.extent(d) - 1) * step;
    else
      runs *= points.extent(d);
  }
  return runs * (run + page);
}

}  // namespace

void improve_memory(const SlotView& view, const Box& points) {
  if (points.empty()) return;
  const std::span<std::byte> memory = memory_of(view, points);
  const bool sparse = 2 * bytes_in_use(view, points) < static_cast<std::int64_t>(memory.size());
  if (!sparse && !in_shared_memory(view.origin)) move_to_huge_pages(memory);
}

void require_same(MPI_Comm comm, const Plan& plan, const Layout& layout, const Strategy& strategy, std::size_t slots,
                  const std::vector<int>& nodes, bool guarded, std::vector<Aspect> more) {
  const ExchangeSpec spec = as_requested(plan.spec);
  std::vector<std::string> names, widths;
  for (std::size_t q = 0; q < spec.quantities.size(); ++q) {
    names.push_back(spec.quantities[q].name);
    widths.push_back(name_of(spec.sides_of(static_cast<int>(q))));
  }
  std::vector<Aspect> aspects = std::move(more);
  for (Aspect& one : aspects_of(layout, nodes)) aspects.push_back(std::move(one));
  aspects.insert(aspects.end(), {{"order of the process grid", join_numbers(spec.order, ",")},
                                 {"strategy", to_string(strategy)},
                                 {"corners", spec.corners ? "filled" : "not filled"},
                                 {"slots", std::to_string(slots)},
                                 fields_of(spec.quantities),
                                 {"layers at the low and high sides", join(widths, ", ")},
                                 {"guard", guarded ? "on" : "off"}});
  require_same(comm, "exchanges", aspects, names,
               "give all of them the same grid, strategy, options and number of slots, and the same fields in the same "
               "order, all in host memory or all on devices");
}

}  // namespace haloscope
