// haloscope-rank: the MPI program. Plain options in, records (JSON Lines) out; usable by hand under any launcher.
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <thread>

#include "haloscope/error.hpp"
#include "haloscope/rank/calibrate/calibrate.hpp"
#include "haloscope/rank/calibrate/microbench.hpp"
#include "haloscope/rank/measure/environment.hpp"
#include "haloscope/rank/measure/measure.hpp"
#include "haloscope/rank/probe/probe.hpp"

namespace haloscope {

namespace {

using Json = nlohmann::json;

struct Arguments {
  std::string configs, output, status, launch_id, inject, findings;
  std::vector<std::string> probe;
  int expect_ranks = 0;
  double watchdog = 0;
  bool info = false;
  std::vector<std::string> app;  // APP and its options, when no configurations file is given
};

Arguments parse_arguments(int argc, char** argv) {
  Arguments a;
  CLI::App cli("haloscope-rank: measure halo exchange strategies (run it under mpiexec or srun)");
  cli.footer(request_help());
  cli.prefix_command();
  cli.add_option("--configs", a.configs, "file with one configuration (APP and options) per line");
  cli.add_option("--output", a.output, "append records to this file instead of standard output");
  cli.add_option("--status", a.status, "file on which each rank shows what it is doing");
  cli.add_option("--launch-id", a.launch_id, "name of this launch in its records");
  cli.add_option("--expect-ranks", a.expect_ranks, "refuse to run with any other number of ranks");
  cli.add_option("--watchdog", a.watchdog, "seconds without progress that end the run; 0: max(10, 20 x median step)");
  cli.add_option("--inject", a.inject, "fault for tests: KIND:rank=R,step=S,seconds=X[,op=NAME]");
  cli.add_option("--probe", a.probe, "ask how this MPI behaves: all, or names of probes; JSON lines")->delimiter(',');
  cli.add_option("--findings", a.findings, "file with what the probes found, kept in every record's environment");
  cli.add_flag("--info", a.info, "print what this build offers as JSON and exit");
  try {
    cli.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << cli.help();
    std::exit(0);
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  a.app = cli.remaining();
  return a;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

/// Records go out as whole lines, each written at once, so that a killed run leaves no broken line before the last.
class Output {
 public:
  explicit Output(const std::string& path) : path_(path) {
    if (path.empty()) return;
    file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file_ < 0)
      throw Error(Exit::failed, "cannot open record file '" + path + "': " + std::strerror(errno) +
                                    "; give --output a file in a directory you may write to");
  }
  ~Output() {
    if (file_ != STDOUT_FILENO) close(file_);
  }
  void write(const Json& record) {
    const std::string line = record.dump() + "\n";
    std::size_t done = 0;
    while (done < line.size()) {
      const ssize_t n = ::write(file_, line.data() + done, line.size() - done);
      if (n <= 0)
        throw Error(Exit::failed, "cannot write a record to '" + path_ + "': " + std::strerror(errno) +
                                      "; the records written before are whole, free some space and run again");
      done += static_cast<std::size_t>(n);
    }
  }

 private:
  std::string path_;
  int file_ = STDOUT_FILENO;
};

std::vector<std::string> read_configurations(const Arguments& a) {
  std::vector<std::string> lines;
  if (a.configs.empty()) {
    std::string line;
    for (const auto& word : a.app) line += "'" + word + "' ";
    return {line};
  }
  std::ifstream file(a.configs);
  if (!file) throw UsageError("cannot read the configurations file '" + a.configs + "'");
  for (std::string line; std::getline(file, line);)
    if (!words_of(line).empty()) lines.push_back(line);
  return lines;
}

/// Several threads call MPI only where they make partitions of messages ready. Being ready for that costs every other
/// transport about 1 us per exchange (MPICH 5, 2 ranks), so it is asked for only where a configuration needs it.
int thread_level(const std::vector<std::string>& lines) {
  for (const auto& line : lines) {
    const auto words = words_of(line);
    const auto threads = std::find(words.begin(), words.end(), "--threads");
    const bool team = threads != words.end() && threads + 1 != words.end() && threads[1] != "1";
    if (team && line.find("partitioned") != std::string::npos) return MPI_THREAD_MULTIPLE;
  }
  return MPI_THREAD_FUNNELED;
}

/// One configuration: its record, or the reason why there is none.
Json run_one(Session& session, const std::string& line, Exit& worst) {
  std::string id;
  try {
    const auto words = words_of(line);
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i] == "--id") id = words[i + 1];
    const std::string mode = words.empty() ? "" : words.front();
    const std::vector<std::string> rest{words.begin() + !words.empty(), words.end()};
    Json record = mode == "microbench"  ? microbench(session, parse_microbench(rest, session.size))
                  : mode == "calibrate" ? calibrate(session, parse_calibrate(rest, session.size))
                                        : measure(session, parse_request(words, session.size));
    if (record["verification"]["status"] == "failed") worst = Exit::failed;
    return record;
  } catch (const Error& error) {
    if (error.exit_code() == Exit::failed) throw;  // met by one rank, and the others may wait for it
    worst = std::max(worst, error.exit_code());
    if (session.rank == 0) std::cerr << "haloscope: " << error.what() << std::endl;
    return {
        {"id", id}, {"kind", "skipped"}, {"reason", error.what()}, {"exit_code", static_cast<int>(error.exit_code())}};
  }
}

/// A foreign mpiexec starts single ranks that know nothing of each other.
void expect_ranks(int expected) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (expected > 0 && expected != size)
    throw UsageError("started with " + std::to_string(size) + " rank(s) instead of " + std::to_string(expected) +
                     ": the mpiexec used belongs to another MPI than the one this program was built with (" +
                     build_info()["mpi_compiler"].get<std::string>() + "); use the mpiexec beside that compiler");
}

