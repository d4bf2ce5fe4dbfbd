// The ranks of a test.
#pragma once

#include <mpi.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/haloscope.hpp"
#include "texts.hpp"

namespace haloscope::test {

inline int world_size() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

inline int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// True in the long tests: HALOSCOPE_LONG is set, and not to 0.
inline bool in_long_tests() {
  const char* text = std::getenv("HALOSCOPE_LONG");
  return text != nullptr && *text != '\0' && *text != '0';
}

/// True if everything is tried instead of a sample: in the long tests. More than three ranks try the sample all the
/// same: two cores would need hours.
inline bool thorough() { return in_long_tests() && world_size() <= 3; }

/// A third of a list, and another third on another number of ranks: ranks that share cores are slow. All of it on one
/// rank and in the long tests.
template <class T>
std::vector<T> sampled(const std::vector<T>& all) {
  if (in_long_tests() || world_size() == 1) return all;
  std::vector<T> some;
  for (std::size_t i = static_cast<std::size_t>(world_size()) % 3; i < all.size(); i += 3) some.push_back(all[i]);
  return some;
}

/// Sets an environment variable while it lives.
class Environment {
 public:
  /// @param value  null: not set.
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Environment() { set(before_ ? before_->c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void set(const char* value) const { value ? setenv(name_, value, 1) : unsetenv(name_); }

  const char* name_;
  std::optional<std::string> before_;
};

/// The reason why an exchange by a strategy cannot be opened with this MPI, the same on all ranks; empty: it can.
/// Collective.
inline std::string lacking(const std::string& strategy, MemoryKind memory = MemoryKind::own) {
  const Grid<2> grid(MPI_COMM_WORLD, {.cells = {10, 12}, .periodic = {true, true}});
  const Field<double, 2> u(grid, {.halo = 1, .memory = memory});
  const std::string error = error_of<UnavailableError>([&] { make_exchange(grid, {u}, strategy); });
  return error == "no error" ? "" : error;
}

}  // namespace haloscope::test
