// Apps as JSON: the data that plans, programs, legality and help texts use, without code.
#pragma once

#include <nlohmann/json.hpp>

#include "haloscope/app.hpp"

namespace haloscope {

/// Returns the description of an app, with its quantities and stages for `parameters`, for each of its forms.
nlohmann::json describe(const App& app, const Parameters::Given& parameters = {});

/// Returns an app from its description: it can be planned and priced, not run. Its legality rules beyond its stages
/// are lost; entry `own_legality` of the description is true if it had any.
/// @throws UsageError for a description that is incomplete or describes no app.
App described_app(const nlohmann::json& json);

/// Returns the quantities and stages of a step as JSON.
nlohmann::json to_json(const Step& step);
/// Returns a step from its JSON, not resolved yet; its sweeps have no code.
/// @throws UsageError for JSON that is incomplete.
Step described_step(const nlohmann::json& json);

}  // namespace haloscope
