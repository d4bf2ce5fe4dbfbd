// Ratios of measured to predicted step times, by kernel regression: costs of choices that resemble a measured step
// follow it.
//
// A law of bytes or cells has no protocol that an MPI switches to, no set of the cache that two rows share. Steps that
// a calibration has measured have. Each yields a ratio, and a choice takes the mean of the ratios close to it, in
// octaves of its messages and its block; far from all of them its costs remain as they are. (Kernel regression:
// Nadaraya 1964, Watson 1964; the ratio 1, of a fixed weight, is one of its terms.)
#pragma once

#include <span>
#include <vector>

#include "haloscope/model/traffic.hpp"

namespace haloscope::model {

/// The layout of a step's messages, and the block that they leave; sizes in octaves, by their logarithms to the base 2.
struct StepFeatures {
  double message_bytes = 0, run_bytes = 0;  ///< of a message, and of its contiguous runs
  double block_bytes = 0;                   ///< of one slot, halos included
  double depth = 0;                         ///< of its halos
  bool in_place = false;                    ///< messages are one contiguous run
};
StepFeatures likeness_of(const Traffic& message, double block_bytes, int depth);

/// Measured over predicted time of parts of a step.
struct Ratios {
  double exchange = 1, sweeps = 1;
};

/// A measured step: its features, the number of launches that measured it, and the logarithms of its ratios.
struct Correction {
  StepFeatures like;
  double launches = 1;
  double exchange = 0, sweeps = 0;
};

/// The mean of the logarithms of ratios, weighted by closeness. See above.
Ratios correct(std::span<const std::vector<Correction>* const> known, const StepFeatures& like);

}  // namespace haloscope::model
