// Micro-benchmarks: single messages between pairs of ranks, rings, collective operations, memory and caches. Messages
// go through the same Link interface, plans and programs as every exchange.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace haloscope {

struct Session;
struct MicroPattern;

struct MicrobenchRequest {
  std::string id;
  std::vector<const MicroPattern*> patterns;  ///< at least one, all of one kind
  std::string transport = "p2p";              ///< of messages, with options, as after the slash of a strategy
  int gap = 0;                                ///< distance of the two ranks of a pair
  int pairs = 0;                              ///< that are busy concurrently
  int nodes = 0;                              ///< emulated nodes, ranks in blocks; 0: as MPI reports
  int threads = 1;                            ///< of patterns of memory
  bool fresh = false;                         ///< senders write their data before each transfer, which is not counted
  std::vector<std::int64_t> bytes;            ///< sizes; empty: 1 B to 4 MiB in powers of two
  double seconds = 0.01;                      ///< length of one sample
  int samples = 5;                            ///< per size and thing measured
};

/// @param json  {"patterns", "transport", "gap", "pairs", "nodes", "threads", "fresh", "bytes", "seconds",
///              "repetitions"}. Defaults are those above, all pairs with a gap of half the ranks, and the patterns
///              pingpong, pingping, batch and batches.
/// @throws UsageError.
MicrobenchRequest microbench_request(const nlohmann::json& json, const std::string& id, int ranks);

/// Runs a micro-benchmark. Collective. All ranks of a pattern work concurrently; ranks of idle pairs wait.
/// @return the record (meaningful on rank 0), without launch data. Its "sizes" have one entry per size with "bytes"
///         and, as lists of samples in seconds, the results of the patterns (microbench in data/record.schema.json).
/// @throws Error as the transport does when it is opened.
nlohmann::json microbench(Session& session, const MicrobenchRequest& request);

}  // namespace haloscope
