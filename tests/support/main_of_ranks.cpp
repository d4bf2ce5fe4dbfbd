// Runs GoogleTest on every rank and fails if any rank fails. Rank 0 prints as usual, the others only their failures.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "haloscope/apps/built_in.hpp"

namespace {

class FailuresOnly : public testing::EmptyTestEventListener {
  // Stored here: a query to GoogleTest for the current test while it reports a failure would lock it twice.
  void OnTestStart(const testing::TestInfo& info) override {
    name_ = std::string(info.test_suite_name()) + "." + info.name();
  }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::fprintf(stderr, "[rank %d] %s: %s:%d: %s\n", rank, name_.c_str(),
                 result.file_name() ? result.file_name() : "?", result.line_number(), result.message());
  }
  std::string name_;
};

/// A rank that leaves a test early must not leave the others waiting for it in the next one.
class InStep : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override { MPI_Barrier(MPI_COMM_WORLD); }
};

}  // namespace

int main(int argc, char** argv) {
  setenv("HALOSCOPE_CACHE", "", 1);  // no choices of earlier programs, and none for later ones
  int level = 0, rank = 0;
  haloscope::add_built_in_apps();
  testing::InitGoogleTest(&argc, argv);
  // Suites in which several threads call MPI have it in their names; all others run as haloscope-rank does.
  const bool by_threads = GTEST_FLAG_GET(filter).find("ByThreads") != std::string::npos;
  MPI_Init_thread(&argc, &argv, by_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) {
    delete listeners.Release(listeners.default_result_printer());
    delete listeners.Release(listeners.default_xml_generator());
    listeners.Append(new FailuresOnly);
  }
  listeners.Append(new InStep);
  int failed = RUN_ALL_TESTS(), any = 0;
  MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && any && !failed) std::fprintf(stderr, "another rank failed, see above\n");
  MPI_Finalize();
  return any;
}
