// Steps of the C interface.
#include "haloscope/c/bridge.hpp"
#include "haloscope/core/app_json.hpp"

namespace haloscope::c {

const Stage& stage_of(const Step& step, std::int32_t stage) {
  return step.stages[enumerator<std::size_t>(stage, static_cast<int>(step.stages.size()), "stage")];
}

}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

hs_status hs_step_create_of(const hs_choice* choice, hs_step** step) {
  return guarded([&] {
    const Choice& c = needed(choice, "choice").choice;
    needed(step, "step") = keep(new hs_step{step_of(find_app(c.app), problem_of(c))});
  });
}

hs_status hs_step_create(int32_t dims, const char* json, hs_step** step) {
  return guarded([&] {
    if (dims < 1 || dims > 3) throw UsageError("a step has 1 to 3 dimensions, not " + std::to_string(dims));
    needed(step, "step") = keep(new hs_step{resolved(described_step(parsed(json, "json")), dims, "described")});
  });
}

hs_status hs_step_free(hs_step* step) { return release(step, "step"); }

hs_status hs_step_json(const hs_step* step, const char** json) {
  return guarded([&] {
    thread_local std::string result;
    result = to_json(needed(step, "step").step).dump();
    needed(json, "json") = result.c_str();
  });
}
