// Calibration: the cost of single pieces of a step, measured through the code of real steps. One point per
// configuration.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "haloscope/rank/measure/request.hpp"

namespace haloscope {

struct Session;

/// One point. `part` is the kind of measurement, `plain` has the measured choice:
///   kernel     each sweep of a block of --cells by all ranks concurrently, each on a separate block: sweep_s
///   pack       packing and unpacking one message of a block of --cells, by dimension, after a sweep of it; copying
///              between the block's two sides: pack_s, unpack_s, copy_s. By all ranks concurrently, --threads each
///   exchange   the whole exchange of `fields` fields between all ranks. Sent cells have just been written, received
///              ones are read; exchange_s excludes the time of the writing and reading alone
///   allreduce  a sum of one number over all ranks: allreduce_s; one number of every rank to every rank: allgather_s
///   device-kernel  a step's sweep of a block of --cells on --device by all ranks concurrently: sweep_s; two of them on
///              two streams: two_sweeps_s
///   device-copy  the messages of one round of such a block: packing, unpacking, copies to and from host memory, the
///              host's time to hand an operation to the device, and its delay in noticing the operation's end
struct CalibrateRequest {
  std::string part;
  int fields = 1;
  Request plain;
};

/// @param json  {"part", "fields", ...}, the rest as for a measurement. @throws UsageError.
CalibrateRequest calibrate_request(const nlohmann::json& json, const std::string& id, int ranks);

/// Collective. @return the record (meaningful on rank 0), without launch data: `points`, each with its counts and the
/// samples of each thing measured, seconds, the slowest rank's.
/// @throws Error as the transport does when it is opened.
nlohmann::json calibrate(Session& session, const CalibrateRequest& request);

}  // namespace haloscope
