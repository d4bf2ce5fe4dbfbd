// The device's operations in one rank's program, with their costs.
#pragma once

#include "haloscope/model/device_unit_costs.hpp"
#include "haloscope/model/op_costs.hpp"

namespace haloscope::model {

class DeviceOpCosts {
 public:
  /// @param kernels  names in the profile of the stage's sweeps.
  /// @param sharing  ranks of a device. Arguments passed by reference must outlive the object.
  DeviceOpCosts(const StageProgram& of, const DeviceUnitCosts& prices, const std::vector<std::string>& kernels,
                double sharing);

  /// An operation of a stream.
  TimedOp price(const Op& op) const;
  /// The bytes of a ring and the mean length of a contiguous run of them.
  std::pair<double, double> ring(int number) const;

 private:
  double seconds(const Op& op) const;
  double sweep_s(const Op& op) const;
  double pack_s(const Op& op) const;
  double unpack_s(const Op& op) const;
  double copy_s(const Op& op) const;
  bool to_device(const Op& op) const;
  Moved moved(const Op& op) const;

  const StageProgram& of_;
  const DeviceUnitCosts& prices_;
  const std::vector<std::string>& kernels_;
  double sharing_, hand_s_;
};

}  // namespace haloscope::model
