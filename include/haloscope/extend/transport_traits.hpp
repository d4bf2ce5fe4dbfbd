// Properties of transports that programs, legality and help texts use, without their implementations. No MPI.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace haloscope {

/// Options that exclude each other (or, if it is one word, that cannot be used at all), and the remedy.
struct OptionRule {
  std::vector<std::string> words;
  std::string reason;
};
/// Returns rules by which any two of these words exclude each other.
std::vector<OptionRule> one_of(const std::vector<std::string>& words, const std::string& reason);

/// The probes (`haloscope-rank --probe list`) that an MPI must pass for a transport to work.
struct ProbeNeeds {
  std::vector<std::string> always = {};
  std::map<std::string, std::vector<std::string>> with = {};  ///< by option word: needed with it
  std::vector<std::string> without = {};                      ///< ... and with none of those words
};

/// An option that takes a number: `chunks=4`.
struct NumberOption {
  std::string name;
  int least = 1, most = 1;
};

struct TransportTraits {
  std::string name;
  std::string summary;                     ///< one sentence for help texts
  std::string colour = "#777777";          ///< in figures
  std::vector<std::string> options = {};   ///< optional words after the colon
  std::vector<NumberOption> numbers = {};  ///< ... and these with a number
  std::vector<std::string> listed = {""};  ///< option lists that appear in strategy_names()
  std::vector<OptionRule> rules = {};
  /// Every rank takes part in every round (fences, neighbourhood collectives), even a rank without messages in it.
  bool collective_rounds = false;
  std::vector<std::string> collective_options = {};  ///< ... also set by any of these options
  /// Can move one message of a round at a time, in an order that differs per rank, as a pipeline does ...
  bool single_messages = true;
  std::string single_option = {};  ///< ... but only with this option; empty: with any
  bool device = false;             ///< moves fields in device memory; false: in host memory
  bool staged = false;             ///< ... through host memory
  bool has_places = false;         ///< ... and messages have an address in device memory that sweeps can access
  bool signals = false;            ///< ... by one kernel a round, see Program::signals
  /// Accesses neighbours' fields directly, which must then be in memory that a node's ranks share ...
  bool shared_fields = false;
  std::string private_option = {};  ///< ... but not with this option
  bool inside_nodes = false;        ///< reaches ranks of the same node only; joined with another as `NAME+OTHER`
  bool concurrent_calls = false;    ///< several threads of a rank call MPI
  ProbeNeeds needs = {};
};

/// Returns all transports, in the order of help texts: the transports of this library, then added ones.
const std::vector<const TransportTraits*>& transport_traits();
/// Returns the traits of a transport. @throws UsageError naming the nearest valid names.
const TransportTraits& find_traits(const std::string& name);
/// Registers a transport for strategies; add_transport() of transport.hpp does this. `traits` must live until the
/// program ends.
/// @throws UsageError for a name that is taken.
void add_traits(const TransportTraits& traits);

/// Checks options. @throws UsageError for an unknown transport, for a word that it lacks and for words that exclude
/// each other.
void check_options(const std::string& transport, const std::vector<std::string>& words);
/// Returns the number of an option in checked options, `usual` where they do not name it.
int number_of(const std::vector<std::string>& words, const std::string& option, int usual);
/// Returns a transport's options in the form of help texts: `pinned`, `chunks=1..16`.
std::vector<std::string> option_texts(const TransportTraits& traits);

}  // namespace haloscope
