// Flushing subnormal numbers to zero, where the CPU can: arithmetic on them is many times slower.
#pragma once

namespace haloscope {

/// Returns true if FlushToZero has an effect on this CPU.
bool can_flush_to_zero();

/// Returns true if the calling thread flushes now, found by a trial.
bool flushes_to_zero();

/// While it lives, the calling thread takes subnormal operands and results as zero (on x86: the FTZ and DAZ bits);
/// elsewhere nothing happens. Results then differ from IEEE arithmetic by less than 1e-300. Each thread of a team needs
/// a separate one (a new thread may inherit its creator's mode), and it must end on the thread that made it.
class FlushToZero {
 public:
  explicit FlushToZero(bool wanted = true);
  ~FlushToZero();
  FlushToZero(const FlushToZero&) = delete;
  FlushToZero& operator=(const FlushToZero&) = delete;

 private:
  bool wanted_;
  unsigned before_ = 0;
};

}  // namespace haloscope
