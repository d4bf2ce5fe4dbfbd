// One configuration as written on a command line or a line of a configurations file.
#pragma once

#include <string>
#include <vector>

#include "haloscope/run/poisson.hpp"

namespace haloscope {

struct Request {
  std::string id;
  Choice choice;
  AppParameters parameters;
  SimulationOptions options;
  std::int64_t steps = 100;  ///< per repetition
  double seconds = 0;        ///< > 0: choose steps so that a repetition lasts at least this long
  int repetitions = 5;
  int warmup = 1;                  ///< repetitions before the measured ones
  int verify = 0;                  ///< steps compared byte for byte with `reference`; 0: off
  std::string trace;               ///< file for a trace of the last repetition (Chrome JSON), "" for none
  PoissonGoal goal;                ///< poisson2d; its iterations are `steps`
  int work_blocks = 0;             ///< poisson2d: record the seconds of computing of so many blocks of lines; 0: do not
  std::int64_t work_window = 100;  ///< ... per so many iterations
  bool timeline = false;           ///< each rank's seconds by phase, operation and MPI call into the record
};

/// @param words  APP and options, without a program name. @param ranks  size of the run.
/// @throws UsageError with the parser's explanation.
Request parse_request(const std::vector<std::string>& words, int ranks);

/// Help text of the options of one configuration.
std::string request_help();

/// Text cut into words at blanks; quotes group words.
std::vector<std::string> words_of(const std::string& line);

}  // namespace haloscope
