// Simulates a few ranks with separate op lists and explicit message routes, by the simulator's engine.
//
// A message is a route for each of its receivers, and one for each of its possible senders: a wait ends with the last.
#pragma once

#include <memory>
#include <vector>

#include "haloscope/simulate/log.hpp"
#include "haloscope/simulate/simulator.hpp"

namespace haloscope::simulate {

class SmallSimulator {
 public:
  /// Op list i belongs to rank i. Messages travel for Flight::seconds, independent of concurrent ones.
  explicit SmallSimulator(std::vector<OpList> scripts);
  ~SmallSimulator();
  SmallSimulator(const SmallSimulator&) = delete;

  /// Returns the log of each rank. @throws Deadlock. Cost O(events x log(ranks)).
  std::vector<Log> run(const Options& options);

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace haloscope::simulate
