// Choices of transports that programs leave to later ones, one small file each, see docs/understand/transports.md.
#pragma once

#include <optional>
#include <string>

#include "haloscope/transport.hpp"

namespace haloscope {

/// What a program chose, as candidates are named.
struct CachedChoice {
  std::string chosen, second;  ///< the fastest and the one after it
  std::string since;           ///< when, in UTC: 2026-11-23T09:30:00Z
  bool operator==(const CachedChoice&) const = default;
};

/// One choice on disk: a file in $HALOSCOPE_CACHE, else $XDG_CACHE_HOME/haloscope, else ~/.cache/haloscope. There is
/// none where HALOSCOPE_CACHE is empty, or no folder is known. Nothing here fails, but for lack of memory: what cannot
/// be read is not there, what cannot be written is not kept.
class ChoiceFile {
 public:
  /// @param key  what the choice depends on; files of different keys are different.
  explicit ChoiceFile(std::string key);

  std::optional<CachedChoice> read() const;
  /// In one piece, whatever other processes do to the same file at the same time.
  void write(const CachedChoice& choice) const;
  void remove() const;
  const std::string& path() const { return path_; }  ///< "": nothing is kept

 private:
  std::string key_, path_;
};

/// What the choice for an exchange depends on: the machine (CPU, ranks on this node, MPI library), the exchange (grid,
/// ranks, fields, pattern) and how it is opened (threads, emulated nodes, fields in shared memory). Collective over
/// context.comm; ranks may differ in it.
std::string key_of(const LinkContext& context);

}  // namespace haloscope
