// Layouts, plans and programs for the bridge.
#include <algorithm>
#include <set>

#include "bindings/python/bridge.h"
#include "bindings/python/request.hpp"
#include "haloscope/core/app_json.hpp"
#include "haloscope/core/check.hpp"
#include "haloscope/core/choice_fields.hpp"
#include "haloscope/extend/schedule.hpp"
#include "haloscope/model/ranks.hpp"

namespace haloscope::bridge {

namespace {

/// One exchange of all ranks together. Bytes and messages are counted where they are sent.
struct Totals {
  std::int64_t ranks = 0, messages = 0, bytes = 0, copies = 0, copy_bytes = 0, largest_message_bytes = 0;
  std::int64_t rank_messages_min = 0, rank_messages_max = 0, rank_bytes_min = 0, rank_bytes_max = 0;
  std::int64_t rank_cells_min = 0, rank_cells_max = 0, rank_peers_min = 0, rank_peers_max = 0;
  std::int64_t worst_rank = 0;  ///< the first one that sends most bytes
};

}  // namespace

HALOSCOPE_MEMBERS(Totals, ranks, messages, bytes, copies, copy_bytes, largest_message_bytes, rank_messages_min,
                  rank_messages_max, rank_bytes_min, rank_bytes_max, rank_cells_min, rank_cells_max, rank_peers_min,
                  rank_peers_max, worst_rank);

namespace {

/// Adds one rank.
void add(Totals& totals, const Plan& plan) {
  std::set<int> peers;
  std::int64_t bytes = 0, messages = 0;
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
  const bool first = totals.ranks++ == 0;
  const auto range = [first](std::int64_t& low, std::int64_t& high, std::int64_t value) {
    low = first ? value : std::min(low, value);
    high = first ? value : std::max(high, value);
  };
  if (first || bytes > totals.rank_bytes_max) totals.worst_rank = plan.rank;
  range(totals.rank_bytes_min, totals.rank_bytes_max, bytes);
  range(totals.rank_cells_min, totals.rank_cells_max, plan.own_cells().volume());
  range(totals.rank_messages_min, totals.rank_messages_max, messages);
  range(totals.rank_peers_min, totals.rank_peers_max, static_cast<std::int64_t>(peers.size()));
}

/// The position of each rank in the process grid, x fastest.
std::vector<int> places_of(const Layout& layout) {
  std::vector<int> places;
  for (int rank = 0; rank < layout.size(); ++rank) {
    const auto at = layout.coords(rank);
    places.push_back(at[0] + layout.ranks()[0] * (at[1] + layout.ranks()[1] * at[2]));
  }
  return places;
}

/// @param sites  see make_layout(). Cost: O(1) where ranks are not reordered.
Json json_of_layout(const Choice& choice, const Sites& sites) {
  const Layout layout = make_layout(choice, sites);
  Json json{{"grid", json_of(layout.grid())}, {"ranks", layout.ranks()}};
  if (choice.reorder == Reorder::none) return json;
  std::vector<int> places = places_of(layout);
  if (!std::is_sorted(places.begin(), places.end())) json["places"] = std::move(places);
  return json;
}

int rank_of(const Json& request, const Layout& layout) {
  const int rank = value_of(request, "rank", -1);
  layout.require_rank(rank);
  return rank;
}

Json json_of_rank(const Layout& layout, int rank) {
  Json neighbours = Json::array();
  for (int z = -1; z <= 1; ++z)
    for (int y = -1; y <= 1; ++y)
      for (int x = -1; x <= 1; ++x) neighbours.push_back(layout.neighbour(rank, {x, y, z}));
  return {{"coords", layout.coords(rank)}, {"owned", json_of(layout.owned(rank))}, {"neighbours", neighbours}};
}

Json json_of_plan(const Plan& plan) {
  Json json = json_of(plan);
  json["traffic"] = json_of(model::traffic_of_messages(plan));
  json["owned"] = json["allocated"] = Json::array();
  for (int q = 0; q < static_cast<int>(plan.spec.quantities.size()); ++q) {
    json["owned"].push_back(json_of(plan.owned(q)));
    json["allocated"].push_back(json_of(plan.allocated(q)));
  }
  return json;
}

Program program_of(const Json& request, const Plan& plan, int dims) {
  const Schedule& schedule = find_schedule(value_of(request, "schedule", std::string()));
  const Step step = resolved(described_step(part_of(request, "step")), dims, "described");
  return schedule.make(stage_of(step, value_of(request, "stage", 0)), plan, options_of(request));
}

Json plan_of(const Json& request) {
  const Layout layout = layout_of(request);
  const int rank = rank_of(request, layout);
  Json json = json_of_rank(layout, rank);
  if (!request.contains("spec")) return json;
  const Plan plan = make_plan(layout, rank, spec_of(request));
  json["plan"] = json_of_plan(plan);
  if (request.contains("schedule")) json["program"] = json_of(program_of(request, plan, layout.dims()));
  return json;
}

Json totals_of(const Json& request, const std::int32_t* groups) {
  const Layout layout = layout_of(request);
  const ExchangeSpec spec = spec_of(request);
  const std::vector<int> group(groups, groups ? groups + layout.size() : groups);
  Totals totals;
  std::int64_t between = 0;
  for (int rank = 0; rank < layout.size(); ++rank) {
    const Plan plan = make_plan(layout, rank, spec);
    add(totals, plan);
    if (groups) between += plan.bytes_between(group);
  }
  Json json = json_of(totals);
  json["between"] = between;
  return json;
}

/// The programs of all ranks of a stage. `candidate` must outlive them.
StagePrograms stage_programs(const Candidate& candidate, int stage, const Json& request) {
  StagePrograms all{&candidate.step.stages[stage], exchanged(candidate, stage), {}, {}};
  const ScheduleOptions options = options_of(request, schedule_options(candidate, stage));
  const ExchangeSpec spec = exchange_spec(candidate, stage);
  for (int rank = 0; rank < candidate.layout.size(); ++rank) {
    all.plans.push_back(make_plan(candidate.layout, rank, spec));
    all.programs.push_back(candidate.choice.schedule->make(*all.stage, all.plans.back(), options));
  }
  return all;
}

std::string finding_of(const Json& request) {
  const Choice choice = choice_of(request);
  const Candidate candidate = legal_candidate(choice);
  std::vector<StagePrograms> all;
  for (int stage = 0; stage < static_cast<int>(candidate.step.stages.size()); ++stage)
    all.push_back(stage_programs(candidate, stage, request));
  return check_step(candidate.layout, candidate.step, all);
}

}  // namespace

}  // namespace haloscope::bridge

