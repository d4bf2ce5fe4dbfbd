// A choice: everything that a user selects for one run, parsed once and passed on as values. Its fields are in
// choice.def.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <array>
#include <map>
#include <string>

#include "haloscope/extend/parameters.hpp"
#include "haloscope/extend/real.hpp"
#include "haloscope/extend/schedule.hpp"
#include "haloscope/extend/words.hpp"
#include "haloscope/strategy.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

enum class Placement : std::uint8_t { block, round_robin };
HALOSCOPE_WORDS(Placement, "placement", "block", "round-robin");
enum class Reorder : std::uint8_t { none, nodes };
HALOSCOPE_WORDS(Reorder, "order of ranks", "none", "nodes");
enum class Stores : std::uint8_t { automatic, cached, streaming };
HALOSCOPE_WORDS(Stores, "kind of stores", "auto", "cached", "streaming");
enum class Packing : std::uint8_t { first, beside };
HALOSCOPE_WORDS(Packing, "time to pack", "first", "beside");

/// Threads of a device's block in x and y, layers that it passes through; 0: the kernel's default.
using BlockShape = std::array<int, 3>;
/// Strategies of single stages, by the names of the stages.
using StageStrategies = std::map<std::string, Strategy>;

/// One point of the space of choices.
struct Choice {
  std::string app = "advection3d";
  GridSpec grid = {};
#define CHOICE_GRID(...)
#define CHOICE_FIELD(type, name, value, ...) type name = value;
#include "haloscope/choice.def"
#undef CHOICE_FIELD
#undef CHOICE_GRID
  Parameters::Given set = {};  ///< parameters of the app that differ from their defaults

  bool operator==(const Choice&) const = default;
};

}  // namespace haloscope
