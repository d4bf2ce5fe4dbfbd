// Plans of the C interface.
#include <algorithm>
#include <set>

#include "haloscope/c/bridge.hpp"

namespace haloscope::c {

static_assert(HS_CENTRING_NODE == int(Centring::node) && HS_CENTRING_FACE_Z == int(Centring::face_z));
static_assert(HS_EDGE_ODD == int(Edge::odd));
static_assert(HS_TYPE_INTEGER == int(ScalarType::integer) && HS_PATTERN_DIRECT == int(Pattern::direct));
static_assert(HS_MERGE_TYPE == int(Merge::type) && HS_MERGE_NONE == int(Merge::none));
static_assert(HS_MERGE_SERIAL == int(Merge::serial) && HS_MERGE_PIPELINED == int(Merge::pipelined));

hs_copy to_c(const Copy& copy) {
  hs_copy result{to_c(copy.to), {}, copy.quantity, copy.round, copy.negate, 0};
  copy3(copy.shift, result.shift);
  return result;
}

Copy from_c(const hs_copy& copy) {
  Copy result{copy.quantity, copy.round, from_c(copy.to), {}, copy.negate != 0};
  copy3(copy.shift, result.shift);
  return result;
}

ExchangeSpec from_c(const hs_spec* given) {
  hs_spec defaults;
  hs_spec_init(&defaults);
  const hs_spec s = versioned(given, defaults, "hs_spec");
  ExchangeSpec spec;
  spec.quantities.clear();
  for (int q = 0; q < s.quantity_count; ++q) {
    const hs_quantity& from = (&needed(s.quantities, "quantities"))[q];
    spec.quantities.push_back({text(from.name), from.element_bytes, enumerator<ScalarType>(from.type, 2, "scalar type"),
                               enumerator<Centring>(from.centring, 5, "centring")});
    for (int d = 0; d < 3; ++d) spec.quantities.back().edges[d] = enumerator<Edge>(from.edges[d], 3, "edge");
  }
  for (int q = 0; s.widths && q < s.quantity_count; ++q) {
    copy3(s.widths[q].low, spec.widths.emplace_back().low);
    copy3(s.widths[q].high, spec.widths.back().high);
  }
  copy3(s.low, spec.low);
  copy3(s.high, spec.high);
  copy3(s.order, spec.order);
  spec.pattern = enumerator<Pattern>(s.pattern, 2, "pattern");
  spec.merge = enumerator<Merge>(s.merge, 5, "merge rule");
  spec.corners = s.corners;
  spec.merge_peers = s.merge_peers;
  return spec;
}

namespace {

/// `quantities` and `widths` must outlive the result's use.
hs_spec spec_to_c(const ExchangeSpec& spec, const std::vector<hs_quantity>& quantities,
                  const std::vector<hs_sides>& widths) {
  hs_spec result{};
  result.struct_size = sizeof(hs_spec);
  result.quantities = quantities.data();
  result.quantity_count = static_cast<int32_t>(quantities.size());
  result.widths = widths.empty() ? nullptr : widths.data();
  copy3(spec.low, result.low);
  copy3(spec.high, result.high);
  copy3(spec.order, result.order);
  result.pattern = static_cast<int32_t>(spec.pattern);
  result.corners = spec.corners;
  result.merge_peers = spec.merge_peers;
  result.merge = static_cast<int32_t>(spec.merge);
  return result;
}

std::vector<hs_quantity> quantities_to_c(const std::vector<Quantity>& quantities) {
  std::vector<hs_quantity> result;
  for (const Quantity& q : quantities) {
    result.push_back(
        {q.name.c_str(), q.element_bytes, static_cast<int32_t>(q.type), static_cast<int32_t>(q.centring), {}});
    copy3(q.edges, result.back().edges);
  }
  return result;
}

std::vector<hs_sides> widths_to_c(const std::vector<ExchangeSpec::Sides>& widths) {
  std::vector<hs_sides> result;
  for (const auto& sides : widths) {
    copy3(sides.low, result.emplace_back().low);
    copy3(sides.high, result.back().high);
  }
  return result;
}

hs_plan flatten(Plan&& plan) {
  hs_plan flat{std::move(plan), {}, {}, {}};
  for (const Message& m : flat.plan.messages) {
    flat.messages.push_back({m.bytes, m.out, m.peer, m.tag, m.round, static_cast<int32_t>(flat.regions.size()),
                             static_cast<int32_t>(m.regions.size())});
    for (const Region& r : m.regions) flat.regions.push_back({to_c(r.box), r.quantity, 0});
  }
  for (const Copy& copy : flat.plan.copies) flat.copies.push_back(to_c(copy));
  return flat;
}

/// What one rank adds to the totals.
void add(hs_totals& totals, const Plan& plan) {
  std::set<int> peers;
  std::int64_t bytes = 0;
  std::int32_t messages = 0;
  for (const Message& m : plan.messages) {
    if (!m.out) continue;
    peers.insert(m.peer);
    bytes += m.bytes;
    ++messages;
    totals.largest_message_bytes = std::max(totals.largest_message_bytes, m.bytes);
  }
  for (const Copy& copy : plan.copies)
    totals.copy_bytes += copy.to.volume() * plan.spec.quantities[copy.quantity].element_bytes;
  totals.copies += static_cast<std::int64_t>(plan.copies.size());
  totals.messages += messages;
  totals.bytes += bytes;
  const std::int64_t cells = plan.cells[0] * plan.cells[1] * plan.cells[2];
  const auto range = [first = plan.rank == 0](auto& low, auto& high, auto value) {
    low = first ? value : std::min(low, value);
    high = first ? value : std::max(high, value);
  };
  if (plan.rank == 0 || bytes > totals.rank_bytes_max) totals.worst_rank = plan.rank;
  range(totals.rank_bytes_min, totals.rank_bytes_max, bytes);
  range(totals.rank_cells_min, totals.rank_cells_max, cells);
  range(totals.rank_messages_min, totals.rank_messages_max, messages);
  range(totals.rank_peers_min, totals.rank_peers_max, static_cast<std::int32_t>(peers.size()));
  ++totals.ranks;
}

}  // namespace

}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

