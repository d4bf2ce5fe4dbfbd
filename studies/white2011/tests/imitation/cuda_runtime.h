// A stand-in of CUDA for tests of the programs with a GPU: threads of a block are fibers of one CPU thread, blocks run
// sequentially. Streams run their work when it is enqueued or, with IMITATED_STREAMS=late, when they are synchronised:
// the two extremes of what a GPU may do. Memory begins with NaN. Launches `kernel<<<blocks, threads>>>(...)` must have
// been replaced by `imitate([=] { kernel(...); }, blocks, threads)`. With IMITATED_CALLS, a program prints the numbers
// of its launches and copies when it ends.
#pragma once

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ static  // one block at a time

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
inline dim3 threadIdx, blockIdx, blockDim;

using cudaStream_t = std::vector<std::function<void()>>*;
enum cudaError_t { cudaSuccess, cudaErrorUnknown };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum { cudaStreamNonBlocking = 1 };

namespace imitation {

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  dim3 index;
  bool done = false;
};

inline ucontext_t scheduler;
inline Fiber* running = nullptr;
inline const std::function<void()>* kernel = nullptr;

struct Calls {
  int launches = 0, to_device = 0, to_host = 0;
  ~Calls() {
    if (std::getenv("IMITATED_CALLS"))
      std::fprintf(stderr, "launches %d, to device %d, to host %d\n", launches, to_device, to_host);
  }
};
inline Calls calls;

inline void count_copy(cudaMemcpyKind kind) { ++(kind == cudaMemcpyHostToDevice ? calls.to_device : calls.to_host); }

inline void run_fiber() {
  (*kernel)();
  running->done = true;
}

/// Runs the threads of a block from barrier to barrier, in turn.
inline void run_block(const std::function<void()>& body, dim3 threads) {
  constexpr std::size_t stack_bytes = 64 * 1024;
  kernel = &body;
  std::vector<Fiber> fibers(std::size_t(threads.x) * threads.y * threads.z);
  for (std::size_t t = 0; t < fibers.size(); ++t) {
    Fiber& fiber = fibers[t];
    fiber.index =
        dim3(unsigned(t % threads.x), unsigned(t / threads.x % threads.y), unsigned(t / threads.x / threads.y));
    fiber.stack = std::make_unique<char[]>(stack_bytes);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = stack_bytes;
    fiber.context.uc_link = &scheduler;
    makecontext(&fiber.context, run_fiber, 0);
  }
  for (bool left = true; left;) {
    left = false;
    for (Fiber& fiber : fibers)
      if (!fiber.done) {
        running = &fiber;
        threadIdx = fiber.index;
        swapcontext(&scheduler, &fiber.context);
        left = left || !fiber.done;
      }
  }
}

inline void enqueue(cudaStream_t stream, std::function<void()> work) {
  static const char* mode = std::getenv("IMITATED_STREAMS");
  if (stream && mode && std::string(mode) == "late")
    stream->push_back(std::move(work));
  else
    work();
}

inline cudaError_t allocate(double** memory, std::size_t bytes) {
  *memory = static_cast<double*>(std::malloc(bytes));
  std::memset(static_cast<void*>(*memory), 0xff, bytes);
  return cudaSuccess;
}

}  // namespace imitation

/// Suspends a thread until all others of its block have reached the barrier.
inline void __syncthreads() {
  imitation::Fiber* fiber = imitation::running;
  swapcontext(&fiber->context, &imitation::scheduler);
}

inline void imitate(std::function<void()> body, dim3 blocks, dim3 threads, std::size_t = 0,
                    cudaStream_t stream = nullptr) {
  ++imitation::calls.launches;
  imitation::enqueue(stream, [=] {
    blockDim = threads;
    for (unsigned z = 0; z < blocks.z; ++z)
      for (unsigned y = 0; y < blocks.y; ++y)
        for (unsigned x = 0; x < blocks.x; ++x) blockIdx = dim3(x, y, z), imitation::run_block(body, threads);
  });
}

inline const char* cudaGetErrorString(cudaError_t) { return "an error of the imitation"; }
inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
inline cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorUnknown; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaMalloc(double** memory, std::size_t bytes) { return imitation::allocate(memory, bytes); }
inline cudaError_t cudaMallocHost(double** memory, std::size_t bytes) { return imitation::allocate(memory, bytes); }
inline cudaError_t cudaFree(double* memory) { return std::free(memory), cudaSuccess; }
inline cudaError_t cudaFreeHost(double* memory) { return std::free(memory), cudaSuccess; }

inline cudaError_t cudaMemcpy(double* to, const double* from, std::size_t bytes, cudaMemcpyKind kind) {
  imitation::count_copy(kind);
  return std::memcpy(to, from, bytes), cudaSuccess;
}

inline cudaError_t cudaMemcpyAsync(double* to, const double* from, std::size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  imitation::count_copy(kind);
  imitation::enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}

template <class T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, std::size_t bytes) {
  return std::memcpy(&symbol, from, bytes), cudaSuccess;
}

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, int) {
  return *stream = new std::vector<std::function<void()>>, cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) { return delete stream, cudaSuccess; }

inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  for (const auto& work : std::exchange(*stream, {})) work();
  return cudaSuccess;
}
