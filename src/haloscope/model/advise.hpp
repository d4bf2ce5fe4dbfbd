// Advice: every legal way to exchange the halos of one grid, priced, ranked, explained; no winner where none is clear.
//
// All candidates are priced from the same profile and share its errors. So two candidates are compared under the same
// draws of the uncertain parameters, and differ when 95 % of the draws agree on which is faster, and the difference is
// more than what the model leaves out (groups.hpp).
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "haloscope/model/predict.hpp"

namespace haloscope::model {

/// Time steps per exchange that are tried unless a caller says otherwise.
const std::vector<int>& usual_depths();

/// Candidates, each shown to a visitor in turn. Choices that move the same data between the same ranks follow one
/// another.
using Candidates = std::function<void(const std::function<void(const Choice&)>& visit)>;

/// A choice with every strategy, every schedule for the memory that holds its fields and every depth, legal or not;
/// deep ones with every kind of substeps. `reference`, the oracle, is left out. With a device: strategies for its
/// memory; with walls: plain messages of the host.
Candidates candidates_of(const Choice& choice, const std::vector<int>& depths);
/// Those of a list.
Candidates candidates_of(std::vector<Choice> list);

/// A prediction, and the group of those that cannot be told apart that it is in; see group().
struct Ranked {
  Prediction prediction;
  int group = 0;
  bool equal() const { return group == 0; }  ///< it cannot be told from the fastest
};

struct Advice {
  std::vector<Ranked> candidates;                    ///< fastest first
  std::vector<std::size_t> simplest;                 ///< of each group, the place of the simplest one near its fastest
  std::vector<std::string> changes;                  ///< what would change the answer
  std::vector<std::pair<std::string, int>> refused;  ///< reasons why candidates are missing, and how many
};

/// How much is looked at: all candidates, and what would change the answer; or only those that can be the best, which
/// has an interval then.
enum class Extent : std::uint8_t { all, best };

/// Ranks candidates. @param samples  draws of the profile's parameters.
/// @throws UsageError when none is legal, UnavailableError when the profile lacks what all need. Cost: a prediction
///         each.
Advice advise(const Candidates& candidates, const Profile& profile, const Setting& setting = {},
              int samples = usual_samples, Extent extent = Extent::all);

/// A candidate's distinguishing fields, in words of the command line.
std::string name_of(const Choice& choice);
/// In one clause what bounds the exchange of a prediction, and its share of the step.
std::string reason_of(const Prediction& prediction);

}  // namespace haloscope::model
