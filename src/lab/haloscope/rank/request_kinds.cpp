#include "haloscope/rank/request_kinds.hpp"

#include <deque>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

std::deque<RequestKind>& known_kinds() {
  static std::deque<RequestKind> all{measurement_kind(), microbench_kind(), calibration_kind(), pace_kind()};
  return all;
}

}  // namespace

void add_request_kind(const RequestKind& kind) {
  require_new("kind of request", known_kinds(), kind.name);
  if (kind.name.empty() || kind.serve == nullptr)
    throw UsageError("a kind of request needs a name and a function that serves it");
  known_kinds().push_back(kind);
}

const RequestKind& find_request_kind(const std::string& name) {
  return find_named("kind of request", known_kinds(), name);
}

}  // namespace haloscope
