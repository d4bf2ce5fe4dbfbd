// laplace2d: one time step is a five-point average (Valen 2023, chapter 3).
#include "haloscope/apps/star.hpp"

namespace haloscope {

extern const AppKernels laplace2d_kernels;  // made by haloscope_add_app()

const App& laplace2d_app() {
  static const App app = [] {
    App laplace = star_app("laplace2d", 2, {0.21, 0.17, 0.23, 0.25, 0.14}, "north, west, centre, east, south");
    laplace.summary = "five-point average in 2D";
    laplace.fused_forms = {"star"};
    laplace.kernels = &laplace2d_kernels;
    laplace.device_levels = 8;
    return laplace;
  }();
  return app;
}

}  // namespace haloscope
