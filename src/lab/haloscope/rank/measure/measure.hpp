// Measuring one configuration: verify, warm up, repeat, reduce over ranks, one record.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "haloscope/rank/measure/request.hpp"
#include "haloscope/rank/watch/inject.hpp"
#include "haloscope/rank/watch/watchdog.hpp"
#include "haloscope/request_kind.hpp"

namespace haloscope {

/// Collective. @return the record (meaningful on rank 0), without launch data.
/// @throws Error if the configuration cannot run; all ranks throw alike.
nlohmann::json measure(Session& session, const Request& request);

}  // namespace haloscope
