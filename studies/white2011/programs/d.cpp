// Version D: the master thread communicates while the others compute the interior, in a guided loop.
//
// usage: OMP_NUM_THREADS=2 mpiexec -n 4 ./d CELLS STEPS [CX CY CZ NU]
#include <mpi.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

int n;                            // points per dimension
double c[3] = {1, 1, 1}, nu = 1;  // velocity; time step over grid spacing
double weights[3][3];             // of each dimension: upstream for c > 0, centre, downstream

int tasks, rank, grid[3];  // tasks, also per dimension
int begin[3], size[3];     // this task's block
int neighbours[3][2];      // below and above in each dimension
MPI_Comm cart;
std::vector<double> current, next;  // the block, with a halo of one point
std::vector<double> halos[3][2], sends[3][2];
MPI_Request receives[3][2];

std::size_t at(int i, int j, int k) { return (std::size_t(k) * (size[1] + 2) + j) * (size[0] + 2) + i; }

void set_weights() {
  for (int d = 0; d < 3; ++d) {
    const double p = c[d] * nu;
    weights[d][0] = p * (1 + p) / 2, weights[d][1] = 1 - p * p, weights[d][2] = p * (p - 1) / 2;
  }
}

/// Returns the solution: a Gaussian in the middle of a periodic unit cube, moved by some steps.
double exact(int i, int j, int k, int step) {
  const double position[] = {(begin[0] + i - 0.5) / n, (begin[1] + j - 0.5) / n, (begin[2] + k - 0.5) / n};
  double squares = 0;
  for (int d = 0; d < 3; ++d) {
    double distance = position[d] - 0.5 - c[d] * nu * step / n;
    distance -= std::round(distance);
    squares += distance * distance;
  }
  return std::exp(-50 * squares);
}

/// Divides the cube into blocks as near to cubes as possible, longest in x, and allocates this task's.
void divide() {
  int counts[3] = {0, 0, 0}, coords[3], rings[3] = {1, 1, 1};
  MPI_Dims_create(tasks, 3, counts);
  for (int d = 0; d < 3; ++d) grid[d] = counts[2 - d];  // the largest count comes first
  MPI_Cart_create(MPI_COMM_WORLD, 3, grid, rings, 0, &cart);
  MPI_Cart_coords(cart, rank, 3, coords);
  for (int d = 0; d < 3; ++d) {
    begin[d] = static_cast<int>(std::int64_t(n) * coords[d] / grid[d]);
    size[d] = static_cast<int>(std::int64_t(n) * (coords[d] + 1) / grid[d]) - begin[d];
    MPI_Cart_shift(cart, d, 1, &neighbours[d][0], &neighbours[d][1]);
  }
  current.resize(at(0, 0, size[2] + 2)), next.resize(at(0, 0, size[2] + 2));
  for (int d = 0; d < 3; ++d)
    for (int side = 0; side < 2; ++side) {
      std::size_t points = 1;
      for (int e = 0; e < 3; ++e) points *= e < d ? size[e] + 2 : e > d ? size[e] : 1;
      halos[d][side].resize(points), sends[d][side].resize(points);
    }
}

/// Copies a plane across dimension d, with the halos of the dimensions before d, into a buffer or out of it.
void copy_plane(int d, int plane, std::vector<double>& buffer, bool pack) {
  int lo[3], hi[3];
  for (int e = 0; e < 3; ++e) lo[e] = e < d ? 0 : 1, hi[e] = size[e] + 2 - lo[e];
  lo[d] = plane, hi[d] = plane + 1;
  const int width = hi[0] - lo[0], height = hi[1] - lo[1];
  for (int k = lo[2]; k < hi[2]; ++k)
    for (int j = lo[1]; j < hi[1]; ++j)
      for (int i = lo[0]; i < hi[0]; ++i) {
        double& inside = current[at(i, j, k)];
        double& outside = buffer[(std::size_t(k - lo[2]) * height + j - lo[1]) * width + i - lo[0]];
        if (pack)
          outside = inside;
        else
          inside = outside;
      }
}

/// Posts the receives of all dimensions. A message that travels up has tag 2 d + 1.
void post_receives() {
  for (int d = 0; d < 3; ++d)
    for (int side = 0; side < 2; ++side)
      MPI_Irecv(halos[d][side].data(), int(halos[d][side].size()), MPI_DOUBLE, neighbours[d][side], 2 * d + 1 - side,
                cart, &receives[d][side]);
}

