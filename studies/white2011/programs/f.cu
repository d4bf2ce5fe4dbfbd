// Version F: points stay on GPUs; halos travel through the hosts before each step, and nothing overlaps.
//
// usage: mpiexec -n 2 ./f CELLS STEPS [CX CY CZ NU]
#include <cuda_runtime.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

constexpr int block_x = 32, block_y = 8;  // threads, with a ring that only loads

/// Points of a block in each dimension.
struct Shape {
  int n[3];
};

/// Planes on both sides of a block, one allocation: the points of its boundary, or the halo in front of it. A plane
/// across y has the halos across x, a plane across z both, so that corners arrive with later messages.
struct Planes {
  double* plane[3][2];
};

int n;                            // points per dimension
double c[3] = {1, 1, 1}, nu = 1;  // velocity; time step over grid spacing
__constant__ double weights[27];  // x fastest

int tasks, rank, grid[3];  // tasks, also per dimension
int begin[3];              // this task's block begins here
int neighbours[3][2];      // below and above in each dimension
MPI_Comm cart;

void check(cudaError_t code) {
  if (code != cudaSuccess) std::fprintf(stderr, "%s\n", cudaGetErrorString(code)), std::exit(1);
}

void set_weights() {
  double host[27], w[3][3];
  for (int d = 0; d < 3; ++d) {
    const double p = c[d] * nu;
    w[d][0] = p * (1 + p) / 2, w[d][1] = 1 - p * p, w[d][2] = p * (p - 1) / 2;
  }
  for (int m = 0; m < 27; ++m) host[m] = w[0][m % 3] * w[1][m / 3 % 3] * w[2][m / 9];
  check(cudaMemcpyToSymbol(weights, host, sizeof host));
}

/// Returns this task's block; blocks are as near to cubes as possible, longest in x.
Shape divide() {
  int counts[3] = {0, 0, 0}, coords[3], rings[3] = {1, 1, 1};
  Shape block;
  MPI_Dims_create(tasks, 3, counts);
  for (int d = 0; d < 3; ++d) grid[d] = counts[2 - d];  // the largest count comes first
  MPI_Cart_create(MPI_COMM_WORLD, 3, grid, rings, 0, &cart);
  MPI_Cart_coords(cart, rank, 3, coords);
  for (int d = 0; d < 3; ++d) {
    begin[d] = static_cast<int>(std::int64_t(n) * coords[d] / grid[d]);
    block.n[d] = static_cast<int>(std::int64_t(n) * (coords[d] + 1) / grid[d]) - begin[d];
    MPI_Cart_shift(cart, d, 1, &neighbours[d][0], &neighbours[d][1]);
  }
  return block;
}

/// Returns the solution: a Gaussian in the middle of a periodic unit cube, moved by some steps.
double exact(int i, int j, int k, int step) {
  const double position[] = {(begin[0] + i + 0.5) / n, (begin[1] + j + 0.5) / n, (begin[2] + k + 0.5) / n};
  double squares = 0;
  for (int d = 0; d < 3; ++d) {
    double distance = position[d] - 0.5 - c[d] * nu * step / n;
    distance -= std::round(distance);
    squares += distance * distance;
  }
  return std::exp(-50 * squares);
}

__host__ __device__ std::size_t at(const Shape& s, int i, int j, int k) {
  return (std::size_t(k) * s.n[1] + j) * s.n[0] + i;
}

/// Returns the place of a point in a plane across dimension d.
__host__ __device__ std::size_t place(const Shape& s, int d, const int* p) {
  if (d == 0) return std::size_t(p[2]) * s.n[1] + p[1];
  return std::size_t(p[d == 1 ? 2 : 1] + (d == 2)) * (s.n[0] + 2) + p[0] + 1;
}

std::size_t plane_points(const Shape& s, int d) {
  return d == 0 ? std::size_t(s.n[1]) * s.n[2] : (s.n[0] + 2) * std::size_t(d == 1 ? s.n[2] : s.n[1] + 2);
}

std::size_t all_planes_bytes(const Shape& s) {
  return 2 * sizeof(double) * (plane_points(s, 0) + plane_points(s, 1) + plane_points(s, 2));
}

/// Divides an allocation into planes.
Planes planes_in(double* memory, const Shape& s) {
  Planes planes;
  for (int d = 0; d < 3; ++d)
    for (int side = 0; side < 2; ++side, memory += plane_points(s, d)) planes.plane[d][side] = memory;
  return planes;
}

/// Adds the products of one layer of the stencil, dk of which are below it, to a sum of the thread's point.
__device__ double add_layer(double sum, const double (*slab)[block_x], int dk) {
  for (int dj = 0; dj < 3; ++dj)
    for (int di = 0; di < 3; ++di)
      sum += weights[(dk * 3 + dj) * 3 + di] * slab[threadIdx.y + dj - 1][threadIdx.x + di - 1];
  return sum;
}

