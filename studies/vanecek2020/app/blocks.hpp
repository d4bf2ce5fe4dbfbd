// Measuring an exchange of blocks: set-up, warm-up, tests of some iterations each, one record.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "haloscope/rank/measure/measure.hpp"
#include "vanecek2020/app/flow.hpp"

namespace haloscope {

struct BlocksRequest {
  std::string id, device;
  BlocksContext context;  ///< without `comm`, `device` and `yield`
  int warmup = 3;         ///< iterations of each test that do not count
  int iterations = 10;    ///< of each test that do
  int repetitions = 5;    ///< tests
  bool timeline = false;  ///< keep the events of the last iteration
};

/// @param json  {"workload" (XS, S, M, L, XL), "bytes" (of each block, instead of the workload's), "threads", "type"
///              (of elements: double, float, int), "scheme", "sides", "variant", "device" (a back end, or auto),
///              "check" (sampled, full), "detail" (off, on, posting), "timeline", "warmup", "iterations",
///              "repetitions", "limit_s"}. Defaults are the values above, workload M, type double, scheme pairs, one
///              side, variant baseline and check sampled. @throws UsageError.
BlocksRequest blocks_request(const nlohmann::json& json, const std::string& id);

/// Returns the kind "blocks" of requests.
const RequestKind& blocks_kind();

/// Runs an exchange. Collective. @return the record (meaningful on rank 0), without launch data.
/// @throws UsageError, UnavailableError on all ranks; Error if values were wrong or a run was stuck.
nlohmann::json run_blocks(Session& session, const BlocksRequest& request);

}  // namespace haloscope
