// Version E: all points stay in the memory of a GPU, and a step is one kernel.
//
// usage: ./e CELLS STEPS [CX CY CZ NU]
#include <cuda_runtime.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

constexpr int block_x = 32, block_y = 8;  // threads, with a ring that only loads

int n;                            // points per dimension
double c[3] = {1, 1, 1}, nu = 1;  // velocity; time step over grid spacing
__constant__ double weights[27];  // x fastest

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

/// Returns the solution: a Gaussian in the middle of a periodic unit cube, moved by some steps.
double exact(int i, int j, int k, int step) {
  const double position[] = {(i + 0.5) / n, (j + 0.5) / n, (k + 0.5) / n};
  double squares = 0;
  for (int d = 0; d < 3; ++d) {
    double distance = position[d] - 0.5 - c[d] * nu * step / n;
    distance -= std::round(distance);
    squares += distance * distance;
  }
  return std::exp(-50 * squares);
}

__host__ __device__ std::size_t at(int n, int i, int j, int k) { return (std::size_t(k) * n + j) * n + i; }

__device__ int wrap(int n, int i) { return i < 0 ? i + n : i >= n ? i - n : i; }

/// Adds the products of one layer of the stencil, dk of which are below it, to a sum of the thread's point.
__device__ double add_layer(double sum, const double (*slab)[block_x], int dk) {
  for (int dj = 0; dj < 3; ++dj)
    for (int di = 0; di < 3; ++di)
      sum += weights[(dk * 3 + dj) * 3 + di] * slab[threadIdx.y + dj - 1][threadIdx.x + di - 1];
  return sum;
}

/// Computes a tile of x and y while passing through z, a slab in shared memory and two partial sums in registers.
__global__ void sweep(int n, const double* in, double* out) {
  __shared__ double slab[block_y][block_x];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int i = blockIdx.x * (block_x - 2) + tx - 1, j = blockIdx.y * (block_y - 2) + ty - 1;
  const bool loads = i <= n && j <= n;
  const bool computes = tx > 0 && tx < block_x - 1 && ty > 0 && ty < block_y - 1 && i < n && j < n;
  double below = 0, here = 0;  // sums of the points under the slab and in it
  for (int k = -1; k <= n; ++k) {
    __syncthreads();
    if (loads) slab[ty][tx] = in[at(n, wrap(n, i), wrap(n, j), wrap(n, k))];
    __syncthreads();
    if (!computes) continue;
    if (k > 0) out[at(n, i, j, k - 1)] = add_layer(below, slab, 2);
    below = add_layer(here, slab, 1);
    here = add_layer(0, slab, 0);
  }
}

void report(const std::vector<double>& state, int steps, double seconds) {
  double largest = 0, squares = 0;
  std::uint64_t checksum = 0;
  for (int k = 0; k < n; ++k)
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < n; ++i) {
        const double value = state[at(n, i, j, k)], error = std::fabs(value - exact(i, j, k, steps));
        std::uint64_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        checksum += bits * (2 * ((std::uint64_t(k + 1) * n + j + 1) * n + i + 1) + 1);
        largest = std::fmax(largest, error), squares += error * error;
      }
  std::printf("%d^3 points, %d steps, GPU: %.3f GF, error %.3e (max) %.3e (L2), checksum %016llx\n", n, steps,
              53e-9 * n * n * n * steps / seconds, largest, std::sqrt(squares / n / n / n),
              static_cast<unsigned long long>(checksum));
}

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: %s CELLS STEPS [CX CY CZ NU]\n", argv[0]), 2;
  const int steps = std::atoi(argv[2]);
  n = std::atoi(argv[1]);
  if (argc > 6)
    c[0] = std::atof(argv[3]), c[1] = std::atof(argv[4]), c[2] = std::atof(argv[5]), nu = std::atof(argv[6]);
  set_weights();
  std::vector<double> state(at(n, 0, 0, n));
  for (int k = 0; k < n; ++k)
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < n; ++i) state[at(n, i, j, k)] = exact(i, j, k, 0);
  const std::size_t bytes = state.size() * sizeof(double);
  double *current, *next;
  check(cudaMalloc(&current, bytes));
  check(cudaMalloc(&next, bytes));
  check(cudaMemcpy(current, state.data(), bytes, cudaMemcpyHostToDevice));
  const dim3 threads(block_x, block_y), blocks((n - 1) / (block_x - 2) + 1, (n - 1) / (block_y - 2) + 1);
  check(cudaDeviceSynchronize());
  const auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < steps; ++step) {
    sweep<<<blocks, threads>>>(n, current, next);
    std::swap(current, next);
  }
  check(cudaDeviceSynchronize());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  check(cudaMemcpy(state.data(), current, bytes, cudaMemcpyDeviceToHost));
  report(state, steps, seconds.count());
  check(cudaFree(current));
  check(cudaFree(next));
}
