// Waits of the host for what a device and its peers do: they last as long as it takes, and are reported while they do.
#pragma once

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "haloscope/core/clock.hpp"
#include "haloscope/core/spin.hpp"

namespace haloscope {

/// Seconds of a wait after which it is reported, again and again; 0: never.
inline double patience_s() {
  const char* const text = std::getenv("HALOSCOPE_PATIENCE");
  return text != nullptr ? std::atof(text) : 30;
}

class LongWait {
 public:
  /// @param yield  more ranks than cores: give the core away while waiting.
  LongWait(MPI_Comm comm, bool yield) : comm_(comm), spin_(yield) {}
  /// Rests between two looks, see look().
  template <class Describe>
  void again(Describe describe) {
    constexpr int looks_per_clock = 64;
    spin_.again();
    if (++looks_ % looks_per_clock == 0) look(describe);
  }
  /// Reports each time that patience_s() have passed.
  /// @param describe  returns who waits for what, as it stands now.
  template <class Describe>
  void look(Describe describe) {
    const double now = now_s();
    if (begin_s_ == 0) begin_s_ = last_s_ = now;
    if (const double patience = patience_s(); patience > 0 && now - last_s_ >= patience) {
      last_s_ = now;
      report(describe());
    }
  }

  /// What it waits for next is something else.
  void found() { begin_s_ = 0; }

 private:
  void report(const std::string& what) const {
    int rank = 0;
    MPI_Comm_rank(comm_, &rank);
    std::fprintf(stderr, "haloscope: rank %d has waited for %.0f s: %s\n", rank, last_s_ - begin_s_, what.c_str());
  }

  MPI_Comm comm_;
  Spin spin_;
  unsigned looks_ = 0;
  double begin_s_ = 0, last_s_ = 0;
};

}  // namespace haloscope
