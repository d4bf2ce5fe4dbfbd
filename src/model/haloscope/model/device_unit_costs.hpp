// Costs of a device's operations: sweeps, packing and copies on its streams, and enqueueing.
//
// All tables are by the number of ranks that share the device, linear between the numbers listed. The cost of packing
// follows the 32-byte sectors of memory that it accesses, and so does the cost of sweeps of regions whose rows are
// shorter than a sector.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "haloscope/extend/candidate.hpp"
#include "haloscope/model/profile.hpp"
#include "haloscope/model/range.hpp"

namespace haloscope::model {

constexpr double sector_bytes = 32;  // min that a device reads or writes in one access (both NVIDIA and AMD)

/// The bytes of all sectors that `bytes` bytes in contiguous runs of `run_bytes` lie in, each run from a sector's
/// begin.
double touched_bytes(double bytes, double run_bytes);

/// Bytes of some messages, and the mean length of a contiguous run of them.
struct Moved {
  std::vector<double> sizes;
  double run_bytes = 0;
  double bytes() const;
};

/// The costs of a device's operations for one candidate.
class DeviceUnitCosts {
 public:
  /// @param kernels  names in the profile of all sweeps of a step.
  /// @param range  records costs beyond the calibrated range; it must outlive the object, as must the profile.
  /// @throws UnavailableError when the profile has no device, one of another back end, or not the cost of this kernel
  ///         or transport.
  DeviceUnitCosts(const Profile& profile, const Candidate& candidate, const std::vector<std::string>& kernels,
                  Range& range);

  /// Seconds of one launch that sweeps a region `levels` times.
  double sweep(const std::string& kernel, const Box& region, int levels, double sharing) const;
  /// ... that sweeps cells and also moves bytes (accessed, both ends).
  double faces(const std::string& kernel, double cells, double moved, double sharing) const;
  /// ... that gathers or scatters bytes.
  double pack(double bytes, double run_bytes, double sharing) const;
  /// Seconds of one copy to the device or from it. For a copy that waits for a word of the host: the seconds from the
  /// host's notice of the messages, less the host's call for the operation, which was before.
  double copy(bool to_device, double bytes, double sharing) const;

  // Transport `taskqueue`: one kernel packs a round's messages part by part, each part is sent when it is ready, and
  // the kernel unpacks arriving parts.

  /// Seconds until the last part of a round's messages can be sent. A kernel that packs into the host's memory is as
  /// slow as the slower of packing and the way there. Copies fetch a part while the next one is packed.
  double pack_parts(const Moved& moved, double sharing) const;
  /// Seconds from the host's notice that the last part has arrived until it is in place, less the host's call for the
  /// operation, which the kernel does not wait for.
  double unpack_parts(const Moved& moved, double sharing) const;
  /// Seconds that a message is still in flight once its last part is ready: the other parts have left while it was
  /// packed.
  double flight_of_parts(double seconds, double bytes, double run_bytes, double sharing) const;

  double element_bytes = 8;
  bool writes_there = false;  ///< to its neighbour's memory: messages only notify
  bool in_parts = false;      ///< by transport `taskqueue`
  bool by_words = false;      ///< by transport `staged:stream`: host and stream notify each other by words
  bool capture = false;
  double conflict = 1, hand_s = 0, notice_s = 0;

 private:
  const std::map<std::string, Table>::mapped_type& known_kernel(const std::string& kernel) const;
  double at(const Table& table, double sharing, double amount, const char* label) const;
  int parts(double bytes) const;
  std::pair<double, double> packing(double bytes, double run_bytes, double sharing) const;
  double travel(bool to_device, double bytes, double sharing) const;

  const Profile* profile_;
  const DeviceCost* cost_;
  Range* range_;
  const std::map<int, Table>* fused_ = nullptr;
  bool pageable_ = false, copied_ = false;
  double signal_s_ = 0;
  int most_parts_ = 1;
};

}  // namespace haloscope::model
