// The kernels of hydro3d that find cells which are not physical.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "davis2017/app/hydro3d/fields.hpp"
#include "haloscope/kernels/kernel.hpp"

namespace haloscope::hydro {
namespace {

constexpr Index cells{11, 3, 2};
constexpr std::int64_t row = 13, plane = row * 5, points = plane * 4;

std::int64_t at(const Index& cell) { return cell[0] + 1 + (cell[1] + 1) * row + (cell[2] + 1) * plane; }

/// Gas at rest with density, energy and volume 1, and the fault code that a predictor or corrector returns for it.
class RestingGas {
 public:
  RestingGas() {
    for (auto& field : fields_) field.assign(points, 0);
    for (int q : {density, energy, volume}) field(q).assign(points, 1);
    field(pressure).assign(points, 0.4);
  }
  std::vector<double>& field(int q) { return fields_[static_cast<std::size_t>(q)]; }

  double fault(const haloscope::Kernel& kernel, int number) {
    std::array<Operand, field_count> operands;
    const std::int64_t origin = at({0, 0, 0});
    for (std::size_t q = 0; q < operands.size(); ++q)
      operands[q] = {fields_[q].data() + origin, fields_[q].data() + origin, row, plane};
    std::array<double, weight_count> weights{};
    for (int d = 0; d < 3; ++d) weights[static_cast<std::size_t>(area + d)] = 1;
    weights[sub_step] = 0.1;
    weights[gamma_less_one] = weights[gamma_less_one + 1] = 0.4;
    weights[code_first] = 1;
    weights[code_row] = cells[0];
    weights[code_plane] = cells[0] * cells[1];
    std::vector<double> scratch(kept_rows * kept_pitch(cells[0] + 1));
    double found = -1;
    KernelArgs args;
    args.operands = operands.data();
    args.weights = weights.data();
    args.region = args.points = {{0, 0, 0}, cells};
    args.scratch = scratch.data();
    args.reduced = &found;
    args.number = number;
    kernel.sweep(args);
    return found;
  }

 private:
  std::array<std::vector<double>, field_count> fields_;
};

double code_of(const Index& cell) {
  return 2.0 * static_cast<double>(1 + cell[0] + cells[0] * (cell[1] + cells[1] * cell[2]));
}

TEST(HydroKernels, FindACellWhoseDensityOrEnergyIsNotPositive) {
  const Index bad{9, 2, 1};
  for (const std::string& isa : kernel_isas())
    for (const std::string form : {"vector", "fused", "scalar", "lines", "arrays"})
      for (const bool half : {true, false}) {
        const bool fused = form == "fused";
        const int number = half ? (fused ? kernel_predict_pressure : kernel_predict)
                                : (fused ? kernel_correct_pressure : kernel_correct);
        const haloscope::Kernel kernel = find_kernel("hydro3d-" + form, Real::f64, isa);
        SCOPED_TRACE(form + ", " + isa + (half ? ", predictor" : ", corrector"));
        EXPECT_EQ(RestingGas().fault(kernel, number), 0);
        for (const auto& [quantity, value, code] :
             {std::tuple{density, -1.0, code_of(bad)}, {energy, -1.0, code_of(bad) + 1}, {volume, 0.0, code_of(bad)}}) {
          RestingGas gas;
          gas.field(quantity)[static_cast<std::size_t>(at(bad))] = value;
          EXPECT_EQ(gas.fault(kernel, number), code) << "quantity " << quantity << " is " << value;
        }
      }
}

}  // namespace
}  // namespace haloscope::hydro
