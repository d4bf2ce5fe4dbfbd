// Apps as JSON: everything that plans, programs, legality and help texts need of one, without its code.
#pragma once

#include <nlohmann/json.hpp>

#include "haloscope/app.hpp"

namespace haloscope {

/// The description of an app; of quantities and stages those of `parameters`, for each of its forms.
nlohmann::json describe(const App& app, const Parameters::Given& parameters = {});

/// An app from its description: it can be planned and priced, not run. Its own legality rules beyond its stages are
/// lost; entry `own_legality` of the description tells whether there were any.
/// @throws UsageError for a description that is incomplete or describes no app.
App described_app(const nlohmann::json& json);

/// The quantities and stages of a step.
nlohmann::json to_json(const Step& step);
/// A step from its JSON, not resolved yet; its sweeps have no code.
/// @throws UsageError for JSON that is incomplete.
Step described_step(const nlohmann::json& json);

}  // namespace haloscope
