// Running another program from inside this one, and the library call that does so, in a process without MPI_Init.
#include "haloscope/best.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "haloscope/advice/program.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/error.hpp"
#include "stub_program.hpp"

namespace haloscope {
namespace {

using test::StubProgram;

/// The text of the error of type E that `call` throws; a failure when it throws none, or another.
template <class E, class F>
std::string complaint(F call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Whether a process is gone, or dead and not collected yet.
bool is_dead(const std::string& id) {
  std::ifstream file("/proc/" + id + "/stat");
  std::string word, state;
  return !(file >> word >> word >> state) || state == "Z";
}

TEST(Program, LeavesItsCodeAndAllThatItWroteHoweverLong) {
  const StubProgram stub("head -c 300000 /dev/zero | tr '\\0' x; echo \"$1 $2\" >&2; exit 3");
  const Ended ended = run_program(stub.path(), {"one word", "two"}, 20);
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(ended.out, std::string(300000, 'x'));
  EXPECT_EQ(ended.err, "one word two\n");
}

TEST(Program, HasNothingToReadAndNoneOfThisProcesssFiles) {
  const StubProgram stub("cat; [ -e /proc/self/fd/77 ] && echo open || echo closed");
  const int file = open("/dev/null", O_RDONLY);
  ASSERT_EQ(dup2(file, 77), 77);
  EXPECT_EQ(run_program(stub.path(), {}, 20).out, "closed\n");
  close(77);
  close(file);
}

TEST(Program, KnowsNothingOfTheLauncherButTheRestOfTheEnvironment) {
  const StubProgram stub("env");
  const char* launcher[] = {"PMI_RANK", "PMI_FD",         "PMIX_NAMESPACE", "OMPI_COMM_WORLD_RANK",
                            "HYDRA_X",  "MPI_LOCALRANKID"};
  for (const char* name : launcher) setenv(name, "1", 0);
  setenv("HALOSCOPE_KEPT", "1", 1);
  const std::string seen = "\n" + run_program(stub.path(), {}, 20).out;
  for (const char* name : launcher) {
    EXPECT_FALSE(contains(seen, std::string("\n") + name + "=")) << name;
    unsetenv(name);
  }
  EXPECT_TRUE(contains(seen, "\nHALOSCOPE_KEPT=1\n"));
  unsetenv("HALOSCOPE_KEPT");
}

TEST(Program, IsKilledWithWhatItStartedWhenItTakesTooLong) {
  const StubProgram stub("sleep 600 & echo $! > \"$HERE/child\"; wait");
  const std::string text = complaint<Error>([&] { run_program(stub.path(), {}, 0.5); });
  EXPECT_TRUE(contains(text, "has not ended after 0.5 s")) << text;
  const std::string child = stub.file("child");
  ASSERT_FALSE(child.empty());
  const std::string id = child.substr(0, child.find('\n'));
  const double end = now_s() + 60;
  while (!is_dead(id) && now_s() < end) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(is_dead(id));
}

TEST(Program, ThatHasEndedIsNotWaitedForBecauseOfWhatItLeavesRunning) {
  const StubProgram stub("sleep 600 & echo $! > \"$HERE/child\"; echo said");
  const Ended ended = run_program(stub.path(), {}, 60);  // else it would not have ended after 60 s
  EXPECT_EQ(ended.out, "said\n");
  EXPECT_EQ(ended.code, 0);
  const std::string child = stub.file("child");
  EXPECT_FALSE(is_dead(child.substr(0, child.find('\n'))));
  kill(std::stoi(child), SIGKILL);
}

TEST(Program, ThatClosesItsOutputEarlyIsWaitedFor) {
  const StubProgram stub("echo said; exec >&- 2>&-; sleep 0.2; exit 5");
  const Ended ended = run_program(stub.path(), {}, 20);
  EXPECT_EQ(ended.out, "said\n");
  EXPECT_EQ(ended.code, 5);
}

TEST(Program, WorksWhereThisProcessHasItsChildrenCollectedForIt) {
  const StubProgram stub("echo said");
  const auto before = signal(SIGCHLD, SIG_IGN);
  const Ended ended = run_program(stub.path(), {}, 20);
  signal(SIGCHLD, before);
  EXPECT_EQ(ended.out, "said\n");
  EXPECT_EQ(ended.code, -1);
}

TEST(Program, ThatIsNotThereIsUnavailable) {
  const std::string text = complaint<UnavailableError>([] { run_program("/nowhere/haloscope", {}, 5); });
  EXPECT_EQ(text, "cannot start '/nowhere/haloscope': No such file or directory");
}

// ---- the library call ----

BestRequest small() {
  return {.grid = {2, {64, 64, 1}, {true, true, false}}, .ranks = 4, .profile = test::toy_profile()};
}

BestRequest asking(const StubProgram& stub) {
  BestRequest request = small();
  request.options.program = stub.path();
  return request;
}

TEST(BestBeforeMpi, GivesTheWholeChoiceOfTheModel) {
  BestRequest request = small();
  request.options.depths = {1, 2};
  request.shared_memory = false;
  const Best found = best(request);
  EXPECT_EQ(found.choice.app, "laplace2d");
  EXPECT_EQ(found.choice.ranks, 4);
  EXPECT_EQ(illegal(found.choice), "");
  EXPECT_FALSE(needs_shared_fields(found.choice.strategy));
  EXPECT_EQ(found.halo, found.choice.depth);
  EXPECT_EQ(found.memory, MemoryKind::own);
  EXPECT_EQ(found.profile, "toy");
  EXPECT_GT(found.time_s, 1e-7);
  EXPECT_LT(found.time_s, 1e-3);
  EXPECT_NE(found.reason, "");
  ASSERT_FALSE(found.notes.empty());
  EXPECT_TRUE(contains(found.notes[0], "that of laplace2d")) << found.notes[0];
  for (const Choice& other : found.equals) EXPECT_EQ(illegal(other), "");
}

TEST(BestBeforeMpi, ReadsEveryPartOfTheAnswer) {
  const StubProgram stub(test::answering);
  const Best found = best(asking(stub));
  EXPECT_EQ(to_string(found.choice.strategy), "ordered/shared");
  EXPECT_EQ(found.choice.schedule->name, "split");
  EXPECT_EQ(found.choice.substeps, Substeps::shrink);
  EXPECT_EQ(found.choice.depth, 2);
  EXPECT_EQ(found.choice.grid.dims, 2);
  EXPECT_EQ(found.choice.grid.cells[1], 48);
  EXPECT_FALSE(found.choice.grid.periodic[1]);
  EXPECT_EQ(found.choice.process_grid, "2x2");
  EXPECT_DOUBLE_EQ(found.time_s, 1.5e-5);
  ASSERT_TRUE(found.interval);
  EXPECT_DOUBLE_EQ((*found.interval)[1], 2e-5);
  EXPECT_EQ(found.halo, 2);
  EXPECT_EQ(found.memory, MemoryKind::shared);
  EXPECT_FALSE(found.wins());
  ASSERT_EQ(found.equals.size(), 1u);
  EXPECT_EQ(to_string(found.equals[0].strategy), "ordered/p2p");
  EXPECT_EQ(found.notes, std::vector<std::string>{"one"});
}

TEST(BestBeforeMpi, FindsTheProgramByTheEnvironment) {
  const StubProgram stub(test::answering);
  setenv("HALOSCOPE_PROGRAM", stub.path().c_str(), 1);
  EXPECT_EQ(best(small()).profile, "toy");
  EXPECT_NE(stub.file("asked"), "");
  setenv("HALOSCOPE_PROGRAM", "/nowhere/haloscope", 1);
  const std::string text = complaint<UnavailableError>([] { best(small()); });
  unsetenv("HALOSCOPE_PROGRAM");
  EXPECT_TRUE(contains(text, "cannot start '/nowhere/haloscope'")) << text;
  EXPECT_TRUE(contains(text, "install it with pip, or set HALOSCOPE_PROGRAM")) << text;
}

TEST(BestBeforeMpi, ThrowsWhatTheProgramSays) {
  for (int code : {1, 2, 3}) {
    const StubProgram stub("echo 'a warning' >&2; echo 'haloscope: this is wrong; do that' >&2; exit " +
                           std::to_string(code));
    try {
      best(asking(stub));
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "this is wrong; do that");
      EXPECT_EQ(static_cast<int>(error.exit_code()), code);
    }
  }
}

TEST(BestBeforeMpi, RefusesAProgramThatAnswersSomethingElse) {
  for (const char* script :
       {"echo hello", "echo '{}'", "echo '{\"schema\": \"haloscope.best\", \"schema_version\": 2}'"})
    EXPECT_TRUE(contains(complaint<Error>([&] { best(asking(StubProgram(script))); }), "no answer that this library"));
  const StubProgram lacking("echo '{\"schema\": \"haloscope.best\", \"schema_version\": 1}'");
  EXPECT_TRUE(contains(complaint<Error>([&] { best(asking(lacking)); }), "lacks something"));
  const StubProgram crashing("echo oops >&2; kill -SEGV $$");
  EXPECT_TRUE(contains(complaint<Error>([&] { best(asking(crashing)); }), "ended with code 139: oops"));
}

TEST(BestBeforeMpi, EndsAProgramThatTakesTooLong) {
  const StubProgram stub("sleep 30");
  BestRequest request = asking(stub);
  request.options.limit_s = 0.2;
  EXPECT_TRUE(contains(complaint<Error>([&] { best(request); }), "has not ended after 0.2 s"));
}

TEST(BestBeforeMpi, RefusesRequestsThatCannotBeRight) {
  BestRequest request = small();
  request.profile = "/nowhere/machine.json";
  EXPECT_TRUE(contains(complaint<UsageError>([&] { best(request); }), "cannot read the profile /nowhere/machine.json"));
  request.profile = "";
  EXPECT_TRUE(contains(complaint<UsageError>([&] { best(request); }), "haloscope calibrate"));
  const Layout layout({2, {64, 64, 1}, {}}, {2, 2, 1});
  const Quantity pairs{"pairs", 16};
  EXPECT_TRUE(contains(complaint<UsageError>([&] { best_request(layout, pairs, "p"); }), "not of 16"));
}

TEST(BestBeforeMpi, AProfileWithoutTheKernelNeedsTheProgramsOwnCost) {
  BestRequest request = small();
  request.grid = {3, {32, 32, 32}, {true, true, true}};
  request.options.depths = {1};
  const std::string text = complaint<UnavailableError>([&] { best(request); });
  EXPECT_TRUE(contains(text, "no cost of kernel 'laplace3d/star/f64'")) << text;
  EXPECT_TRUE(contains(text, "seconds_per_cell")) << text;
  request.options.seconds_per_cell = 1e-6;  // 8192 cells a rank: dearer than all messages together
  const Best found = best(request);
  EXPECT_GE(found.time_s, 8192e-6);
  EXPECT_LT(found.time_s, 1.1 * 8192e-6);
}

}  // namespace
}  // namespace haloscope