/// Computes the points that need no halo: a tile of x and y while passing through z, a slab in shared memory and two
/// partial sums in registers.
__global__ void sweep_interior(Shape s, const double* in, double* out) {
  __shared__ double slab[block_y][block_x];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int i = blockIdx.x * (block_x - 2) + tx, j = blockIdx.y * (block_y - 2) + ty;
  const bool loads = i < s.n[0] && j < s.n[1];
  const bool computes = tx > 0 && tx < block_x - 1 && ty > 0 && ty < block_y - 1 && i < s.n[0] - 1 && j < s.n[1] - 1;
  double below = 0, here = 0;  // sums of the points under the slab and in it
  for (int k = 0; k < s.n[2]; ++k) {
    __syncthreads();
    if (loads) slab[ty][tx] = in[at(s, i, j, k)];
    __syncthreads();
    if (!computes) continue;
    if (k > 1) out[at(s, i, j, k - 1)] = add_layer(below, slab, 2);
    below = add_layer(here, slab, 1);
    here = add_layer(0, slab, 0);
  }
}

/// Returns a point of the block, or of the halo around it.
__device__ double value(const Shape& s, const double* in, const Planes& halo, const int* p) {
  for (int d = 2; d >= 0; --d)
    if (p[d] < 0 || p[d] >= s.n[d]) return halo.plane[d][p[d] > 0][place(s, d, p)];
  return in[at(s, p[0], p[1], p[2])];
}

/// Computes the two faces across dimension d; faces across later dimensions own common edges. The results go to the
/// block, and to all planes of the boundary that hold them.
__global__ void sweep_faces(Shape s, int d, const double* in, Planes halo, double* out, Planes boundary) {
  const int e = d == 0 ? 1 : 0, f = 3 - d - e;
  int p[3];
  p[d] = blockIdx.z ? s.n[d] - 1 : 0;
  p[e] = blockIdx.x * blockDim.x + threadIdx.x + (e > d);
  p[f] = blockIdx.y * blockDim.y + threadIdx.y + (f > d);
  if (p[e] >= s.n[e] - (e > d) || p[f] >= s.n[f] - (f > d)) return;
  double sum = 0;
  for (int m = 0; m < 27; ++m) {
    const int from[] = {p[0] + m % 3 - 1, p[1] + m / 3 % 3 - 1, p[2] + m / 9 - 1};
    sum += weights[m] * value(s, in, halo, from);
  }
  out[at(s, p[0], p[1], p[2])] = sum;
  for (int g = 0; g < 3; ++g) {
    if (p[g] == 0) boundary.plane[g][0][place(s, g, p)] = sum;
    if (p[g] == s.n[g] - 1) boundary.plane[g][1][place(s, g, p)] = sum;
  }
}

int blocks_of(int points, int threads) { return (std::max(points, 1) - 1) / threads + 1; }

void launch_interior(const Shape& s, const double* in, double* out) {
  const dim3 blocks(blocks_of(s.n[0] - 2, block_x - 2), blocks_of(s.n[1] - 2, block_y - 2));
  sweep_interior<<<blocks, dim3(block_x, block_y)>>>(s, in, out);
}

void launch_faces(const Shape& s, const double* in, const Planes& halo, double* out, const Planes& boundary) {
  for (int d = 0; d < 3; ++d) {
    const int e = d == 0 ? 1 : 0, f = 3 - d - e;
    const dim3 blocks(blocks_of(s.n[e], block_x), blocks_of(s.n[f], block_y), 2);
    sweep_faces<<<blocks, dim3(block_x, block_y)>>>(s, d, in, halo, out, boundary);
  }
}

/// Copies received halos of the dimensions before d to the edges of the planes that are sent across d.
void forward_edges(const Shape& s, int d, const Planes& halo, const Planes& boundary) {
  for (int side = 0; side < 2; ++side)
    for (int e = 0; e < d; ++e)
      for (int edge = 0; edge < 2; ++edge) {
        const int r = 3 - d - e;
        int p[3];
        p[d] = side ? s.n[d] - 1 : 0;
        p[e] = edge ? s.n[e] : -1;
        for (p[r] = r < e ? -1 : 0; p[r] < s.n[r] + (r < e); ++p[r])
          boundary.plane[d][side][place(s, d, p)] = halo.plane[e][edge][place(s, e, p)];
      }
}

/// Sends all planes of the boundary, x before y before z. A message that travels up has tag 2 d + 1.
void exchange(const Shape& s, const Planes& halo, const Planes& boundary) {
  MPI_Request receives[3][2], sent[2];
  for (int d = 0; d < 3; ++d)
    for (int side = 0; side < 2; ++side)
      MPI_Irecv(halo.plane[d][side], int(plane_points(s, d)), MPI_DOUBLE, neighbours[d][side], 2 * d + 1 - side, cart,
                &receives[d][side]);
  for (int d = 0; d < 3; ++d) {
    forward_edges(s, d, halo, boundary);
    for (int side = 0; side < 2; ++side)
      MPI_Isend(boundary.plane[d][side], int(plane_points(s, d)), MPI_DOUBLE, neighbours[d][side], 2 * d + side, cart,
                &sent[side]);
    MPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, receives[d], MPI_STATUSES_IGNORE);
  }
}

