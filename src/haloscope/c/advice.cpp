// Advice of the C interface: candidates, their ranking, the best of them.
#include "haloscope/c/bridge.hpp"
#include "haloscope/model/json.hpp"

/// Candidates of a choice, ranked.
struct hs_advice {
  using Handle = void;
  haloscope::Choice choice;
  haloscope::model::Advice advice;
};

using namespace haloscope;
using namespace haloscope::c;

namespace {

std::vector<int> depths_of(const int32_t* depths, int32_t count) {
  if (!depths) return model::usual_depths();
  if (count < 0) throw UsageError("a negative number of depths is not possible");
  return {depths, depths + count};
}

std::vector<Choice> listed(const Choice& choice, const char* among) {
  std::vector<Choice> found;
  for (const nlohmann::json& changes : parsed(among, "among")) found.push_back(model::changed(choice, changes));
  return found;
}

}  // namespace

hs_status hs_candidates(const hs_choice* choice, const int32_t* depths, int32_t depth_count, const char** json) {
  return guarded([&] {
    thread_local std::string result;
    const Choice& c = needed(choice, "choice").choice;
    nlohmann::json found = nlohmann::json::array();
    model::candidates_of(c, depths_of(depths, depth_count))(
        [&](const Choice& candidate) { found.push_back(model::changes_of(candidate, c)); });
    answer(result, found, json);
  });
}

hs_status hs_advice_create(const hs_choice* choice, const hs_profile* profile, const hs_setting* setting,
                           const int32_t* depths, int32_t depth_count, const char* among, int32_t samples,
                           hs_advice** advice) {
  return guarded([&] {
    const Choice& c = needed(choice, "choice").choice;
    const model::Candidates candidates =
        among ? model::candidates_of(listed(c, among)) : model::candidates_of(c, depths_of(depths, depth_count));
    hs_advice*& result = needed(advice, "advice");
    result =
        keep(new hs_advice{c, model::advise(candidates, needed(profile, "profile").profile, from_c(setting), samples)});
  });
}

hs_status hs_advice_json(const hs_advice* advice, const char** json) {
  return guarded([&] {
    thread_local std::string result;
    answer(result, to_json(needed(advice, "advice").advice), json);
  });
}

hs_status hs_advice_candidate(const hs_advice* advice, int32_t place, const char** json) {
  return guarded([&] {
    thread_local std::string result;
    const auto& [choice, found] = needed(advice, "advice");
    const auto number = enumerator<std::size_t>(place, static_cast<int>(found.candidates.size()), "candidate");
    const model::Prediction& prediction = found.candidates[number].prediction;
    nlohmann::json one = to_json(prediction);
    one["changes"] = model::changes_of(prediction.choice, choice);
    answer(result, one, json);
  });
}

hs_status hs_advice_free(hs_advice* advice) { return release(advice, "advice"); }

hs_status hs_best(const char* question, const hs_profile* profile, const char** json) {
  return guarded([&] {
    thread_local std::string result;
    const model::BestQuestion asked = model::question_from_json(parsed(question, "question"));
    answer(result, to_json(model::find_best(asked, needed(profile, "profile").profile), asked.choice), json);
  });
}
