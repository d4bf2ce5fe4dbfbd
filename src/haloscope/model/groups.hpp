// Groups of candidates that the model cannot tell apart, and the simplest member of each.
#pragma once

#include <vector>

#include "haloscope/model/predict.hpp"

namespace haloscope::model {

/// Whether the model can tell the slower of two candidates from the faster, 95 % sure. What both compute alike is wrong
/// alike, so the profile's discrepancy counts for the difference of their computing, and for the exchange of each.
/// Without a discrepancy: whether they take different times.
/// @param margin  part of the faster time by which the slower one must differ at least.
bool can_tell(const Prediction& fast, const Prediction& slow, const Profile& profile, double margin = 0);

/// Groups of predictions, the fastest first.
/// @param alike  of those that cannot be told from the first whatever can_tell() says.
/// @return the group of each, from 0. The fastest that is in no group yet is in the next one, with all others that
///         cannot be told from it. Cost O(predictions x groups).
std::vector<int> group(const std::vector<const Prediction*>& predictions, const std::vector<char>& alike,
                       const Profile& profile, double margin = 0);

/// Whether a choice is simpler than another: fewest fields and options off default, then one transport instead of two,
/// then the transport listed first, then the pattern `ordered`.
bool is_simpler(const Choice& a, const Choice& b);

}  // namespace haloscope::model
