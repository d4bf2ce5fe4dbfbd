// Strategies: one string for the pattern of messages and the transport that moves them.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <string>
#include <vector>

#include "haloscope/extend/plan.hpp"

namespace haloscope {

/// A strategy `PATTERN[:option,...]/TRANSPORT[:option,...][+TRANSPORT[:option,...]]`, or `reference`, or
/// `auto[:option,...]` (short for `ordered/auto[:option,...]`). With `shared+OTHER`, messages inside a node go by
/// shared memory, messages between nodes by the other transport. Pattern options: "merged" (one message per peer),
/// "fields=all|type|none|serial|pipelined" (Merge), "self-first" (own-neighbour dimensions first), "corners" (always
/// send edges and corners). Transport options belong to the transport.
struct Strategy {
  Pattern pattern = Pattern::ordered;
  bool merged = false;
  bool self_first = false;
  bool corners = false;
  Merge fields = Merge::all;
  std::string transport = "p2p";
  std::vector<std::string> transport_options = {};
  std::string between = {};  ///< transport between nodes; "" = `transport` moves all messages
  std::vector<std::string> between_options = {};

  Strategy() = default;
  /// Parses a strategy. @throws UsageError for a malformed string or an unknown name, with the nearest valid names.
  Strategy(const std::string& text);  // implicit: a strategy is written as its string, and parsed once
  Strategy(const char* text) : Strategy(std::string(text)) {}
  bool operator==(const Strategy&) const = default;
  bool is_reference() const { return transport == "reference"; }
};

/// Returns the canonical string of a strategy; Strategy(to_string(s)) is s.
std::string to_string(const Strategy& strategy);

/// Sets the pattern, merging and dimension order of `spec` by a strategy; widths, quantities and needed corners stay.
void apply(const Strategy& strategy, const Layout& layout, ExchangeSpec& spec);

/// Returns true if programs for this strategy need ScheduleOptions::collective_rounds.
bool collective_rounds(const Strategy& strategy);
/// Returns true if the strategy accesses neighbours' fields directly, which must then be in memory that a node's
/// ranks share.
bool needs_shared_fields(const Strategy& strategy);
/// Returns true if the strategy is for fields in device memory.
bool moves_device_memory(const Strategy& strategy);
/// Returns true if one kernel of a device moves all messages of a round, see Program::signals.
bool signals(const Strategy& strategy);
/// Returns true if the threads of a rank call MPI concurrently.
bool calls_concurrently(const Strategy& strategy);
/// Returns the reason why this strategy cannot move single messages (TransportTraits::single_messages); empty if it
/// can.
std::string refused_single_messages(const Strategy& strategy);
/// Returns the probes of this MPI that a strategy relies on, for both transports of a pair.
std::vector<std::string> probes_of(const Strategy& strategy);

/// Returns the strategies for fields in device memory that a glob is matched against.
std::vector<std::string> device_strategy_names();
/// Returns the strategies for fields in host memory that a glob such as `ordered/*` is matched against, `reference`
/// first.
std::vector<std::string> strategy_names();

}  // namespace haloscope
