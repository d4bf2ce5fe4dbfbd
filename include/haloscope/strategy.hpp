// Strategies: how messages are formed and which transport moves them, as one string; what is known of each transport.
#pragma once

#include <string>
#include <vector>

#include "haloscope/plan.hpp"

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
  bool device = false;  ///< moves fields in device memory, others those in host memory
};
const std::vector<TransportTraits>& transport_traits();

/// The option words of a transport, also of the reference, which has none.
/// @throws UsageError for an unknown transport.
std::vector<std::string> transport_options(const std::string& transport);
/// @throws UsageError for an unknown transport, for a word that it does not have and for words that exclude each other.
void check_options(const std::string& transport, const std::vector<std::string>& given);
/// Whether programs for this strategy need ScheduleOptions::collective_rounds.
bool collective_rounds(const Strategy& strategy);
/// Whether the strategy reads or writes neighbours' fields, which then must be in memory that a node's ranks share.
bool needs_shared_fields(const Strategy& strategy);
/// Whether the strategy is for fields in device memory.
bool moves_device_memory(const Strategy& strategy);
/// Why this strategy cannot move single messages (TransportTraits::single_messages); empty when it can.
std::string refused_single_messages(const Strategy& strategy);

/// The strategies for fields in device memory that a glob is matched against.
const std::vector<std::string>& device_strategy_names();
/// The strategies for fields in host memory that a glob such as `ordered/*` is matched against, `reference` first.
const std::vector<std::string>& strategy_names();

}  // namespace haloscope
