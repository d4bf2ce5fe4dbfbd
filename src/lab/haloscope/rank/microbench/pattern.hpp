// A pattern of a micro-benchmark: its messages, or its loop over memory.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "haloscope/rank/calibrate/sampler.hpp"
#include "haloscope/rank/microbench/microbench.hpp"
#include "haloscope/rank/microbench/transfer.hpp"

namespace haloscope {

/// The common data of the patterns of one micro-benchmark.
struct Bench {
  Session& session;
  const MicrobenchRequest& request;
  Strategy strategy;                 ///< of messages
  std::unique_ptr<PeerGroup> peers;  ///< this rank's pair, or the ring of all ranks
  bool right = true;                 ///< becomes false when something arrives or is computed wrong

  Sampler sampler() const { return {session, request.seconds, request.samples, peers ? peers->partner() : -1}; }
};

struct MicroPattern {
  enum class Kind { pairs, onesided, ring, collective, memory };
  const char* name;
  Kind kind;
  /// Collective. Adds the samples of one size to `entry`, an object with "bytes"; one key per thing measured.
  void (*measure)(Bench& bench, std::int64_t bytes, nlohmann::json& entry);
};

/// Returns the number of messages of one size in a batch.
int window_of(std::int64_t bytes);

/// @throws UsageError with the names that are known.
const MicroPattern& find_micro_pattern(const std::string& name);

}  // namespace haloscope
