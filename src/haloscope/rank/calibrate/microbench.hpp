// Micro-benchmarks of a transport: latency, bandwidth and message rate of single messages between pairs of ranks,
// through the same Link interface, plans and programs as every exchange.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace haloscope {

struct Session;

struct MicrobenchRequest {
  std::string id;
  std::string transport = "p2p";    ///< with options, as after the slash of a strategy
  int nodes = 0;                    ///< emulated nodes, ranks in blocks; 0: as MPI says
  bool fresh = false;               ///< senders write what they send before each transfer, which is not counted
  std::vector<std::int64_t> bytes;  ///< message sizes; empty: 1 B to 4 MiB in powers of two
  double seconds = 0.01;            ///< length of one sample
  int samples = 5;                  ///< per size and kind of transfer
};

/// @param json  {"transport", "nodes", "fresh", "bytes", "seconds", "repetitions"}, each with the default above.
/// @throws UsageError.
MicrobenchRequest microbench_request(const nlohmann::json& json, const std::string& id, int ranks);

/// Rank i of the first half is paired with rank i of the second; all pairs run at once. Collective.
/// @return the record (meaningful on rank 0), without launch data. Per message size, each as a list of samples:
///         latency_s   half a round trip of one message;
///         exchange_s  one message each way at the same time;
///         batch_s     `window` messages one way, then a reply of one byte;
///         both_batch_s  `window` messages each way.
/// @throws Error as the transport does when it is opened.
nlohmann::json microbench(Session& session, const MicrobenchRequest& request);

}  // namespace haloscope
