// Waiting for all ranks to make a collective call: reported while some of them are late.
#pragma once

#include <mpi.h>

#include <utility>

namespace haloscope {

/// Names the collective call that this thread makes, for reports: "the opening of an exchange". Cost: two stores.
class NamedCall {
 public:
  explicit NamedCall(const char* name) : outer_(std::exchange(current_, name)) {}
  ~NamedCall() { current_ = outer_; }
  NamedCall(const NamedCall&) = delete;
  NamedCall& operator=(const NamedCall&) = delete;
  static const char* current() { return current_; }

 private:
  static thread_local const char* current_;
  const char* outer_;
};

/// Completes a nonblocking collective call of set-up by polling. A rank for which the others have not come after patience_s()
/// reports it, see ReportedWait.
/// @throws MpiError where MPI refuses.
void meet_in(MPI_Comm comm, MPI_Request& request);

}  // namespace haloscope
