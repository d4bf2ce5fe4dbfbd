#include "haloscope/program.hpp"

namespace haloscope {

const char* to_string(OpKind kind) {
  static const char* const names[] = {"barrier", "post",     "copy",    "pack",     "send",   "wait",
                                      "unpack",  "complete", "sweep",   "progress", "d2h",    "h2d",
                                      "gather",  "transfer", "scatter", "reduce",   "reduced"};
  return names[static_cast<int>(kind)];
}

const char* to_string(Lane lane) {
  static const char* const names[] = {"main", "comm", "sweep-stream", "halo-stream"};
  return names[static_cast<int>(lane)];
}

}  // namespace haloscope
