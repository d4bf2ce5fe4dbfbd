// laplace3d: one time step is a seven-point average.
#include "haloscope/apps/star.hpp"

namespace haloscope {

extern const AppKernels laplace3d_kernels;  // made by haloscope_add_app()

const App& laplace3d_app() {
  static const App app = [] {
    App laplace =
        star_app("laplace3d", 3, {0.11, 0.13, 0.17, 0.19, 0.15, 0.12, 0.13}, "z-, y-, x-, centre, x+, y+, z+");
    laplace.summary = "seven-point average in 3D";
    laplace.kernels = &laplace3d_kernels;
    laplace.device_levels = 4;
    return laplace;
  }();
  return app;
}

}  // namespace haloscope