/// Copies the boundary of a state on the host to its planes.
void pack_boundary(const Shape& s, const std::vector<double>& state, const Planes& boundary) {
  for (int d = 0; d < 3; ++d)
    for (int side = 0; side < 2; ++side) {
      const int e = d == 0 ? 1 : 0, f = 3 - d - e;
      int p[3];
      p[d] = side ? s.n[d] - 1 : 0;
      for (p[f] = 0; p[f] < s.n[f]; ++p[f])
        for (p[e] = 0; p[e] < s.n[e]; ++p[e]) boundary.plane[d][side][place(s, d, p)] = state[at(s, p[0], p[1], p[2])];
    }
}

void report(const Shape& s, const std::vector<double>& state, int steps, double seconds) {
  double largest = 0, squares = 0;
  std::uint64_t checksum = 0;
  for (int k = 0; k < s.n[2]; ++k)
    for (int j = 0; j < s.n[1]; ++j)
      for (int i = 0; i < s.n[0]; ++i) {
        const double value = state[at(s, i, j, k)], error = std::fabs(value - exact(i, j, k, steps));
        const std::uint64_t point = (std::uint64_t(begin[2] + k + 1) * n + begin[1] + j + 1) * n + begin[0] + i + 1;
        std::uint64_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        checksum += bits * (2 * point + 1);
        largest = std::fmax(largest, error), squares += error * error;
      }
  MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_DOUBLE, MPI_MAX, cart);
  MPI_Allreduce(MPI_IN_PLACE, &squares, 1, MPI_DOUBLE, MPI_SUM, cart);
  MPI_Allreduce(MPI_IN_PLACE, &checksum, 1, MPI_UINT64_T, MPI_SUM, cart);
  if (rank == 0)
    std::printf("%d^3 points, %d steps, %d tasks, GPU: %.3f GF, error %.3e (max) %.3e (L2), checksum %016llx\n", n,
                steps, tasks, 53e-9 * n * n * n * steps / seconds, largest, std::sqrt(squares / n / n / n),
                static_cast<unsigned long long>(checksum));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &tasks);
  if (argc < 3) return std::fprintf(stderr, "usage: %s CELLS STEPS [CX CY CZ NU]\n", argv[0]), 2;
  const int steps = std::atoi(argv[2]);
  n = std::atoi(argv[1]);
  if (argc > 6)
    c[0] = std::atof(argv[3]), c[1] = std::atof(argv[4]), c[2] = std::atof(argv[5]), nu = std::atof(argv[6]);
  int devices;
  check(cudaGetDeviceCount(&devices));
  check(cudaSetDevice(rank % devices));
  set_weights();
  const Shape s = divide();
  std::vector<double> state(at(s, 0, 0, s.n[2]));
  for (int k = 0; k < s.n[2]; ++k)
    for (int j = 0; j < s.n[1]; ++j)
      for (int i = 0; i < s.n[0]; ++i) state[at(s, i, j, k)] = exact(i, j, k, 0);

  const std::size_t bytes = state.size() * sizeof(double), plane_bytes = all_planes_bytes(s);
  double *current, *next, *halo, *boundary, *host_halo, *host_boundary;
  check(cudaMalloc(&current, bytes));
  check(cudaMalloc(&next, bytes));
  check(cudaMalloc(&halo, plane_bytes));
  check(cudaMalloc(&boundary, plane_bytes));
  check(cudaMallocHost(&host_halo, plane_bytes));
  check(cudaMallocHost(&host_boundary, plane_bytes));
  check(cudaMemcpy(current, state.data(), bytes, cudaMemcpyHostToDevice));
  pack_boundary(s, state, planes_in(host_boundary, s));
  MPI_Barrier(cart);
  const double start = MPI_Wtime();
  for (int step = 0; step < steps; ++step) {
    exchange(s, planes_in(host_halo, s), planes_in(host_boundary, s));
    check(cudaMemcpy(halo, host_halo, plane_bytes, cudaMemcpyHostToDevice));
    launch_faces(s, current, planes_in(halo, s), next, planes_in(boundary, s));
    launch_interior(s, current, next);
    check(cudaMemcpy(host_boundary, boundary, plane_bytes, cudaMemcpyDeviceToHost));
    std::swap(current, next);
  }
  MPI_Barrier(cart);
  const double seconds = MPI_Wtime() - start;
  check(cudaMemcpy(state.data(), current, bytes, cudaMemcpyDeviceToHost));
  report(s, state, steps, seconds);
  for (double* memory : {current, next, halo, boundary}) check(cudaFree(memory));
  for (double* memory : {host_halo, host_boundary}) check(cudaFreeHost(memory));
  MPI_Finalize();
}
