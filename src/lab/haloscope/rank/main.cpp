#include "haloscope/extend/main.hpp"

#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <istream>
#include <optional>

#include "haloscope/apps/built_in.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/core/app_json.hpp"
#include "haloscope/core/bounds.hpp"
#include "haloscope/core/choice_fields.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/core/file.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/parsed_json.hpp"
#include "haloscope/core/text.hpp"
#include "haloscope/device/host_stream.hpp"
#include "haloscope/error.hpp"
#include "haloscope/rank/measure/environment.hpp"
#include "haloscope/rank/pace/pace.hpp"
#include "haloscope/rank/probe/probe.hpp"
#include "haloscope/rank/request_kinds.hpp"
#include "haloscope/rank/watch/inject.hpp"
#include "haloscope/rank/watch/watchdog.hpp"

namespace haloscope {

namespace {

using Json = nlohmann::json;

struct Arguments {
  std::string requests, request, output, status, launch_id, inject, findings, check;
  std::vector<std::string> probe;
  int expect_ranks = 0;
  double watchdog = 0;
  bool info = false, describe = false;
  std::vector<std::string> app;      // APP and its options, without requests
  std::vector<std::string> options;  // names of the options that come before APP
};

/// Returns the reason why a text cannot name a launch in records, "" if it can. By the records' schema.
std::string why_no_name(const std::string& text) {
  constexpr std::size_t longest = 100;
  const bool printable = std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return printable && text.size() <= longest ? "" : "it takes at most 100 printable characters of ASCII";
}

/// Requires a number from 0 to `max`, which NaN is not.
CLI::Validator within(double max) {
  const auto why_not = [max](const std::string& text) -> std::string {
    double number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && number >= 0 && number <= max) return {};
    return "'" + text + "' is not a number from 0 to " + to_text(ParameterValue(max));
  };
  return {why_not, "NUMBER"};
}

Arguments parse_arguments(int argc, char** argv) {
  Arguments a;
  CLI::App cli("Measure halo exchange strategies (run it under mpiexec or srun)");
  cli.footer(request_help());
  cli.prefix_command();
  cli.add_option("--requests", a.requests,
                 "file with one request per line: {\"kind\", \"id\", \"request\"} as in records");
  cli.add_option("--request", a.request, "one such line");
  cli.add_option("--output", a.output, "append records to this file instead of standard output");
  cli.add_option("--status", a.status, "file on which each rank shows its current operation");
  cli.add_option("--launch-id", a.launch_id, "name of this launch in its records")->check(why_no_name);
  cli.add_option("--expect-ranks", a.expect_ranks, "refuse to run with any other number of ranks")
      ->check(within(bound.ranks.most));
  cli.add_option("--watchdog", a.watchdog, "seconds without progress that end the run; 0: none do")
      ->check(within(bound.seconds.most));
  cli.add_option("--inject", a.inject, "fault for tests: KIND:rank=R,step=S,seconds=X[,op=NAME]");
  cli.add_option("--probe", a.probe, "probe this MPI: all, or names of probes; JSON lines")->delimiter(',');
  cli.add_option("--findings", a.findings, "file with findings of the probes, stored in every record's environment");
  cli.add_flag("--info", a.info, "print the features of this build as JSON and exit");
  cli.add_flag("--describe", a.describe, "print APP and its options as JSON, for plans and predictions, and exit");
  cli.add_option("--check", a.check,
                 "file of requests, - for standard input: print for each why it cannot be run, as JSON text");
  try {
    cli.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << cli.help();
    std::exit(0);
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  a.app = cli.remaining();
  for (const CLI::Option* option : cli.get_options()) a.options.push_back(option->get_name());
  return a;
}

/// Writes records as whole lines, each by one write, so that a killed run leaves no broken line before the last.
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

/// One line of a requests file.
struct Line {
  std::string id, kind = "measurement";
  Json request;
  std::string fault;  ///< why the line is none
};

/// @param place  where the text stands, for errors: "requests.jsonl, line 3: ".
Line line_of(const std::string& text, const std::string& place) {
  Line line;
  Json json;
  try {
    json = parsed_json(text, place + "a request, " + shown(text) + ",");
  } catch (const UsageError& error) {
    line.fault = error.what();
    return line;
  }
  if (!json.is_object() || !json.contains("request")) {
    line.fault = place + "a request is a line {\"kind\", \"id\", \"request\"}, not " + shown(text);
    return line;
  }
  if (json.contains("id") && json["id"].is_string()) line.id = json["id"].get<std::string>();
  if (json.contains("kind") && json["kind"].is_string()) line.kind = json["kind"].get<std::string>();
  line.request = json["request"];
  return line;
}

/// The next line; nothing at the end. @throws UsageError for one that is longer than JSON may be.
std::optional<std::string> next_line(std::istream& in, const std::string& place) {
  std::string text;
  for (char c = 0; in.get(c);) {
    if (c == '\n') return text;
    if (text.size() == most_json_bytes)
      throw UsageError(place + "this line has more than " + std::to_string(most_json_bytes) +
                       " bytes; give one request per line");
    text += c;
  }
  return text.empty() ? std::optional<std::string>() : text;
}

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r") == std::string::npos; }

std::string place_of(const std::string& file, std::size_t line) {
  return file + ", line " + std::to_string(line) + ": ";
}

std::vector<Line> read_lines(const std::string& path) {
  const std::string whole =
      text_of_file(path, "the requests file", "give a file with one request per line", most_json_bytes);
  std::vector<Line> lines;
  std::size_t number = 0;
  for (const std::string& text : split(whole, '\n'))
    if (++number; !is_blank(text)) lines.push_back(line_of(text, place_of(path, number)));
  return lines;
}

std::vector<Line> read_requests(const Arguments& a) {
  if (!a.requests.empty()) return read_lines(a.requests);
  if (!a.request.empty()) return {line_of(a.request, "")};
  if (a.app.empty()) return {};
  Line line;
  line.request = request_from_words(a.app, a.options);
  return {line};
}

/// Calls f(kind, request) for each request; one that is not valid is reported when it runs.
template <class F>
void for_each_valid(const std::vector<Line>& lines, const F& f) {
  for (const Line& line : lines) try {
      if (line.fault.empty()) f(find_request_kind(line.kind), line.request);
    } catch (const std::exception&) {
    }
}

/// The highest thread level of MPI that a request needs.
int thread_level(const std::vector<Line>& lines) {
  int level = MPI_THREAD_FUNNELED;
  for_each_valid(lines, [&](const RequestKind& kind, const Json& request) {
    if (kind.thread_level != nullptr) level = std::max(level, kind.thread_level(request));
  });
  return level;
}

/// Seconds that the requests take at least, as far as they specify it.
double planned_seconds(const std::vector<Line>& lines) {
  double sum = 0;
  for_each_valid(lines, [&](const RequestKind& kind, const Json& request) {
    if (kind.least_seconds != nullptr) sum += kind.least_seconds(request);
  });
  return sum;
}

/// Serves one request. Returns its record, or the reason why it has none.
Json run_one(Session& session, const Line& line, Exit& worst) {
  try {
    if (!line.fault.empty()) throw UsageError(line.fault);
    Json record = find_request_kind(line.kind).serve(session, line.request, line.id);
    if (record["verification"]["status"] == "failed") worst = Exit::failed;
    return record;
  } catch (const Error& error) {
    if (error.exit_code() == Exit::failed) throw;  // perhaps only this rank failed, and the others wait for it
    worst = std::max(worst, error.exit_code());
    if (session.rank == 0) std::cerr << "haloscope: " << error.what() << std::endl;
    return {{"id", line.id},
            {"kind", "skipped"},
            {"request", line.request},
            {"reason", error.what()},
            {"exit_code", static_cast<int>(error.exit_code())}};
  }
}

/// Returns the reason why a request cannot be run, "" if it can; checks only the choice, not this machine.
std::string why_not(const Line& line) {
  if (!line.fault.empty()) return line.fault;
  try {
    const RequestKind& kind = find_request_kind(line.kind);
    return kind.refuse != nullptr ? kind.refuse(line.request) : "";
  } catch (const Error& error) {
    return error.what();
  }
}

void print_check(const Line& line) { std::cout << Json(why_not(line)).dump() << std::endl; }

/// Prints each answer to standard input before it reads the next line, so that a program can wait for every answer.
void print_checks(const std::string& path) {
  if (path != "-") {
    for (const Line& line : read_lines(path)) print_check(line);
    return;
  }
  std::cin.exceptions(std::ios::badbit);  // no request is lost where memory is exhausted
  for (std::size_t number = 1;; ++number) {
    const std::string place = place_of("standard input", number);
    const std::optional<std::string> text = next_line(std::cin, place);
    if (!text) return;
    if (!is_blank(*text)) print_check(line_of(*text, place));
  }
}

void print_description(const Arguments& a) {
  if (a.app.empty()) throw UsageError("--describe needs an app");
  const Json request = request_from_words(a.app, a.options);
  const App& app = find_app(request["app"].get<std::string>());
  Parameters::Given set;
  for (const Parameter& p : parameters_of(app))
    if (request.contains("set") && request["set"].contains(p.name))
      set[p.name] = parse_value(p, request["set"][p.name].get<std::string>());
  std::cout << describe(app, set).dump() << std::endl;
}

/// Refuses another number of ranks: the mpiexec of another MPI starts single ranks, each without the others.
void expect_ranks(int expected) {
  int size = 0;
  REQUIRE_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  if (expected > 0 && expected != size)
    throw UsageError("started with " + std::to_string(size) + " rank(s) instead of " + std::to_string(expected) +
                     ": the mpiexec used belongs to another MPI than the one this program was built with (" +
                     build_info()["mpi_compiler"].get<std::string>() + "); use the mpiexec of that compiler's MPI");
}

Json read_findings(const std::string& path) {
  const std::string name = "the file of the probes' findings,";
  return parsed_json(text_of_file(path, name, "give the file that the probes wrote", most_json_bytes),
                     name + " " + path + ",");
}

/// Returns the environment of records: the machine's, findings of probes, and parts that the launcher emulates.
Json environment_of(MPI_Comm comm, const Arguments& arguments) {
  Json found = gather_environment(comm);
  if (!arguments.findings.empty()) found["probes"] = read_findings(arguments.findings);
  for (const auto& [name, part] : {std::pair{"HALOSCOPE_LAB", "emulated_network"}, {"HALOSCOPE_MAPPING", "mapping"}})
    if (const char* text = std::getenv(name)) found[part] = parsed_json(text, name);
  return found;
}

/// @param started_s  when the program began, by now_s().
Exit run(const Arguments& arguments, const std::vector<Line>& lines, double started_s) {
  Session session;
  REQUIRE_MPI(MPI_Comm_rank(session.comm, &session.rank));
  REQUIRE_MPI(MPI_Comm_size(session.comm, &session.size));
  expect_ranks(arguments.expect_ranks);
  if (lines.empty()) {
    std::vector<std::string> names;
    for (const App* app : apps()) names.push_back(app->name);
    throw UsageError("nothing to run; give an app (" + join(names, ", ") + ") with options, or --requests FILE");
  }
  StatusBoard board(arguments.status, session.size, session.rank);
  session.board = &board;
  std::optional<Fault> fault;
  if (!arguments.inject.empty()) fault = Fault::parse(arguments.inject);
  if (fault && (fault->rank < 0 || fault->rank >= session.size))
    throw UsageError("--inject names rank " + std::to_string(fault->rank) + ", and there are " +
                     std::to_string(session.size) + "; use 0 to " + std::to_string(session.size - 1));
  session.fault = fault ? &*fault : nullptr;
  std::optional<Output> output;
  if (session.rank == 0) output.emplace(arguments.output);
  session.environment = environment_of(session.comm, arguments);
  Watchdog watchdog(board, board.mine(), session.rank, arguments.watchdog);
  session.watchdog = &watchdog;

  Exit worst = Exit::ok;
  PaceMeter meter(session, started_s, planned_seconds(lines));
  session.pace = &meter;
  meter.keep_up();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    board.mine().order.store(static_cast<std::int64_t>(i));
    Json record = run_one(session, lines[i], worst);
    board.mine().set(Phase::idle);
    meter.keep_up();
    const Json pace = meter.latest();
    if (session.rank != 0) continue;
    if (!pace.is_null() && record["kind"] != "skipped") record["pace"] = pace;
    record["schema"] = "haloscope.record";
    record["schema_version"] = 2;
    record["launch"] = {{"id", arguments.launch_id}, {"order", i}, {"time_utc", utc_now()}};
    output->write(record);
  }
  board.mine().set(Phase::done);
  return worst;
}

}  // namespace
}  // namespace haloscope

