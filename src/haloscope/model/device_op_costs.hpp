// The operations of one rank's program that its device does, with their prices.
#pragma once

#include "haloscope/model/device_unit_costs.hpp"
#include "haloscope/model/op_costs.hpp"

namespace haloscope::model {

class DeviceOpCosts {
 public:
  /// @param kernels  names in the profile of the stage's sweeps.
  /// @param sharing  ranks of a device. What is passed by reference must outlive the object.
  DeviceOpCosts(const StageProgram& of, const DeviceUnitCosts& prices, const std::vector<std::string>& kernels,
                double sharing);

  /// An operation of a stream.
  TimedOp price(const Op& op) const;
  /// The bytes of a ring and the mean length of a stretch of them.
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