void hs_spec_init(hs_spec* spec) {
  static const ExchangeSpec defaults;
  static const std::vector<hs_quantity> quantities = quantities_to_c(defaults.quantities);
  if (spec) *spec = spec_to_c(defaults, quantities, {});
}

hs_status hs_spec_of(const hs_choice* choice, int32_t stage, hs_spec* spec) {
  return guarded([&] {
    thread_local ExchangeSpec owned;
    thread_local std::vector<hs_quantity> quantities;
    thread_local std::vector<hs_sides> widths;
    Choice c = needed(choice, "choice").choice;
    if (const std::string reason = illegal(c); !reason.empty()) throw UsageError(reason);
    c.reorder = Reorder::none;  // takes time to find, and does not matter here
    const Candidate candidate(c);
    stage_of(candidate.step, stage);
    owned = exchange_spec(candidate, stage);
    quantities = quantities_to_c(owned.quantities);
    widths = widths_to_c(owned.widths);
    needed(spec, "spec") = spec_to_c(owned, quantities, widths);
  });
}

hs_status hs_plan_create(const hs_layout* layout, int32_t rank, const hs_spec* spec, hs_plan** plan) {
  return guarded([&] {
    const Layout& l = needed(layout, "layout").layout;
    check_rank(l, rank);
    needed(plan, "plan") = keep(new hs_plan(flatten(make_plan(l, rank, from_c(spec)))));
  });
}

hs_status hs_plan_free(hs_plan* plan) { return release(plan, "plan"); }

hs_status hs_plan_get(const hs_plan* plan, hs_plan_data* data) {
  return guarded([&] {
    const hs_plan& from = needed(plan, "plan");
    const Plan& p = from.plan;
    hs_plan_data& result = needed(data, "data");
    result = {};
    result.rank = p.rank;
    result.dims = p.dims;
    result.rounds = p.rounds;
    copy3(p.own_neighbour, result.own_neighbour);
    copy3(p.cells, result.cells);
    for (int d = 0; d < 3; ++d)
      for (int side : {0, 1}) result.has_neighbour[d][side] = p.has_neighbour[d][side];
    result.bytes_out = p.bytes_out();
    result.messages_out = p.messages_out();
    result.message_count = static_cast<int32_t>(from.messages.size());
    result.region_count = static_cast<int32_t>(from.regions.size());
    result.copy_count = static_cast<int32_t>(from.copies.size());
    result.messages = from.messages.data();
    result.regions = from.regions.data();
    result.copies = from.copies.data();
  });
}

hs_status hs_plan_boxes(const hs_plan* plan, int32_t quantity, hs_box* owned, hs_box* allocated) {
  return guarded([&] {
    const Plan& p = needed(plan, "plan").plan;
    enumerator<int>(quantity, static_cast<int>(p.spec.quantities.size()), "quantity");
    needed(owned, "owned") = to_c(p.owned(quantity));
    needed(allocated, "allocated") = to_c(p.allocated(quantity));
  });
}

hs_status hs_plan_between(const hs_layout* layout, const hs_spec* spec, const int32_t* groups, int64_t* bytes) {
  return guarded([&] {
    const Layout& l = needed(layout, "layout").layout;
    needed(groups, "groups");
    const std::vector<int> group(groups, groups + l.size());
    const ExchangeSpec s = from_c(spec);
    std::int64_t sum = 0;
    for (int rank = 0; rank < l.size(); ++rank) sum += make_plan(l, rank, s).bytes_between(group);
    needed(bytes, "bytes") = sum;
  });
}

hs_status hs_plan_totals(const hs_layout* layout, const hs_spec* spec, hs_totals* totals) {
  return guarded([&] {
    const Layout& l = needed(layout, "layout").layout;
    const ExchangeSpec s = from_c(spec);
    hs_totals sum{};
    for (int rank = 0; rank < l.size(); ++rank) add(sum, make_plan(l, rank, s));
    needed(totals, "totals") = sum;
  });
}
