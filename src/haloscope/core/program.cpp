#include "haloscope/core/program.hpp"

namespace haloscope {

const char* to_string(OpKind kind) {
  static const char* const names[] = {"barrier", "post",   "copy",     "pack",  "send",
                                      "wait",    "unpack", "complete", "sweep", "progress"};
  return names[static_cast<int>(kind)];
}

}  // namespace haloscope
