// Groups of candidates that the model cannot distinguish, and the simplest member of each.
#pragma once

#include <vector>

#include "haloscope/model/predict.hpp"

namespace haloscope::model {

/// True if the model distinguishes the slower of two candidates from the faster one, with 95 % confidence. Both
/// predictions share the errors of their common computations, so the profile's discrepancy counts for the difference of
/// their computing, and for the exchange of each. Without a discrepancy: true if they take different times.
/// @param margin  part of the faster time by which the slower one must differ at least.
bool can_tell(const Prediction& fast, const Prediction& slow, const Profile& profile, double margin = 0);

/// Groups of predictions, the fastest first.
/// @param alike  marks predictions that are indistinguishable from the first for any result of can_tell().
/// @return the group of each, from 0. The fastest prediction without a group starts the next one, with all others that
///         are indistinguishable from it. Cost O(predictions x groups).
std::vector<int> group(const std::vector<const Prediction*>& predictions, const std::vector<char>& alike,
                       const Profile& profile, double margin = 0);

/// True if a choice is simpler than another: fewest fields and options off default, then one transport instead of two,
/// then the transport listed first, then the pattern `ordered`.
bool is_simpler(const Choice& a, const Choice& b);

}  // namespace haloscope::model
