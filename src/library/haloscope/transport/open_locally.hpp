// Links whose opening is local.
#pragma once

#include <memory>

#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/transport.hpp"

namespace haloscope {

/// Opens a link whose constructor makes no collective call. If it fails on one rank, for example for a region that is
/// too large there, all throw. Collective over `context.comm`; cost: one reduction to all.
template <class Kind, class... Arguments>
std::unique_ptr<Link> open_locally(const LinkContext& context, const Arguments&... arguments) {
  std::unique_ptr<Link> link;
  agree(context.comm, [&] { link = std::make_unique<Kind>(context, arguments...); });
  return link;
}

}  // namespace haloscope
