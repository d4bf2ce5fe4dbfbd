// Calibration: the cost of single pieces of a step, measured through the code of real steps. One point per
// configuration.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "haloscope/rank/measure/request.hpp"

namespace haloscope {

struct Session;

/// One point. `part` says what is measured, `plain` says of which choice:
///   kernel     each sweep of a block of --cells by every rank at once, each on its own block: sweep_s
///   pack       packing and unpacking one message of a block of --cells, by dimension, after a sweep of it; copying
///              between the block's own two sides: pack_s, unpack_s, copy_s. By every rank at once, --threads each
///   exchange   the whole exchange of `fields` fields between all ranks. Sent cells have just been written, received
///              ones are read; exchange_s leaves out the time that the writing and reading alone take
///   allreduce  a sum of one number over all ranks: allreduce_s; one number of every rank to every rank: allgather_s
///   device-kernel  a step's sweep of a block of --cells on --device by every rank at once: sweep_s; two of them on two
///              streams: two_sweeps_s
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
