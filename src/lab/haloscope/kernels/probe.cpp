#include "haloscope/kernels/probe.hpp"

#include "haloscope/kernels/isa_table.hpp"

namespace haloscope {

void copy_bytes(CopyKind kind, void* out, const void* in, std::size_t bytes, const std::string& isa) {
  const IsaTable& table = isa_table(isa);
  const CopyFunction copies[] = {table.copy_plain, table.copy_stream, table.copy_stream4};
  copies[static_cast<int>(kind)](out, in, bytes);
}

MemoryPass find_memory_pass(Pass pass, const std::string& isa) { return isa_table(isa).pass[static_cast<int>(pass)]; }

double run_fma(std::int64_t count, const std::string& isa) { return isa_table(isa).fma_burst(count); }

}  // namespace haloscope