/// Sends both planes of a dimension and fills the halos behind them; x before y before z, so that corners arrive.
void exchange(int d) {
  MPI_Request sent[2];
  for (int side = 0; side < 2; ++side) copy_plane(d, side ? size[d] : 1, sends[d][side], true);
  for (int side = 0; side < 2; ++side)
    MPI_Isend(sends[d][side].data(), int(sends[d][side].size()), MPI_DOUBLE, neighbours[d][side], 2 * d + side, cart,
              &sent[side]);
  MPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
  MPI_Waitall(2, receives[d], MPI_STATUSES_IGNORE);
  for (int side = 0; side < 2; ++side) copy_plane(d, side ? size[d] + 1 : 0, halos[d][side], false);
}

/// Computes the points of a row from lo to below hi.
void sweep_row(int lo, int hi, int j, int k) {
  double* out = &next[at(0, j, k)];
  for (int i = lo; i < hi; ++i) out[i] = 0;
  for (int dk = 0; dk < 3; ++dk)
    for (int dj = 0; dj < 3; ++dj)
      for (int di = 0; di < 3; ++di) {
        const double weight = weights[0][di] * weights[1][dj] * weights[2][dk];
        const double* in = &current[at(0, j + dj - 1, k + dk - 1)];
        for (int i = lo; i < hi; ++i) out[i] += weight * in[i + di - 1];
      }
}

/// Takes a step in one parallel region: the master communicates first, while the others begin with the points that need
/// no halo; then it joins them. Boundary points wait for the barrier behind both.
void take_step() {
#pragma omp parallel
  {
#pragma omp master
    {
      post_receives();
      for (int d = 0; d < 3; ++d) exchange(d);
    }
#pragma omp for collapse(2) schedule(guided)
    for (int k = 2; k < size[2]; ++k)
      for (int j = 2; j < size[1]; ++j) sweep_row(2, size[0], j, k);
#pragma omp for collapse(2)
    for (int k = 1; k <= size[2]; ++k)
      for (int j = 1; j <= size[1]; ++j) {
        const bool whole = k == 1 || k == size[2] || j == 1 || j == size[1];
        sweep_row(1, whole ? size[0] + 1 : 2, j, k);
        if (!whole) sweep_row(std::max(size[0], 2), size[0] + 1, j, k);
      }
  }
}

void report(int steps, double seconds) {
  double largest = 0, squares = 0;
  std::uint64_t checksum = 0;
  for (int k = 1; k <= size[2]; ++k)
    for (int j = 1; j <= size[1]; ++j)
      for (int i = 1; i <= size[0]; ++i) {
        const double value = current[at(i, j, k)], error = std::fabs(value - exact(i, j, k, steps));
        const std::uint64_t point = (std::uint64_t(begin[2] + k) * n + begin[1] + j) * n + begin[0] + i;
        std::uint64_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        checksum += bits * (2 * point + 1);
        largest = std::fmax(largest, error), squares += error * error;
      }
  MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_DOUBLE, MPI_MAX, cart);
  MPI_Allreduce(MPI_IN_PLACE, &squares, 1, MPI_DOUBLE, MPI_SUM, cart);
  MPI_Allreduce(MPI_IN_PLACE, &checksum, 1, MPI_UINT64_T, MPI_SUM, cart);
  if (rank == 0)
    std::printf("%d^3 points, %d steps, %d x %d: %.3f GF, error %.3e (max) %.3e (L2), checksum %016llx\n", n, steps,
                tasks, omp_get_max_threads(), 53e-9 * n * n * n * steps / seconds, largest,
                std::sqrt(squares / n / n / n), static_cast<unsigned long long>(checksum));
}

int main(int argc, char** argv) {
  int threads;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &tasks);
  if (argc < 3) return std::fprintf(stderr, "usage: %s CELLS STEPS [CX CY CZ NU]\n", argv[0]), 2;
  const int steps = std::atoi(argv[2]);
  n = std::atoi(argv[1]);
  if (argc > 6)
    c[0] = std::atof(argv[3]), c[1] = std::atof(argv[4]), c[2] = std::atof(argv[5]), nu = std::atof(argv[6]);
  set_weights();
  divide();
  for (int k = 1; k <= size[2]; ++k)
    for (int j = 1; j <= size[1]; ++j)
      for (int i = 1; i <= size[0]; ++i) current[at(i, j, k)] = exact(i, j, k, 0);
  MPI_Barrier(cart);
  const double start = MPI_Wtime();
  for (int step = 0; step < steps; ++step) {
    take_step();
    std::swap(current, next);
  }
  MPI_Barrier(cart);
  report(steps, MPI_Wtime() - start);
  MPI_Finalize();
}
