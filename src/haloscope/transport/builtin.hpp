// The transports of this build, one function per file; registry.cpp lists them.
#pragma once

#include "haloscope/transport/transport.hpp"

namespace haloscope {

const Transport& p2p_transport();
const Transport& persistent_transport();
const Transport& reference_transport();

}  // namespace haloscope
