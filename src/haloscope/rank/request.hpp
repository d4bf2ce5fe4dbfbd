// One configuration as written on a command line or a line of a configurations file.
#pragma once

#include <string>
#include <vector>

#include "haloscope/rank/simulation.hpp"

namespace haloscope {

struct Request {
  std::string id;
  Choice choice;
  AppParameters parameters;
  SimulationOptions options;
  std::int64_t steps = 100;   ///< per repetition
  double seconds = 0;         ///< > 0: choose steps so that a repetition lasts at least this long
  int repetitions = 5;
  int warmup = 1;             ///< repetitions before the measured ones
  int verify = 0;             ///< steps compared byte for byte with `reference`; 0: off
  std::string trace;          ///< file for a per-operation trace (Chrome JSON), "" for none
};

/// @param words  APP and options, without a program name. @param ranks  size of the run.
/// @throws UsageError with the parser's explanation.
Request parse_request(const std::vector<std::string>& words, int ranks);

/// Help text of the options of one configuration.
std::string request_help();

/// Text cut into words at blanks; quotes group words.
std::vector<std::string> words_of(const std::string& line);

}  // namespace haloscope