int haloscope::rank_main(int argc, char** argv, const std::vector<App>& own) {
  const double started_s = now_s();
  Arguments arguments;
  std::vector<Line> lines;
  int level = MPI_THREAD_FUNNELED;
  try {
    add_built_in_apps();
    for (const App& app : own) add_app(app);
    static_cast<void>(device::host::imitation());  // a wrong environment ends the program here
    arguments = parse_arguments(argc, argv);
    if (!arguments.check.empty() || arguments.describe) {  // no MPI: anywhere, immediately
      arguments.describe ? print_description(arguments) : print_checks(arguments.check);
      return 0;
    }
    if (!arguments.info && arguments.probe.empty()) lines = read_requests(arguments);
    level = thread_level(lines);
  } catch (const Error& error) {
    std::cerr << "haloscope: " << error.what() << "\n";
    return static_cast<int>(error.exit_code());
  }
  int provided = 0;
  REQUIRE_MPI(MPI_Init_thread(&argc, &argv, level, &provided));
  for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF})
    REQUIRE_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));  // so that errors name rank and call
  int rank = 0;
  REQUIRE_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  Exit code = Exit::ok;
  try {
    if (arguments.info) {
      if (rank == 0) std::cout << build_info().dump(1) << std::endl;
    } else if (!arguments.probe.empty()) {
      expect_ranks(arguments.expect_ranks);
      run_probes(MPI_COMM_WORLD, arguments.probe);
    } else {
      code = run(arguments, lines, started_s);
    }
  } catch (const Error& error) {
    // An error of one rank alone (a full disk) must end all ranks; one that all ranks meet is reported once, in order.
    if (error.exit_code() == Exit::failed)
      std::cerr << "haloscope: rank " + std::to_string(rank) + ": " + error.what() + "\n";
    else if (rank == 0)
      std::cerr << std::string("haloscope: ") + error.what() + "\n";
    if (error.exit_code() == Exit::failed) abort_job();
    code = error.exit_code();
  }
  REQUIRE_MPI(MPI_Finalize());
  return static_cast<int>(code);
}
