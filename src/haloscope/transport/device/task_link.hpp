// Messages between fields in device memory by one kernel a round: it packs them, tells the CPU which are ready, waits
// for those of its peers and unpacks them (Vanecek 2020, sections 3.4 to 3.6).
#pragma once

#include <memory>

#include "haloscope/transport.hpp"

namespace haloscope {

struct TaskOptions {
  bool copied = false;  ///< packed into device memory and copied; else the kernel packs where MPI sends from
  bool queue = false;   ///< parts that are ready stand in one list; else each has a word
  int parts = 1;        ///< of a message, at most; each travels alone
};

/// Collective. @throws UsageError where the fields are not a device's; UnavailableError, on all ranks, where not one
/// block of the kernel for each rank of a device fits on it.
std::unique_ptr<Link> open_task_link(const LinkContext& context, const TaskOptions& options);

}  // namespace haloscope
