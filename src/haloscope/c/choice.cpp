// Errors and choices of the C interface.
#include <cstdio>
#include <new>

#include "haloscope/c/bridge.hpp"
#include "haloscope/core/choice_fields.hpp"
#include "haloscope/core/parsed_json.hpp"
#include "haloscope/core/text.hpp"

namespace haloscope::c {

namespace {

/// A fixed text where no memory was left for the whole one.
struct Failure {
  std::string text;
  ShortText fixed{};
};

Failure& last_failure() {
  thread_local Failure failure;
  return failure;
}

}  // namespace

void keep_failure(const char* prefix, const char* text) noexcept {
  Failure& last = last_failure();
  last.fixed[0] = '\0';
  try {
    last.text.assign(prefix).append(text);
  } catch (const std::bad_alloc&) {
    std::snprintf(last.fixed.data(), last.fixed.size(), "%s%s", prefix, text);
  }
}

const char* kept_failure() noexcept {
  const Failure& last = last_failure();
  return last.fixed[0] != '\0' ? last.fixed.data() : last.text.c_str();
}

nlohmann::json parsed(const char* json, const char* name) {
  const std::string given = text(json);
  return parsed_json(given, std::string("argument '") + name + "', " + shown(given) + ",");
}

}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

const char* hs_version(void) { return HALOSCOPE_VERSION; }
int32_t hs_abi(void) { return HS_ABI; }
const char* hs_last_error(void) { return kept_failure(); }

hs_status hs_choice_create(const char* json, hs_choice** choice) {
  return guarded([&] { needed(choice, "choice") = keep(new hs_choice{choice_from_json(parsed(json, "json"))}); });
}

hs_status hs_choice_free(hs_choice* choice) { return release(choice, "choice"); }

hs_status hs_choice_json(const hs_choice* choice, const char** json) {
  return guarded([&] {
    thread_local std::string result;
    result = to_json(needed(choice, "choice").choice).dump();
    needed(json, "json") = result.c_str();
  });
}

hs_status hs_illegal(const hs_choice* choice, const char** reason) {
  return guarded([&] {
    thread_local std::string result;
    result = illegal(needed(choice, "choice").choice);
    needed(reason, "reason") = result.c_str();
  });
}

hs_status hs_choice_nodes(const hs_choice* choice, int32_t* nodes) {
  return guarded([&] {
    const Choice& c = needed(choice, "choice").choice;
    const std::vector<int> node_of = emulated_nodes(c.ranks, c.nodes, c.placement);
    needed(nodes, "nodes");
    for (int rank = 0; rank < c.ranks; ++rank) nodes[rank] = node_of.empty() ? 0 : node_of[rank];
  });
}
