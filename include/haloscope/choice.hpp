// A choice: everything a user picks for one run. Names and strings are the same in C++, Python, CLI, records and plots.
#pragma once

#include <string>
#include <vector>

#include "haloscope/program.hpp"
#include "haloscope/strategy.hpp"

namespace haloscope {

const std::vector<std::string>& schedule_names();
const std::vector<std::string>& region_names();  // full, shrink, blocked

/// What an app is, as far as legality and plans need to know.
struct AppInfo {
  std::string name;
  int dims = 3;
  int radius = 1;
  bool box_stencil = false;
  double flops_per_point = 0;
  std::string default_rule = "white";
  std::vector<std::string> forms;          ///< kernel forms, the default first
  std::vector<std::string> reals;          ///< "f64", "f32"
  std::vector<std::string> blocked_forms;  ///< forms with a temporally blocked kernel of the CPU
  int device_levels = 1;  ///< time steps that kernels for devices fuse at most; 0: it has none for them
};
const std::vector<AppInfo>& app_infos();
/// @throws UsageError naming the nearest valid names.
const AppInfo& find_app(const std::string& name);

/// One point of the space of choices.
struct Choice {
  std::string app = "advection3d";
  std::string form;  ///< "" = the app's default
  std::string real = "f64";
  GridSpec grid;
  int ranks = 1;
  std::string process_grid;  ///< rule or explicit; "" = the app's default rule
  int threads = 1;
  std::string strategy = "ordered/p2p";
  std::string schedule = "bulk";
  int depth = 1;
  std::string region = "full";
  std::string sharing = "guided";
  int nodes = 0;                    ///< nodes that the ranks are split into; 0: the real ones, whatever they are
  std::string placement = "block";  ///< ranks to emulated nodes: "block" or "round-robin"
  int box = 1;                      ///< schedules box and box-overlap: layers of the host around the device's block
  bool graph = false;               ///< device: each program is launched as one captured piece of work
  std::string device;               ///< back end whose devices hold the fields: cuda, hip, host; "": none, the CPU
};

/// Node of each rank when `ranks` ranks are split into `nodes` nodes as evenly as possible; empty for nodes = 0.
/// @param placement  "block" (neighbouring ranks together) or "round-robin".
/// @throws UsageError for another placement, or for fewer ranks than nodes.
std::vector<int> emulated_nodes(int ranks, int nodes, const std::string& placement);

/// The one legality function: empty when the choice can run, else the reason and what to do about it.
/// Pure and local. Does not know what this machine's MPI lacks (that is UnavailableError when it is opened).
std::string illegal(const Choice& choice);

/// The exchange that a choice asks for: widths = depth x radius, corners where stencil or depth need them.
/// @throws UsageError if the choice is not legal.
ExchangeSpec exchange_spec(const Choice& choice);
/// Whether messages move fields of a device; in a block in a box they pass between cells of the host.
bool messages_on_device(const Choice& choice);
/// What a schedule reads of a legal choice, for programs of its whole depth; all else as ScheduleOptions has it.
ScheduleOptions schedule_options(const Choice& choice);
/// @throws UsageError as Layout does.
Layout make_layout(const Choice& choice);

}  // namespace haloscope
