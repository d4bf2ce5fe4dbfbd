// Results of the model as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "haloscope/model/best.hpp"

namespace haloscope::model {

/// By name.
nlohmann::json to_json(const PaceRatios& ratios);
/// A prediction without its choice.
nlohmann::json to_json(const Prediction& prediction);

/// The fields of a choice that differ from another's.
nlohmann::json changes_of(const Choice& choice, const Choice& from);
/// The choice with changed fields. @throws UsageError for anything else than an object of such fields.
Choice changed(Choice choice, const nlohmann::json& changes);

/// choice: the choice of the question; candidates are its changes.
nlohmann::json to_json(const Advice& advice);
nlohmann::json to_json(const BestAnswer& answer, const Choice& choice);
/// @throws UsageError for an invalid question.
BestQuestion question_from_json(const nlohmann::json& json);

}  // namespace haloscope::model
