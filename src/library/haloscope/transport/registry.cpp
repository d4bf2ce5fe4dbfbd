#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/transport/views.hpp"

namespace haloscope {

#define TRANSPORT(name)                       \
  extern const TransportTraits name##_traits; \
  std::unique_ptr<Link> open_##name(const LinkContext& context, const std::vector<std::string>& options);
#include "haloscope/transport/transports.def"
#undef TRANSPORT

namespace {

std::vector<Transport>& known_transports() {
  static std::vector<Transport> all{
#define TRANSPORT(name) {&name##_traits, open_##name},
#include "haloscope/transport/transports.def"
#undef TRANSPORT
  };
  return all;
}

}  // namespace

std::unique_ptr<Link> open_transport(const std::string& name, const LinkContext& context,
                                     const std::vector<std::string>& options) {
  check_options(name, options);
  agree(context.comm, [&] { check_views(*context.plan, *context.views, context.device != nullptr); });
  if (find_traits(name).device && context.device == nullptr)
    throw UsageError("transport '" + name + "' moves fields of a device, and these are in host memory; use p2p");
  for (const Transport& transport : known_transports())
    if (transport.traits->name == name) return transport.open(context, options);
  throw UsageError("transport '" + name + "' has traits but no function to open it; register it with add_transport()");
}

void add_transport(const Transport& transport) {
  add_traits(*transport.traits);
  known_transports().push_back(transport);
}

}  // namespace haloscope