Json read_findings(const std::string& path) {
  std::ifstream file(path);
  Json findings = Json::parse(file, nullptr, false);
  if (findings.is_discarded()) throw UsageError("cannot read the probes' findings in '" + path + "'");
  return findings;
}

Exit run(const Arguments& arguments, const std::vector<std::string>& lines) {
  Session session;
  MPI_Comm_rank(session.comm, &session.rank);
  MPI_Comm_size(session.comm, &session.size);
  expect_ranks(arguments.expect_ranks);
  if (arguments.configs.empty() && arguments.app.empty())
    throw UsageError(
        "nothing to run; give an app (advection3d, laplace2d, laplace3d, poisson2d), microbench, calibrate, or "
        "--configs "
        "FILE");
  StatusBoard board(arguments.status, session.size, session.rank);
  session.board = &board;
  std::optional<Fault> fault;
  if (!arguments.inject.empty()) fault = Fault::parse(arguments.inject);
  session.fault = fault ? &*fault : nullptr;
  std::optional<Output> output;
  if (session.rank == 0) output.emplace(arguments.output);
  session.environment = gather_environment(session.comm);
  if (!arguments.findings.empty()) session.environment["probes"] = read_findings(arguments.findings);
  Watchdog watchdog(board, board.mine(), session.rank, arguments.watchdog);
  session.watchdog = &watchdog;

  Exit worst = Exit::ok;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    board.mine().order.store(static_cast<std::int64_t>(i));
    Json record = run_one(session, lines[i], worst);
    board.mine().set(Phase::idle);
    if (session.rank != 0) continue;
    record["schema"] = "haloscope.record";
    record["schema_version"] = 1;
    record["launch"] = {{"id", arguments.launch_id}, {"order", i}, {"time_utc", utc_now()}};
    output->write(record);
  }
  board.mine().set(Phase::done);
  return worst;
}

}  // namespace
}  // namespace haloscope

int main(int argc, char** argv) {
  using namespace haloscope;
  Arguments arguments;
  std::vector<std::string> lines;
  int level = MPI_THREAD_FUNNELED;
  try {
    arguments = parse_arguments(argc, argv);
    lines = read_configurations(arguments);
    level = thread_level(lines);
  } catch (const Error& error) {
    std::cerr << "haloscope: " << error.what() << "\n";
    return static_cast<int>(error.exit_code());
  }
  int provided = 0;
  MPI_Init_thread(&argc, &argv, level, &provided);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Exit code = Exit::ok;
  try {
    if (arguments.info) {
      if (rank == 0) std::cout << build_info().dump(1) << std::endl;
    } else if (!arguments.probe.empty()) {
      expect_ranks(arguments.expect_ranks);
      run_probes(MPI_COMM_WORLD, arguments.probe);
    } else {
      code = run(arguments, lines);
    }
  } catch (const Error& error) {
    // What one rank alone meets (a full disk) must end all; what all meet alike is said once and ends in order.
    if (error.exit_code() == Exit::failed)
      std::cerr << "haloscope: rank " + std::to_string(rank) + ": " + error.what() + "\n";
    else if (rank == 0)
      std::cerr << std::string("haloscope: ") + error.what() + "\n";
    if (error.exit_code() == Exit::failed) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));  // launchers drop what is said just before an abort
      MPI_Abort(MPI_COMM_WORLD, static_cast<int>(Exit::failed));
    }
    code = error.exit_code();
  }
  MPI_Finalize();
  return static_cast<int>(code);
}
