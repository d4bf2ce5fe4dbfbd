// Advice: every legal way to exchange the halos of one grid, predicted, ranked and explained; no winner where none is
// clear.
//
// All candidates are predicted from the same profile and share its errors. Two candidates are therefore compared under
// the same samples of the uncertain parameters. They differ when 95 % of the samples agree on the faster one, and the
// difference exceeds the part that the model leaves out (groups.hpp).
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "haloscope/model/predict.hpp"

namespace haloscope::model {

/// Time steps per exchange that are tried unless the caller specifies others.
const std::vector<int>& usual_depths();

/// Candidates, each passed to a visitor in turn. Choices that move the same data between the same ranks are successive.
using Candidates = std::function<void(const std::function<void(const Choice&)>& visit)>;

/// A choice with every strategy, every schedule for the memory that holds its fields and every depth, legal or not;
/// deep ones with every kind of substeps. `reference`, the oracle, is skipped. With a device: strategies for its
/// memory; with walls: plain messages of the host.
Candidates candidates_of(const Choice& choice, const std::vector<int>& depths);
/// The candidates of a list.
Candidates candidates_of(std::vector<Choice> list);

/// A prediction, and the number of its group of indistinguishable predictions; see group().
struct Ranked {
  Prediction prediction;
  int group = 0;
  bool equal() const { return group == 0; }  ///< it is indistinguishable from the fastest
};

struct Advice {
  std::vector<Ranked> candidates;     ///< fastest first
  std::vector<std::size_t> simplest;  ///< of each group: the position of the simplest member close to its fastest
  std::vector<std::string> changes;   ///< changes of the machine that would change the answer
  std::vector<std::pair<std::string, int>> refused;  ///< reasons why candidates are missing, and their counts
};

/// The extent of the search: all candidates, and the changes that would change the answer; or only candidates that can
/// be the best, which then has an interval.
enum class Extent : std::uint8_t { all, best };

/// Ranks candidates. @param samples  samples of the profile's parameters.
/// @throws UsageError when none is legal, UnavailableError when the profile lacks a cost that all need. Cost: a
///         prediction each.
Advice advise(const Candidates& candidates, const Profile& profile, const Setting& setting = {},
              int samples = usual_samples, Extent extent = Extent::all);

/// A candidate's distinguishing fields, in words of the command line.
std::string name_of(const Choice& choice);
/// One clause with the cost that bounds the exchange of a prediction, and the exchange's share of the step.
std::string reason_of(const Prediction& prediction);

}  // namespace haloscope::model
