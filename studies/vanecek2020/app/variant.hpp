// Variants of the exchange of `blocks`: variants of Vanecek 2020 (tables 3.1 and 3.2) and its proposals (sections 3.6,
// 4.6, 5.4).
#pragma once

#include <string>
#include <vector>

#include "haloscope/extend/words.hpp"

namespace haloscope {

struct Variant {
  enum class Flow {
    baseline,   ///< a kernel packs all, messages, a kernel unpacks all (3.3)
    taskqueue,  ///< one kernel signals packed blocks to the CPU, and the CPU signals arrivals (3.4, 3.5)
    kernels     ///< a kernel per block to pack and one to unpack (5.4)
  };
  Flow flow = Flow::baseline;
  bool blocking = false;     ///< sends; receives never block
  bool testany = false;      ///< baseline: waits with MPI_Testany instead of MPI_Waitall
  bool noncoherent = false;  ///< baseline and kernels: memory of the buffers
  bool queue = false;        ///< taskqueue: one list under a lock instead of a channel per block
  bool device = false;       ///< taskqueue: packs into device memory, copied on a stream per block
  int chunks = 1;            ///< taskqueue: of a buffer, sent one by one
  int throttle = 0;          ///< taskqueue: blocks that pack concurrently; 0: all
  int cpu_threads = 1;       ///< taskqueue: 2: receives apart; 3: copies too
  bool padded = false;       ///< taskqueue: flags in separate cache lines
  bool dummy = false;        ///< a message of the rendezvous protocol as soon as receives are posted
  int backoff_us = 0;        ///< taskqueue and kernels: rest after each poll without an event
};

HALOSCOPE_WORDS(Variant::Flow, "flow of blocks", "baseline", "taskqueue", "kernels");

/// @param text  the flow and, after a colon, words and numbers: "taskqueue:queue,device,chunks=4". Words that are
///              absent have the defaults above. @throws UsageError.
Variant parse_variant(const std::string& text);
/// Returns all words, so that two texts of the same variant become the same.
std::string to_string(const Variant& variant);

}  // namespace haloscope
