// Kinds of requests that a program of rank_main() serves in addition to the built-in ones.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <mpi.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace haloscope {

class PaceMeter;
class StatusBoard;
class Watchdog;
struct Fault;

/// One run of the program, which all its requests share.
struct Session {
  MPI_Comm comm = MPI_COMM_WORLD;
  int rank = 0, size = 1;
  StatusBoard* board = nullptr;
  Watchdog* watchdog = nullptr;
  PaceMeter* pace = nullptr;
  Fault* fault = nullptr;
  nlohmann::json environment;                                ///< of the machine and the build, for records
  std::map<std::string, std::uint64_t> reference_checksums;  ///< by problem, so that each is computed once per run
};

/// A kind of request: lines {"kind": name, "id": ..., "request": {...}} of a requests file.
struct RequestKind {
  std::string name;
  /// Collective. @return the record (meaningful on rank 0), without launch data. Its member "verification", if any,
  /// has a "status"; "failed" ends the program with exit code 1.
  /// @throws UsageError or UnavailableError on all ranks: the request is skipped, with the reason in its record; any
  /// other Error ends the program.
  nlohmann::json (*serve)(Session&, const nlohmann::json& request, const std::string& id) = nullptr;
  /// Returns the reason why a request cannot run anywhere, "" when it can. Calls no MPI. @throws UsageError, with the
  /// reason too.
  /// Null: every request can run.
  std::string (*refuse)(const nlohmann::json& request) = nullptr;
  /// Returns the thread level of MPI that a request needs. @throws any exception for a request that is not valid.
  /// Null: MPI_THREAD_FUNNELED.
  int (*thread_level)(const nlohmann::json& request) = nullptr;
  /// Returns the minimum duration of a request in seconds; 0: unknown. Null: unknown.
  double (*least_seconds)(const nlohmann::json& request) = nullptr;
};

/// Registers a kind of request. Call it before rank_main().
/// @throws UsageError for a name that is taken and for a kind without `serve`.
void add_request_kind(const RequestKind& kind);

}  // namespace haloscope
