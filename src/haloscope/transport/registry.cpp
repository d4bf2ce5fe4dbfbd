#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/transport/builtin.hpp"

namespace haloscope {

const std::vector<const Transport*>& transports() {
  static const std::vector<const Transport*> all{
      &reference_transport(),   &p2p_transport(),      &persistent_transport(),  &rma_fence_transport(),
      &rma_pscw_transport(),    &rma_lock_transport(), &rma_lockall_transport(), &neighbor_transport(),
      &partitioned_transport(), &shared_transport(),   &auto_transport(),        &staged_transport(),
      &aware_transport(),       &ipc_transport()};
  return all;
}

const Transport& find_transport(const std::string& name) {
  std::vector<std::string> names;
  for (const Transport* transport : transports()) {
    if (transport->name() == name) return *transport;
    names.push_back(transport->name());
  }
  throw UsageError(unknown_name("transport", name, names));
}

}  // namespace haloscope
