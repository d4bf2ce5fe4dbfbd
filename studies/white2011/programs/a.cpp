// Version A: a single task, whose threads share the loops.
//
// usage: OMP_NUM_THREADS=4 ./a CELLS STEPS [CX CY CZ NU]
#include <omp.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

int n;                              // points per dimension
double c[3] = {1, 1, 1}, nu = 1;    // velocity; time step over grid spacing
double weights[3][3];               // of each dimension: upstream for c > 0, centre, downstream
std::vector<double> current, next;  // with a halo of one point

std::size_t at(int i, int j, int k) { return (std::size_t(k) * (n + 2) + j) * (n + 2) + i; }

void set_weights() {
  for (int d = 0; d < 3; ++d) {
    const double p = c[d] * nu;
    weights[d][0] = p * (1 + p) / 2, weights[d][1] = 1 - p * p, weights[d][2] = p * (p - 1) / 2;
  }
}

/// Returns the solution: a Gaussian in the middle of a periodic unit cube, moved by some steps.
double exact(int i, int j, int k, int step) {
  const double position[] = {(i - 0.5) / n, (j - 0.5) / n, (k - 0.5) / n};
  double squares = 0;
  for (int d = 0; d < 3; ++d) {
    double distance = position[d] - 0.5 - c[d] * nu * step / n;
    distance -= std::round(distance);
    squares += distance * distance;
  }
  return std::exp(-50 * squares);
}

void fill_halos() {
#pragma omp parallel for
  for (int k = 1; k <= n; ++k)
    for (int j = 1; j <= n; ++j)
      current[at(0, j, k)] = current[at(n, j, k)], current[at(n + 1, j, k)] = current[at(1, j, k)];
#pragma omp parallel for
  for (int k = 1; k <= n; ++k)
    for (int i = 0; i <= n + 1; ++i)
      current[at(i, 0, k)] = current[at(i, n, k)], current[at(i, n + 1, k)] = current[at(i, 1, k)];
#pragma omp parallel for
  for (int j = 0; j <= n + 1; ++j)
    for (int i = 0; i <= n + 1; ++i)
      current[at(i, j, 0)] = current[at(i, j, n)], current[at(i, j, n + 1)] = current[at(i, j, 1)];
}

void sweep() {
#pragma omp parallel for collapse(2)
  for (int k = 1; k <= n; ++k)
    for (int j = 1; j <= n; ++j) {
      double* out = &next[at(1, j, k)];
      std::memset(out, 0, n * sizeof(double));
      for (int dk = 0; dk < 3; ++dk)
        for (int dj = 0; dj < 3; ++dj)
          for (int di = 0; di < 3; ++di) {
            const double weight = weights[0][di] * weights[1][dj] * weights[2][dk];
            const double* in = &current[at(di, j + dj - 1, k + dk - 1)];
            for (int i = 0; i < n; ++i) out[i] += weight * in[i];
          }
    }
}

void report(int steps, double seconds) {
  double largest = 0, squares = 0;
  std::uint64_t checksum = 0;
  for (int k = 1; k <= n; ++k)
    for (int j = 1; j <= n; ++j)
      for (int i = 1; i <= n; ++i) {
        const double value = current[at(i, j, k)], error = std::fabs(value - exact(i, j, k, steps));
        std::uint64_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        checksum += bits * (2 * ((std::uint64_t(k) * n + j) * n + i) + 1);
        largest = std::fmax(largest, error), squares += error * error;
      }
  std::printf("%d^3 points, %d steps, 1 x %d: %.3f GF, error %.3e (max) %.3e (L2), checksum %016llx\n", n, steps,
              omp_get_max_threads(), 53e-9 * n * n * n * steps / seconds, largest, std::sqrt(squares / n / n / n),
              static_cast<unsigned long long>(checksum));
}

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: %s CELLS STEPS [CX CY CZ NU]\n", argv[0]), 2;
  const int steps = std::atoi(argv[2]);
  n = std::atoi(argv[1]);
  if (argc > 6)
    c[0] = std::atof(argv[3]), c[1] = std::atof(argv[4]), c[2] = std::atof(argv[5]), nu = std::atof(argv[6]);
  set_weights();
  current.resize(at(0, 0, n + 2)), next.resize(at(0, 0, n + 2));
  for (int k = 1; k <= n; ++k)
    for (int j = 1; j <= n; ++j)
      for (int i = 1; i <= n; ++i) current[at(i, j, k)] = exact(i, j, k, 0);
  const double start = omp_get_wtime();
  for (int step = 0; step < steps; ++step) {
    fill_halos();
    sweep();
    std::swap(current, next);
  }
  report(steps, omp_get_wtime() - start);
}
