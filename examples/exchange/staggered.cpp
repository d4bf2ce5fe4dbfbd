// Sound in viscous air on a staggered grid: pressure in cells, each velocity on the faces that it is normal to. All
// four fields travel in one exchange.
//   mpiexec -n 4 ./staggered
#include "heat3d.hpp"

namespace {

constexpr double courant = 0.3, viscosity = 0.05;
constexpr haloscope::Centring faces[3] = {haloscope::Centring::face_x, haloscope::Centring::face_y,
                                          haloscope::Centring::face_z};

/// Computes velocities in dimension `d` on all faces of the block, including faces shared with its neighbours.
void push(const haloscope::Grid<3>& grid, int d, const Cells& p, const Cells& old, const Cells& now) {
  const int dx = d == 0, dy = d == 1, dz = d == 2;
  haloscope::Box points = whole(grid);
  points.hi[d] += 1;
  for_each(points, [&](auto i, auto j, auto k) {
    const double around = (old(i - 1, j, k) + old(i + 1, j, k)) + (old(i, j - 1, k) + old(i, j + 1, k)) +
                          (old(i, j, k - 1) + old(i, j, k + 1));
    now(i, j, k) =
        old(i, j, k) - courant * (p(i, j, k) - p(i - dx, j - dy, k - dz)) + viscosity * (around - 6.0 * old(i, j, k));
  });
}

void simulate() {
  const haloscope::Grid<3> grid(MPI_COMM_WORLD, {.cells = cells, .periodic = {true, true, true}});
  const haloscope::Field<double, 3> p(grid, {.slots = 2, .name = "pressure"});
  const haloscope::Field<double, 3> v[3] = {{grid, {.slots = 2, .name = "x", .centring = faces[0]}},
                                            {grid, {.slots = 2, .name = "y", .centring = faces[1]}},
                                            {grid, {.slots = 2, .name = "z", .centring = faces[2]}}};
  auto halo = make_exchange(grid, {p, v[0], v[1], v[2]}, "direct:merged/p2p", {.corners = false});

  fill(grid, p[0]);
  for (int step = 0; step < steps; ++step) {
    const int old = step % 2, now = 1 - old;
    halo.exchange(old);
    for (int d = 0; d < 3; ++d) push(grid, d, p[old], v[d][old], v[d][now]);
    for_each(whole(grid),
             [&, p = p[old], q = p[now], x = v[0][now], y = v[1][now], z = v[2][now]](auto i, auto j, auto k) {
               q(i, j, k) = p(i, j, k) - courant * ((x(i + 1, j, k) - x(i, j, k)) + (y(i, j + 1, k) - y(i, j, k)) +
                                                    (z(i, j, k + 1) - z(i, j, k)));
             });
  }
  print_bits(grid, {p[steps % 2], v[0][steps % 2], v[1][steps % 2], v[2][steps % 2]});
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  simulate();
  MPI_Finalize();
}
