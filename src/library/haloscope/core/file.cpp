#include "haloscope/core/file.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <utility>

#include "haloscope/error.hpp"

namespace haloscope {

namespace {

/// An open file, closed with this object.
struct Handle {
  int number;
  ~Handle() {
    if (number >= 0) close(number);
  }
};

/// A file's text, or the reason why it has none.
struct Reading {
  std::optional<std::string> text;
  std::string why;
};

Reading failed() { return {{}, std::strerror(errno)}; }

/// Reads a file, opened so that a pipe without a writer does not block.
Reading read_where(const std::string& path, int flags, std::size_t max_bytes,
                   const std::function<bool(const struct stat&)>& fits) {
  const Handle file{open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | flags)};
  struct stat state {};
  if (file.number < 0 || fstat(file.number, &state) != 0) return failed();
  if (!S_ISREG(state.st_mode)) return {{}, "it is not a regular file"};
  if (!fits(state)) return {{}, "others may have written it"};
  std::string text;
  char piece[1 << 14];
  for (;;) {
    const ssize_t n = read(file.number, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed();
    if (text.size() + static_cast<std::size_t>(n) > max_bytes)
      return {{}, "it holds more than " + std::to_string(max_bytes) + " bytes"};
    if (n == 0) return {std::move(text), ""};
    text.append(piece, static_cast<std::size_t>(n));
  }
}

bool write_all(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

/// Returns the target of a path, through links.
std::string target_of(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
  return error ? path : target.string();
}

/// Returns the permissions of an existing file, else the user's default for new files.
mode_t permissions_for(const std::string& path) {
  struct stat state {};
  if (stat(path.c_str(), &state) == 0) return state.st_mode & 07777;
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

/// Makes the last folder of a path for this user alone, the folders above it with default permissions.
void make_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::filesystem::create_directories(folder.parent_path(), ignored);
  mkdir(folder.c_str(), 0700);
}

}  // namespace

std::string text_of_file(const std::string& path, const std::string& name, const std::string& remedy,
                         std::size_t max_bytes) {
  Reading reading = read_where(path, 0, max_bytes, [](const struct stat&) { return true; });
  if (!reading.text) throw UsageError("cannot read " + name + " " + path + ": " + reading.why + "; " + remedy);
  return *std::move(reading.text);
}

std::optional<std::string> kept_text(const std::string& path, std::size_t max_bytes) {
  const auto fits = [](const struct stat& state) {
    return (state.st_uid == geteuid() || state.st_uid == 0) && (state.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  };
  return read_where(path, O_NOFOLLOW, max_bytes, fits).text;
}

bool keep_text(const std::string& path, const std::string& text) {
  make_folder(std::filesystem::path(path).parent_path());
  std::string draft = path + ".XXXXXX";
  const int file = mkstemp(draft.data());
  if (file < 0) return false;
  const bool whole = write_all(file, text);
  if (close(file) == 0 && whole && std::rename(draft.c_str(), path.c_str()) == 0) return true;
  unlink(draft.c_str());
  return false;
}

Draft::Draft(const std::string& path) : path_(target_of(path)), draft_(path_ + ".XXXXXX") {
  const int file = mkstemp(draft_.data());
  if (file < 0) {
    draft_.clear();
    text_.setstate(std::ios::failbit);
    return;
  }
  if (fchmod(file, permissions_for(path_)) == 0)
    text_.open(draft_, std::ios::trunc);
  else
    text_.setstate(std::ios::failbit);
  close(file);
}

Draft::~Draft() {
  if (!draft_.empty()) unlink(draft_.c_str());
}

bool Draft::keep() {
  text_.close();
  if (!text_.good() || std::rename(draft_.c_str(), path_.c_str()) != 0) return false;
  draft_.clear();
  return true;
}

}  // namespace haloscope
