// Measuring one configuration: verify, warm up, repeat, reduce over ranks, one record.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "haloscope/rank/measure/request.hpp"
#include "haloscope/rank/watch/inject.hpp"
#include "haloscope/rank/watch/watchdog.hpp"

namespace haloscope {

/// One run of the rank program: what all its configurations share.
struct Session {
  MPI_Comm comm = MPI_COMM_WORLD;
  int rank = 0, size = 1;
  StatusBoard* board = nullptr;
  Watchdog* watchdog = nullptr;
  Fault* fault = nullptr;
  nlohmann::json environment;
  std::map<std::string, std::uint64_t> reference_checksums;  ///< by problem, so that each is computed once per run
};

/// Collective. @return the record (meaningful on rank 0), without launch data.
/// @throws Error if the configuration cannot run; all ranks throw alike.
nlohmann::json measure(Session& session, const Request& request);

}  // namespace haloscope
