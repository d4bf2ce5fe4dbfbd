// Messages between fields in device memory by one kernel a round: it packs them, notifies the CPU of packed ones,
// waits for the messages of its peers and unpacks them (Vanecek 2020, sections 3.4 to 3.6).
#pragma once

#include <memory>

#include "haloscope/extend/transport.hpp"

namespace haloscope {

struct TaskOptions {
  bool copied = false;  ///< packed into device memory and copied; else packed into memory that MPI sends from
  bool queue = false;   ///< parts that are ready are in one list; else each has a word
  int parts = 1;        ///< maximum parts of a message; each is sent separately
};

/// Collective. @throws UnavailableError, on all ranks, where a device cannot run one block of the kernel for each of
/// its ranks.
std::unique_ptr<Link> open_task_link(const LinkContext& context, const TaskOptions& options);

}  // namespace haloscope
