// Imitated devices of the C interface.
#include "haloscope/imitated.hpp"

#include "bindings/c/mpi/bridge.hpp"

using namespace haloscope;
using namespace haloscope::c;

hs_status hs_imitated_allocate(uint64_t bytes, int32_t device, void** memory) {
  return guarded([&] { needed(memory, "memory") = imitated::allocate(bytes, device); });
}

hs_status hs_imitated_release(void* memory) {
  return guarded([&] { imitated::release(memory); });
}

hs_status hs_imitated_copy(void* to, const void* from, uint64_t bytes) {
  return guarded([&] { imitated::copy(to, from, bytes); });
}

hs_status hs_imitated_make_stream(int32_t device, void** stream) {
  return guarded([&] { needed(stream, "stream") = imitated::make_stream(device).native; });
}

hs_status hs_imitated_free_stream(void* stream) {
  return guarded([&] { imitated::free_stream({stream}); });
}

hs_status hs_imitated_launch(void* stream, void (*kernel)(void* context), void* context) {
  return guarded([&] {
    if (kernel == nullptr) throw UsageError("argument 'kernel' is NULL; pass a function");
    imitated::launch({stream}, [=] { kernel(context); });
  });
}

hs_status hs_imitated_finish(void* stream) {
  return guarded([&] { imitated::finish({stream}); });
}
