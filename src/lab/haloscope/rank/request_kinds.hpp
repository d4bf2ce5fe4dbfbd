// The kinds of requests that this program serves.
#pragma once

#include "haloscope/request_kind.hpp"

namespace haloscope {

/// The kinds that are built in.
const RequestKind& measurement_kind();
const RequestKind& microbench_kind();
const RequestKind& calibration_kind();
const RequestKind& pace_kind();

/// Adds the kinds that haloscope_add_request_kind() has compiled into this build.
void add_request_kinds_of_build();

/// @throws UsageError naming the nearest valid names.
const RequestKind& find_request_kind(const std::string& name);

}  // namespace haloscope
