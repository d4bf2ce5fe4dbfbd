// The transports of this build, one function per file; registry.cpp lists them.
#pragma once

#include "haloscope/transport.hpp"

namespace haloscope {

const Transport& auto_transport();
const Transport& aware_transport();
const Transport& p2p_transport();
const Transport& partitioned_transport();
const Transport& persistent_transport();
const Transport& ipc_transport();
const Transport& neighbor_transport();
const Transport& reference_transport();
const Transport& rma_fence_transport();
const Transport& rma_lock_transport();
const Transport& rma_lockall_transport();
const Transport& rma_pscw_transport();
const Transport& shared_transport();
const Transport& staged_transport();

}  // namespace haloscope
