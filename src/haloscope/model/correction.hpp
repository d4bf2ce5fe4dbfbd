// What steps that were measured took, over what the costs say: where a choice is like one of them, its prices follow
// it.
//
// A law of bytes or cells has no protocol that an MPI switches to, no set of the cache that two rows share. Steps that
// a calibration has measured have. Each gives a ratio, and a choice takes the mean of those that are near, in octaves
// of its messages and its block; far from all of them its prices are those of the costs alone. (Kernel regression:
// Nadaraya 1964, Watson 1964; the ratio 1, of a fixed weight, is one of its terms.)
#pragma once

#include <span>
#include <vector>

#include "haloscope/model/traffic.hpp"

namespace haloscope::model {

/// How the messages of a step lie, and the block that they leave; sizes in octaves, by their logarithms to the base 2.
struct StepFeatures {
  double message_bytes = 0, run_bytes = 0;  ///< of a message, and of its stretches without gaps
  double block_bytes = 0;                   ///< of one slot, halos included
  double depth = 0;                         ///< of its halos
  bool in_place = false;                    ///< messages are one stretch
};
StepFeatures likeness_of(const Traffic& message, double block_bytes, int depth);

/// How many times longer parts of a step take than the costs say.
struct Ratios {
  double exchange = 1, sweeps = 1;
};

/// A measured step: what it is like, in how many launches it was measured, and the logarithms of its ratios.
struct Correction {
  StepFeatures like;
  double launches = 1;
  double exchange = 0, sweeps = 0;
};

/// The mean of the logarithms of ratios, by how near each is. Source: ours; see above.
Ratios correct(std::span<const std::vector<Correction>* const> known, const StepFeatures& like);

}  // namespace haloscope::model
