#include "haloscope/advice/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>

#include "haloscope/core/clock.hpp"
#include "haloscope/error.hpp"

extern char** environ;

namespace haloscope {

namespace {

constexpr int poll_ms = 20;

/// A program that finds these takes itself for a rank of this process's launcher and would talk to its socket.
constexpr std::array<std::string_view, 9> launcher_prefixes{"PMI_",  "PMIX_",  "PMI2_", "OMPI_",    "PRTE_",
                                                            "HYDI_", "HYDRA_", "MPIR_", "MPI_LOCAL"};

std::vector<char*> environment_without_launcher() {
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto starts = [&](std::string_view prefix) { return text.starts_with(prefix); };
    if (std::none_of(launcher_prefixes.begin(), launcher_prefixes.end(), starts)) kept.push_back(*entry);
  }
  kept.push_back(nullptr);
  return kept;
}

/// Both ends are closed in every program that this process starts; dup2 copies the ends that a program shall keep.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0)
      throw Error(Exit::failed, std::string("cannot open a pipe: ") + std::strerror(errno) +
                                    "; close files, or raise the limit (ulimit -n)");
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    for (int end : {0, 1}) close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int operator[](int end) const { return ends_[static_cast<std::size_t>(end)]; }
  void close(int end) {
    int& file = ends_[static_cast<std::size_t>(end)];
    if (file >= 0) ::close(file);
    file = -1;
  }
  /// Append what can be read; closes the reading end once nothing more will come.
  void drain(std::string& text) {
    std::array<char, 65536> buffer;
    while (ends_[0] >= 0) {
      const ssize_t count = read(ends_[0], buffer.data(), buffer.size());
      if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
      if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) close(0);
      if (count < 0 && errno == EAGAIN) return;
    }
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// How to start the program: its files, signals as if this process had never touched them, its own process group.
class Start {
 public:
  Start(const Pipe& out, const Pipe& err) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files_, out[1], 1);
    posix_spawn_file_actions_adddup2(&files_, err[1], 2);
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
    posix_spawn_file_actions_addclosefrom_np(&files_, 3);  // above all the socket of the launcher
#endif
#endif
    posix_spawnattr_init(&how_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&how_, &none);
    posix_spawnattr_setsigdefault(&how_, &all);
    posix_spawnattr_setpgroup(&how_, 0);
    posix_spawnattr_setflags(&how_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Start() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&how_);
  }
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;
  pid_t start(const std::string& path, const std::vector<std::string>& words) const {
    std::vector<char*> arguments{const_cast<char*>(path.c_str())};  // posix_spawn changes none of them
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::vector<char*> environment = environment_without_launcher();
    pid_t child = 0;
    const int error = posix_spawnp(&child, path.c_str(), &files_, &how_, arguments.data(), environment.data());
    if (error != 0) throw UnavailableError("cannot start '" + path + "': " + std::strerror(error));
    return child;
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t how_;
};

/// A started program; killed with its group unless it has ended.
class Child {
 public:
  explicit Child(pid_t id) : id_(id) {}
  ~Child() {
    if (ended_) return;
    kill(-id_, SIGKILL);
    while (waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  bool ended() {
    if (ended_) return true;
    int status = 0;
    const pid_t found = waitpid(id_, &status, WNOHANG);
    if (found == id_) code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ended_ = found == id_ || (found < 0 && errno == ECHILD);  // a program may have its children collected for it
    return ended_;
  }
  int code() const { return code_; }

 private:
  pid_t id_;
  bool ended_ = false;
  int code_ = -1;
};

std::string seconds(double s) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%g", s);
  return text.data();
}

}  // namespace

Ended run_program(const std::string& path, const std::vector<std::string>& words, double limit_s) {
  const double deadline = now_s() + limit_s;
  Pipe out, err;
  Child child(Start(out, err).start(path, words));
  for (Pipe* pipe : {&out, &err}) pipe->close(1);
  Ended ended;
  for (bool last = false; !last;) {
    last = child.ended();  // read once more after its end; programs that it leaves behind may hold the pipes
    std::array<pollfd, 2> files{pollfd{out[0], POLLIN, 0}, pollfd{err[0], POLLIN, 0}};
    if (out[0] < 0 && err[0] < 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    else if (!last)
      poll(files.data(), files.size(), poll_ms);
    out.drain(ended.out);
    err.drain(ended.err);
    if (!last && now_s() > deadline)
      throw Error(Exit::failed, "'" + path + "' has not ended after " + seconds(limit_s) + " s");
  }
  ended.code = child.code();
  return ended;
}

}  // namespace haloscope
