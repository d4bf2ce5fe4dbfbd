#include "haloscope/core/bounds.hpp"

namespace haloscope {

const std::vector<Bound>& bounds() {
  static const std::vector<Bound> all{
#define BOUND(name, least, most) bound.name,
#include "haloscope/core/bounds.def"
#undef BOUND
  };
  return all;
}

}  // namespace haloscope
