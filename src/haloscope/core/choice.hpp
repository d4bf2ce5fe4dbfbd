// A choice: everything a user picks for one run. Names and strings are the same in C++, Python, CLI, records and plots.
#pragma once

#include <string>
#include <vector>

#include "haloscope/core/program.hpp"

namespace haloscope {

/// A parsed strategy string `PATTERN[:option,...]/TRANSPORT[:option,...][+TRANSPORT[:option,...]]`, or `reference`.
/// With `shared+OTHER`, messages inside a node go by shared memory and those between nodes by the other transport.
/// Pattern options: "merged" (one message per peer), "fields=all|type|none", "self-first" (own-neighbour dimensions
/// first), "corners" (always send edges and corners). Transport options belong to the transport.
struct Strategy {
  Pattern pattern = Pattern::ordered;
  bool merged = false;
  bool self_first = false;
  bool corners = false;
  Merge fields = Merge::all;
  std::string transport = "p2p";
  std::vector<std::string> transport_options;
  std::string between;  ///< transport between nodes; "" = `transport` moves all messages
  std::vector<std::string> between_options;
};

/// @throws UsageError for a malformed string or an unknown name, with the nearest valid names.
Strategy parse_strategy(const std::string& text);
/// The canonical string of a strategy; parse_strategy(to_string(s)) gives s back.
std::string to_string(const Strategy& strategy);

/// Put a strategy's pattern, merging and dimension order into `spec`; widths, quantities and needed corners stay.
void apply(const Strategy& strategy, const Layout& layout, ExchangeSpec& spec);

/// Options that a transport cannot be given together (or, if it is one word, at all), and what to do about it.
struct OptionRule {
  std::vector<std::string> words;
  std::string reason;
};

/// What programs and legality must know of a transport; what it costs and how it works is its own business.
struct TransportTraits {
  std::string name;
  std::vector<std::string> options;  ///< words after the colon, each may be given
  std::vector<std::string> listed;   ///< option lists that appear in strategy_names()
  /// Every rank takes part in every round (fences, neighbourhood collectives), also one that has no message in it.
  bool collective_rounds = false;
  std::vector<std::string> collective_options = {};  ///< ... as it does with any of these options
  /// Can move one message of a round at a time, in an order that differs per rank, as a pipeline does ...
  bool single_messages = true;
  std::string single_option = {};  ///< ... but only with this option; empty: with any
  std::vector<OptionRule> rules = {};
};
const std::vector<TransportTraits>& transport_traits();

/// Why a transport cannot be given these option words together; empty when it can.
/// @throws UsageError for an unknown transport.
std::string refused_options(const std::string& transport, const std::vector<std::string>& given);
/// Whether programs for this strategy need ScheduleOptions::collective_rounds.
bool collective_rounds(const Strategy& strategy);
/// Whether the strategy reads or writes neighbours' fields, which then must be in memory that a node's ranks share.
bool needs_shared_fields(const Strategy& strategy);
/// Why this strategy cannot move single messages (TransportTraits::single_messages); empty when it can.
std::string refused_single_messages(const Strategy& strategy);

/// The strategies that a glob such as `ordered/*` is matched against, `reference` first.
const std::vector<std::string>& strategy_names();
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
  std::vector<std::string> blocked_forms;  ///< forms with a temporally blocked kernel
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
/// @throws UsageError as Layout does.
Layout make_layout(const Choice& choice);

}  // namespace haloscope
