// Chooses kernels by form, scalar type and the instruction sets of this CPU.
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/kernels/isa_select.hpp"
#include "haloscope/kernels/kernel.hpp"

namespace haloscope {
namespace {

struct IsaChoice {
  const char* name;
  const IsaTable* table;
};

/// Best first; only those this build holds and this CPU runs.
std::vector<IsaChoice> usable() {
  std::vector<IsaChoice> found;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v4 && isa_table_avx512()) found.push_back({"avx512", isa_table_avx512()});
  if (v3 && isa_table_avx2()) found.push_back({"avx2", isa_table_avx2()});
#endif
  found.push_back({"baseline", isa_table_baseline()});
  return found;
}

}  // namespace

const IsaTable& isa_table(const std::string& isa) {
  const auto choices = usable();
  if (isa.empty()) return *choices.front().table;
  for (const auto& choice : choices) {
    if (isa == choice.name) return *choice.table;
  }
  throw UsageError("instruction set '" + isa + "' is not in this build or not in this CPU; choose one of " +
                   join(kernel_isas(), ", "));
}

std::vector<std::string> kernel_isas() {
  std::vector<std::string> names;
  for (const auto& choice : usable()) names.push_back(choice.name);
  return names;
}

Kernel find_kernel(const std::string& form, Real real, const std::string& isa) {
  const IsaTable& table = isa_table(isa);
  std::vector<std::string> forms;
  bool known = false;
  for (int i = 0; i < table.entries; ++i) {
    const auto& entry = table.kernel[i];
    if (entry.form == form && entry.real == real) return entry.kernel;
    known = known || entry.form == form;
    if (forms.empty() || forms.back() != entry.form) forms.push_back(entry.form);
  }
  if (known) {
    throw UsageError("kernel '" + form + "' exists in double precision only; choose f64");
  }
  throw UsageError("there is no kernel '" + form + "'; choose one of " + join(forms, ", "));
}

}  // namespace haloscope
