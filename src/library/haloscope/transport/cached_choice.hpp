// Choices of transports that programs leave to later ones, one small file each, see docs/understand/transports.md.
#pragma once

#include <optional>
#include <string>

#include "haloscope/extend/transport.hpp"

namespace haloscope {

/// The choice of a program, by names of candidates.
struct CachedChoice {
  std::string chosen, second;  ///< the fastest and the one after it
  std::string since;           ///< time of the choice, in UTC: 2026-11-23T09:30:00Z
  bool operator==(const CachedChoice&) const = default;
};

/// One choice on disk: a file in $HALOSCOPE_CACHE, else $XDG_CACHE_HOME/haloscope, else ~/.cache/haloscope. No file
/// exists where HALOSCOPE_CACHE is empty, or no folder is known. Calls fail only if memory is exhausted: a file that
/// cannot be read does not exist, and one that cannot be written is not stored.
class ChoiceFile {
 public:
  /// @param key  inputs of the choice; different keys have different files.
  explicit ChoiceFile(std::string key);

  std::optional<CachedChoice> read() const;
  /// Writes the file atomically, even while other processes access it.
  void write(const CachedChoice& choice) const;
  void remove() const;
  const std::string& path() const { return path_; }  ///< "": choices are not cached

 private:
  std::string key_, path_;
};

/// Returns the inputs of the choice for an exchange: the machine (CPU, ranks on this node, MPI library), the exchange
/// (grid, ranks, fields, pattern) and the options of opening (threads, emulated nodes, fields in shared memory).
/// Collective over context.comm; ranks may differ in it.
std::string key_of(const LinkContext& context);

}  // namespace haloscope