using namespace haloscope;
using namespace haloscope::bridge;
using bridge::guarded, c::needed;

hs_status hs_process_grid(const char* rule, int32_t ranks, int32_t dims, const int64_t cells[3], int32_t grid[3]) {
  return guarded([&] {
    GridSpec spec;
    spec.dims = dims;
    needed(cells, "cells");
    c::copy3(cells, spec.cells);
    needed(grid, "grid");
    const ProcessGrid result = process_grid(c::text(rule), ranks, spec);
    Layout(spec, result);  // more ranks than cells and empty grids are errors here too
    c::copy3(result, grid);
  });
}

hs_status hs_make_layout(const char* choice, const int32_t* node, const int32_t* socket, const char** json) {
  return answered(json, [&] {
    const Choice parsed = choice_from_json(request_of(choice, "choice"));
    const int ranks = std::max(0, parsed.ranks);
    Sites sites;
    if (node) sites = {{node, node + ranks}, {&needed(socket, "socket"), socket + ranks}};
    return json_of_layout(parsed, sites);
  });
}

hs_status hs_plan(const char* request, const char** json) {
  return answered(json, [&] { return plan_of(request_of(request, "request")); });
}

hs_status hs_find_peers(const char* request, int32_t count, const int32_t* ranks, int32_t* peers) {
  return guarded([&] {
    const Json parsed = request_of(request, "request");
    const Layout layout = layout_of(parsed);
    const Plan plan = make_plan(layout, rank_of(parsed, layout), spec_of(parsed));
    const model::PeerOffsets offsets(layout, plan);
    for (int32_t i = 0; i < count; ++i) {
      layout.require_rank((&needed(ranks, "ranks"))[i]);
      offsets.peers_of(ranks[i], &needed(peers, "peers") + i * static_cast<std::ptrdiff_t>(plan.messages.size()));
    }
  });
}

hs_status hs_add_up(const char* request, const int32_t* groups, const char** json) {
  return answered(json, [&] { return totals_of(request_of(request, "request"), groups); });
}

hs_status hs_check(const char* request, const char** finding) {
  return guarded([&] {
    thread_local std::string result;
    result = finding_of(request_of(request, "request"));
    needed(finding, "finding") = result.c_str();
  });
}
