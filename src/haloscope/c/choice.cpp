// Errors, names and choices of the C interface.
#include "haloscope/c/bridge.hpp"
#include "haloscope/core/names.hpp"

namespace haloscope::c {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

Choice from_c(const hs_choice* given) {
  hs_choice defaults;
  hs_choice_init(&defaults);
  const hs_choice c = versioned(given, defaults, "hs_choice");
  Choice choice;
  choice.app = text(c.app);
  choice.form = text(c.form);
  choice.real = text(c.real);
  choice.process_grid = text(c.process_grid);
  choice.strategy = text(c.strategy);
  choice.schedule = text(c.schedule);
  choice.region = text(c.region);
  choice.sharing = text(c.sharing);
  choice.grid.dims = c.dims;
  copy3(c.cells, choice.grid.cells);
  copy3(c.periodic, choice.grid.periodic);
  choice.ranks = c.ranks;
  choice.threads = c.threads;
  choice.depth = c.depth;
  choice.nodes = c.nodes;
  choice.placement = text(c.placement);
  choice.device = text(c.device);
  choice.box = c.box;
  choice.graph = c.graph != 0;
  return choice;
}

namespace {

std::vector<std::string> names_of(const std::string& kind, const std::string& of) {
  if (kind == "strategies") return strategy_names();
  if (kind == "device-strategies") return device_strategy_names();
  if (kind == "schedules") return schedule_names();
  if (kind == "regions") return region_names();
  if (kind == "rules") return process_grid_rules();
  if (kind == "forms") return find_app(of).forms;
  if (kind == "reals") return find_app(of).reals;
  if (kind == "blocked-forms") return find_app(of).blocked_forms;
  const std::vector<std::string> kinds{
      "strategies", "device-strategies", "schedules", "regions", "apps", "rules", "forms", "reals", "blocked-forms"};
  if (kind != "apps") throw UsageError(unknown_name("kind of names", kind, kinds));
  std::vector<std::string> apps;
  for (const AppInfo& app : app_infos()) apps.push_back(app.name);
  return apps;
}

}  // namespace

}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

const char* hs_version(void) { return HALOSCOPE_VERSION; }
int32_t hs_abi(void) { return HS_ABI; }
const char* hs_last_error(void) { return last_error().c_str(); }

hs_status hs_names(const char* kind, const char* of, const char* const** names, int32_t* count) {
  return guarded([&] {
    thread_local std::vector<std::string> owned;
    thread_local std::vector<const char*> pointers;
    owned = names_of(text(kind), text(of));
    pointers.clear();
    for (const std::string& name : owned) pointers.push_back(name.c_str());
    needed(names, "names") = pointers.data();
    needed(count, "count") = static_cast<int32_t>(pointers.size());
  });
}

hs_status hs_app_find(const char* name, hs_app* app) {
  return guarded([&] {
    const AppInfo& info = find_app(text(name));
    needed(app, "app") = {info.name.c_str(),        info.dims, info.radius, info.box_stencil, info.flops_per_point,
                          info.default_rule.c_str()};
  });
}

hs_status hs_strategy_canonical(const char* given, const char** canonical) {
  return guarded([&] {
    thread_local std::string result;
    result = to_string(parse_strategy(text(given)));
    needed(canonical, "canonical") = result.c_str();
  });
}

hs_status hs_strategy_shared_fields(const char* given, int32_t* shared) {
  return guarded([&] { needed(shared, "shared") = needs_shared_fields(parse_strategy(text(given))); });
}

void hs_choice_init(hs_choice* choice) {
  static const Choice defaults;
  if (!choice) return;
  *choice = {};
  choice->struct_size = sizeof(hs_choice);
  choice->app = defaults.app.c_str();
  choice->form = defaults.form.c_str();
  choice->real = defaults.real.c_str();
  choice->process_grid = defaults.process_grid.c_str();
  choice->strategy = defaults.strategy.c_str();
  choice->schedule = defaults.schedule.c_str();
  choice->region = defaults.region.c_str();
  choice->sharing = defaults.sharing.c_str();
  copy3(defaults.grid.cells, choice->cells);
  copy3(defaults.grid.periodic, choice->periodic);
  choice->dims = defaults.grid.dims;
  choice->ranks = defaults.ranks;
  choice->threads = defaults.threads;
  choice->depth = defaults.depth;
  choice->nodes = defaults.nodes;
  choice->placement = defaults.placement.c_str();
  choice->device = defaults.device.c_str();
  choice->box = defaults.box;
  choice->graph = defaults.graph;
}

hs_status hs_illegal(const hs_choice* choice, const char** reason) {
  return guarded([&] {
    thread_local std::string result;
    result = illegal(from_c(choice));
    needed(reason, "reason") = result.c_str();
  });
}

hs_status hs_choice_nodes(const hs_choice* choice, int32_t* nodes) {
  return guarded([&] {
    const Choice c = from_c(choice);
    const std::vector<int> node_of = emulated_nodes(c.ranks, c.nodes, c.placement);
    needed(nodes, "nodes");
    for (int rank = 0; rank < c.ranks; ++rank) nodes[rank] = node_of.empty() ? 0 : node_of[rank];
  });
}
