// Version I: GPU, CPU, messages and copies all overlap; the walls keep messages and copies apart.
//
// usage: OMP_NUM_THREADS=2 mpiexec -n 2 ./i CELLS STEPS [CX CY CZ NU [WALLS]]
#include <cuda_runtime.h>
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
int walls = 1;             // layers of the block that the CPU computes
int neighbours[3][2];      // below and above in each dimension
MPI_Comm cart;
double host_weights[27];
std::vector<double> current, next;  // the task's block with a halo of one point; inside the walls only its boundary
std::vector<double> halos[3][2], sends[3][2];
MPI_Request receives[3][2], sent[2];

void check(cudaError_t code) {
  if (code != cudaSuccess) std::fprintf(stderr, "%s\n", cudaGetErrorString(code)), std::exit(1);
}

void set_weights() {
  double w[3][3];
  for (int d = 0; d < 3; ++d) {
    const double p = c[d] * nu;
    w[d][0] = p * (1 + p) / 2, w[d][1] = 1 - p * p, w[d][2] = p * (p - 1) / 2;
  }
  for (int m = 0; m < 27; ++m) host_weights[m] = w[0][m % 3] * w[1][m / 3 % 3] * w[2][m / 9];
  check(cudaMemcpyToSymbol(weights, host_weights, sizeof host_weights));
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

std::size_t cpu_at(const Shape& s, int i, int j, int k) {
  return (std::size_t(k + 1) * (s.n[1] + 2) + j + 1) * (s.n[0] + 2) + i + 1;
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

void launch_interior(const Shape& s, const double* in, double* out, cudaStream_t stream) {
  const dim3 blocks(blocks_of(s.n[0] - 2, block_x - 2), blocks_of(s.n[1] - 2, block_y - 2));
  sweep_interior<<<blocks, dim3(block_x, block_y), 0, stream>>>(s, in, out);
}

void launch_faces(const Shape& s, const double* in, const Planes& halo, double* out, const Planes& boundary,
                  cudaStream_t stream) {
  for (int d = 0; d < 3; ++d) {
    const int e = d == 0 ? 1 : 0, f = 3 - d - e;
    const dim3 blocks(blocks_of(s.n[e], block_x), blocks_of(s.n[f], block_y), 2);
    sweep_faces<<<blocks, dim3(block_x, block_y), 0, stream>>>(s, d, in, halo, out, boundary);
  }
}

/// Copies between the CPU's block and planes of the GPU's block inside the walls: all points of its halo, or all of its
/// boundary.
void copy_planes(const Shape& s, const Shape& inner, std::vector<double>& field, const Planes& planes, bool halo) {
  for (int d = 0; d < 3; ++d)
    for (int side = 0; side < 2; ++side) {
      const int e = d == 0 ? 1 : 0, f = 3 - d - e, wide_e = halo && e < d, wide_f = halo && f < d;
#pragma omp parallel for
      for (int b = -wide_f; b < inner.n[f] + wide_f; ++b)
        for (int a = -wide_e; a < inner.n[e] + wide_e; ++a) {
          int p[3];
          p[d] = halo ? (side ? inner.n[d] : -1) : (side ? inner.n[d] - 1 : 0);
          p[e] = a, p[f] = b;
          double& outside = planes.plane[d][side][place(inner, d, p)];
          double& inside = field[cpu_at(s, p[0] + walls, p[1] + walls, p[2] + walls)];
          if (halo)
            outside = inside;
          else
            inside = outside;
        }
    }
}

/// Copies the points inside the walls from the CPU's block to the GPU's, or back.
void copy_block(const Shape& s, const Shape& inner, std::vector<double>& block, bool out) {
  for (int k = 0; k < inner.n[2]; ++k)
    for (int j = 0; j < inner.n[1]; ++j)
      for (int i = 0; i < inner.n[0]; ++i) {
        double& inside = current[cpu_at(s, i + walls, j + walls, k + walls)];
        double& copy = block[at(inner, i, j, k)];
        if (out)
          copy = inside;
        else
          inside = copy;
      }
}

/// Copies a plane across dimension d, with the halos of the dimensions before d, into a buffer or out of it.
void copy_plane(const Shape& s, int d, int plane, std::vector<double>& buffer, bool pack) {
  int lo[3], hi[3];
  for (int e = 0; e < 3; ++e) lo[e] = e < d ? -1 : 0, hi[e] = s.n[e] - lo[e];
  lo[d] = plane, hi[d] = plane + 1;
  const int width = hi[0] - lo[0], height = hi[1] - lo[1];
#pragma omp parallel for collapse(2)
  for (int k = lo[2]; k < hi[2]; ++k)
    for (int j = lo[1]; j < hi[1]; ++j)
      for (int i = lo[0]; i < hi[0]; ++i) {
        double& inside = current[cpu_at(s, i, j, k)];
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

/// Starts the messages of a dimension.
void start_exchange(const Shape& s, int d) {
  for (int side = 0; side < 2; ++side) {
    copy_plane(s, d, side ? s.n[d] - 1 : 0, sends[d][side], true);
    MPI_Isend(sends[d][side].data(), int(sends[d][side].size()), MPI_DOUBLE, neighbours[d][side], 2 * d + side, cart,
              &sent[side]);
  }
}

/// Waits for the messages of a dimension and fills the halos; x before y before z, so that corners arrive.
void complete_exchange(const Shape& s, int d) {
  MPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
  MPI_Waitall(2, receives[d], MPI_STATUSES_IGNORE);
  for (int side = 0; side < 2; ++side) copy_plane(s, d, side ? s.n[d] : -1, halos[d][side], false);
}

/// Points from lo to below hi.
struct Box {
  int lo[3], hi[3];
};

void sweep(const Shape& s, const Box& box) {
#pragma omp parallel for collapse(2)
  for (int k = box.lo[2]; k < box.hi[2]; ++k)
    for (int j = box.lo[1]; j < box.hi[1]; ++j) {
      const int width = box.hi[0] - box.lo[0];
      double* out = &next[cpu_at(s, box.lo[0], j, k)];
      for (int i = 0; i < width; ++i) out[i] = 0;
      for (int m = 0; m < 27; ++m) {
        const double* in = &current[cpu_at(s, box.lo[0] + m % 3 - 1, j + m / 3 % 3 - 1, k + m / 9 - 1)];
        for (int i = 0; i < width; ++i) out[i] += host_weights[m] * in[i];
      }
    }
}

/// Sweeps the two walls across dimension d of a box, some layers thick; walls across later dimensions own common edges.
void sweep_walls(const Shape& s, Box box, int layers, int d) {
  for (int e = d + 1; e < 3; ++e) box.lo[e] += layers, box.hi[e] -= layers;
  Box low = box, high = box;
  low.hi[d] = box.lo[d] + layers;
  high.lo[d] = box.hi[d] - layers;
  sweep(s, low);
  sweep(s, high);
}

void report(const Shape& s, int steps, double seconds) {
  double largest = 0, squares = 0;
  std::uint64_t checksum = 0;
  for (int k = 0; k < s.n[2]; ++k)
    for (int j = 0; j < s.n[1]; ++j)
      for (int i = 0; i < s.n[0]; ++i) {
        const double value = current[cpu_at(s, i, j, k)], error = std::fabs(value - exact(i, j, k, steps));
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
    std::printf("%d^3 points, %d steps, %d x %d, GPU: %.3f GF, error %.3e (max) %.3e (L2), checksum %016llx\n", n,
                steps, tasks, omp_get_max_threads(), 53e-9 * n * n * n * steps / seconds, largest,
                std::sqrt(squares / n / n / n), static_cast<unsigned long long>(checksum));
}

int main(int argc, char** argv) {
  int threads;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &tasks);
  if (argc < 3) return std::fprintf(stderr, "usage: %s CELLS STEPS [CX CY CZ NU [WALLS]]\n", argv[0]), 2;
  const int steps = std::atoi(argv[2]);
  n = std::atoi(argv[1]);
  if (argc > 6)
    c[0] = std::atof(argv[3]), c[1] = std::atof(argv[4]), c[2] = std::atof(argv[5]), nu = std::atof(argv[6]);
  if (argc > 7) walls = std::atoi(argv[7]);
  int devices;
  check(cudaGetDeviceCount(&devices));
  check(cudaSetDevice(rank % devices));
  set_weights();
  const Shape s = divide();
  const Shape inner = {{s.n[0] - 2 * walls, s.n[1] - 2 * walls, s.n[2] - 2 * walls}};
  if (walls < 1 || std::min({inner.n[0], inner.n[1], inner.n[2]}) < 1)
    return std::fprintf(stderr, "walls of %d layers leave no block for the GPU\n", walls), MPI_Abort(cart, 2);
  const Box whole = {{0, 0, 0}, {s.n[0], s.n[1], s.n[2]}};
  const Box inside = {{1, 1, 1}, {s.n[0] - 1, s.n[1] - 1, s.n[2] - 1}};  // needs no halo of other tasks
  current.resize(cpu_at(s, -1, -1, s.n[2] + 1)), next.resize(current.size());
  std::vector<double> block(at(inner, 0, 0, inner.n[2]));
  for (int k = 0; k < s.n[2]; ++k)
    for (int j = 0; j < s.n[1]; ++j)
      for (int i = 0; i < s.n[0]; ++i) current[cpu_at(s, i, j, k)] = exact(i, j, k, 0);
  copy_block(s, inner, block, true);
  for (int d = 0; d < 3; ++d)
    for (int side = 0; side < 2; ++side)
      halos[d][side].resize(plane_points(s, d)), sends[d][side].resize(plane_points(s, d));

  const std::size_t bytes = block.size() * sizeof(double), plane_bytes = all_planes_bytes(inner);
  double *gpu_current, *gpu_next, *halo, *boundary, *host_halo, *host_boundary;
  check(cudaMalloc(&gpu_current, bytes));
  check(cudaMalloc(&gpu_next, bytes));
  check(cudaMalloc(&halo, plane_bytes));
  check(cudaMalloc(&boundary, plane_bytes));
  check(cudaMallocHost(&host_halo, plane_bytes));
  check(cudaMallocHost(&host_boundary, plane_bytes));
  check(cudaMemcpy(gpu_current, block.data(), bytes, cudaMemcpyHostToDevice));
  cudaStream_t interior, faces;
  check(cudaStreamCreateWithFlags(&interior, cudaStreamNonBlocking));
  check(cudaStreamCreateWithFlags(&faces, cudaStreamNonBlocking));
  MPI_Barrier(cart);
  const double start = MPI_Wtime();
  for (int step = 0; step < steps; ++step) {
    launch_interior(inner, gpu_current, gpu_next, interior);
    post_receives();
    copy_planes(s, inner, current, planes_in(host_halo, inner), true);
    check(cudaMemcpyAsync(halo, host_halo, plane_bytes, cudaMemcpyHostToDevice, faces));
    launch_faces(inner, gpu_current, planes_in(halo, inner), gpu_next, planes_in(boundary, inner), faces);
    check(cudaMemcpyAsync(host_boundary, boundary, plane_bytes, cudaMemcpyDeviceToHost, faces));
    for (int d = 0; d < 3; ++d) {
      start_exchange(s, d);
      sweep_walls(s, inside, walls - 1, d);
      complete_exchange(s, d);
    }
    for (int d = 0; d < 3; ++d) sweep_walls(s, whole, 1, d);
    check(cudaStreamSynchronize(interior));
    check(cudaStreamSynchronize(faces));
    copy_planes(s, inner, next, planes_in(host_boundary, inner), false);
    std::swap(current, next);
    std::swap(gpu_current, gpu_next);
  }
  MPI_Barrier(cart);
  const double seconds = MPI_Wtime() - start;
  check(cudaMemcpy(block.data(), gpu_current, bytes, cudaMemcpyDeviceToHost));
  copy_block(s, inner, block, false);
  report(s, steps, seconds);
  for (double* memory : {gpu_current, gpu_next, halo, boundary}) check(cudaFree(memory));
  for (double* memory : {host_halo, host_boundary}) check(cudaFreeHost(memory));
  for (cudaStream_t stream : {interior, faces}) check(cudaStreamDestroy(stream));
  MPI_Finalize();
}
