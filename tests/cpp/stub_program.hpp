// A program made for one test: a shell script in its own folder.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace haloscope::test {

/// `$HERE` in the script is its folder.
class StubProgram {
 public:
  explicit StubProgram(const std::string& script) {
    std::string name = (std::filesystem::temp_directory_path() / "haloscope-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    folder_ = name;
    std::ofstream(path()) << "#!/bin/sh\nHERE='" << name << "'\n" << script << "\n";
    chmod(path().c_str(), 0700);
  }
  ~StubProgram() { std::filesystem::remove_all(folder_); }
  StubProgram(const StubProgram&) = delete;
  StubProgram& operator=(const StubProgram&) = delete;

  std::string path() const { return (folder_ / "program").string(); }
  /// What the script has written to a file of its folder; empty when there is none.
  std::string file(const std::string& name) const {
    std::ifstream in(folder_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::filesystem::path folder_;
};

/// A script that answers best() with a choice that cannot be told from another; the second word goes to file `asked`.
inline const std::string answering = R"(printf %s "$2" > "$HERE/asked"
cat <<'END'
{"schema": "haloscope.best", "schema_version": 1, "profile": "toy", "time_s": 1.5e-05, "interval": [1e-05, 2e-05],
 "reason": "latency-bound: 4 messages of 512 B; exchange 40% of a step", "notes": ["one"], "halo": 2,
 "shared_memory": true,
 "choice": {"app": "laplace2d", "form": "", "real": "f64", "cells": [64, 48], "periodic": [true, false], "ranks": 4,
  "process_grid": "2x2", "threads": 1, "strategy": "ordered/shared", "schedule": "split", "depth": 2,
  "substeps": "shrink", "sharing": "guided", "nodes": 0, "placement": "block"},
 "equals": [{"app": "laplace2d", "form": "", "real": "f64", "cells": [64, 48], "periodic": [true, false], "ranks": 4,
  "process_grid": "2x2", "threads": 1, "strategy": "ordered/p2p", "schedule": "bulk", "depth": 1, "substeps": "full",
  "sharing": "guided", "nodes": 0, "placement": "block"}]}
END)";

/// The machine profile made by hand that the tests share.
inline std::string toy_profile() { return HALOSCOPE_DATA "/../../../tests/python/profiles/toy.json"; }

}  // namespace haloscope::test
