// Fields in the memory of a device: exchanges and kernels follow each other on one stream, and the host waits only for
// messages.
//   mpiexec -n 2 ./device     on an imitated device; compiled by nvcc (-x cu -fmad=false), on a GPU
#include <haloscope/imitated.hpp>

#include "heat3d.hpp"

#ifdef __CUDACC__
namespace driver {
void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  return cudaMalloc(&memory, bytes), memory;
}
void copy(void* to, const void* from, std::size_t bytes) { cudaMemcpy(to, from, bytes, cudaMemcpyDefault); }
void finish(haloscope::DeviceStream stream) { cudaStreamSynchronize(static_cast<cudaStream_t>(stream.native)); }
haloscope::DeviceStream make_stream() {
  cudaStream_t stream;
  return cudaStreamCreate(&stream), haloscope::DeviceStream{stream};
}
}  // namespace driver
__global__ void heat(Cells old, Cells now) { update(old, now, threadIdx.x, blockIdx.x, blockIdx.y); }
void launch(haloscope::DeviceStream stream, const haloscope::Index& n, const Cells& old, const Cells& now) {
  heat<<<dim3(n[1], n[2]), n[0], 0, static_cast<cudaStream_t>(stream.native)>>>(old, now);
}
#else
namespace driver = haloscope::imitated;
void launch(haloscope::DeviceStream stream, const haloscope::Index& n, const Cells& old, const Cells& now) {
  driver::launch(stream, [=] { sweep({{0, 0, 0}, n}, old, now); });
}
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const haloscope::Grid<3> grid(MPI_COMM_WORLD, {.cells = cells, .periodic = {true, true, true}});
    const haloscope::Index n = grid.cells();
    const std::int64_t row = n[0] + 2, plane = row * (n[1] + 2), first = 1 + row + plane;
    std::vector<double> host(plane * (n[2] + 2));
    const std::size_t bytes = host.size() * sizeof(double);
    std::vector<double*> u;
    while (u.size() < 2) u.push_back(static_cast<double*>(driver::allocate(bytes)) + first);
    fill(grid, {host.data() + first, row, plane});
    driver::copy(u[0] - first, host.data(), bytes);

    auto halo = haloscope::make_exchange(grid, {haloscope::view<double, 3>(grid, u, row, plane, 1)});
    const haloscope::DeviceStream stream = driver::make_stream();
    for (int step = 0; step < steps; ++step) {
      halo.exchange(step % 2, stream);  // after the last kernel, before the next one
      launch(stream, n, {u[step % 2], row, plane}, {u[(step + 1) % 2], row, plane});
    }
    driver::finish(stream);
    driver::copy(host.data(), u[steps % 2] - first, bytes);
    print_bits(grid, {{host.data() + first, row, plane}});
    if (grid.rank() == 0) std::printf("%s\n", halo.report().c_str());
  }
  MPI_Finalize();
}
