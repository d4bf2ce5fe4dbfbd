// Chooses kernels by form, scalar type and the instruction sets of this CPU.
#include "haloscope/app_kernels.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/kernels/isa_table.hpp"
#include "haloscope/kernels/kernel_table.hpp"

namespace haloscope {

std::vector<const IsaTable*> usable_isas() {
  std::vector<const IsaTable*> found;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v4 && isa_table_avx512()) found.push_back(isa_table_avx512());
  if (v3 && isa_table_avx2()) found.push_back(isa_table_avx2());
#endif
  found.push_back(isa_table_baseline());
  return found;
}

const IsaTable& isa_table(const std::string& isa) {
  for (const IsaTable* table : usable_isas()) {
    if (isa.empty() || isa == table->isa) return *table;
  }
  throw UsageError("instruction set '" + isa + "' is not in this build or not in this CPU; choose one of " +
                   join(kernel_isas(), ", "));
}

std::vector<std::string> kernel_isas() {
  std::vector<std::string> names;
  for (const IsaTable* table : usable_isas()) names.emplace_back(table->isa);
  return names;
}

namespace {

/// The tables that the known apps have for an instruction set.
std::vector<const KernelTable*> tables_of_apps(const std::string& isa) {
  std::vector<const KernelTable*> tables;
  for (const AppKernels* kernels : known_kernels())
    for (const AppKernels::Isa& one : kernels->isas)
      if (one.name == isa && one.table() != nullptr) tables.push_back(one.table());
  return tables;
}

}  // namespace

Kernel find_kernel(const std::string& form, Real real, const std::string& isa) {
  const auto isas = isa.empty() ? kernel_isas() : std::vector<std::string>{isa_table(isa).isa};
  std::vector<std::string> forms;
  for (const std::string& name : isas)
    for (const KernelTable* table : tables_of_apps(name))
      for (const auto& entry : std::span(table->kernel, static_cast<std::size_t>(table->entries))) {
        if (entry.form == form && entry.real == real) return entry.kernel;
        if (!has(forms, entry.form)) forms.emplace_back(entry.form);
      }
  if (has(forms, form)) throw UsageError("kernel '" + form + "' exists in double precision only; choose f64");
  throw UsageError("there is no kernel '" + form + "'; choose one of " + join(forms, ", "));
}

}  // namespace haloscope
