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
  for (const RequestKind& known : known_kinds())
    if (known.name == kind.name)
      throw UsageError("kind of request '" + kind.name + "' already exists; give yours another name");
  if (kind.name.empty() || kind.serve == nullptr)
    throw UsageError("a kind of request needs a name and a function that serves it");
  known_kinds().push_back(kind);
}

const RequestKind& find_request_kind(const std::string& name) {
  std::vector<std::string> names;
  for (const RequestKind& kind : known_kinds()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw UsageError(unknown_name("kind of request", name, names));
}

}  // namespace haloscope
