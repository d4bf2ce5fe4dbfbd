// The ranks of a test.
#pragma once

#include <mpi.h>

#include <cstdlib>
#include <string>

#include "haloscope/error.hpp"

namespace haloscope::test {

inline int world_size() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// Whether everything is to be tried instead of a sample: HALOSCOPE_LONG is set, and not to 0.
inline bool thorough() {
  const char* text = std::getenv("HALOSCOPE_LONG");
  return text != nullptr && *text != '\0' && *text != '0';
}

/// Sets an environment variable while it lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

/// The text of the error of this kind that `f` throws.
template <class Kind = UsageError, class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Kind& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace haloscope::test
