// Requests: the parts that several calls have, read from their JSON.
#pragma once

#include <string>

#include "bindings/python/entry.hpp"
#include "bindings/python/values.hpp"
#include "haloscope/extend/candidate.hpp"
#include "haloscope/model/advise.hpp"

namespace haloscope::bridge {

/// A request from its text. @throws UsageError for text that is not a JSON object.
Json request_of(const char* text, const char* name);
/// A part that a request must have. @throws UsageError where it has none.
const Json& part_of(const Json& request, const char* name);
/// A part that is a value. @param value  the default where the request has none.
template <class T>
T value_of(const Json& request, const char* name, T value) {
  if (request.contains(name)) read(request.at(name), name, value);
  return value;
}

Choice choice_of(const Json& request);
/// The candidate of a choice, which must outlive it. @throws UsageError with the reason where it is not legal.
Candidate legal_candidate(const Choice& choice);
Layout layout_of(const Json& request);
ExchangeSpec spec_of(const Json& request);
/// The options of a schedule: `defaults`, replaced by the members of `request`. @throws UsageError for impossible ones.
ScheduleOptions options_of(const Json& request, const ScheduleOptions& defaults = {});
model::Setting setting_of(const Json& request);
/// The candidates that the request lists as `among`, or all of its depths and arrangements.
model::Candidates candidates_of(const Choice& choice, const Json& request);

/// @throws UsageError for a stage that a step does not have.
const Stage& stage_of(const Step& step, int stage);

/// Returns JSON that lives in `result`, one for each function and thread.
void answer(std::string& result, const Json& found, const char** json);

/// Answers with the JSON that `find` returns.
template <class Find>
hs_status answered(const char** json, const Find& find) noexcept {
  return guarded([&] {
    thread_local std::string result;  // one for each type of `find`, thus for each function
    answer(result, find(), json);
  });
}

}  // namespace haloscope::bridge
