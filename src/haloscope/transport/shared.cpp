// Loads and stores between the ranks of a node: its options, and how they exclude each other.
#include <algorithm>

#include "haloscope/core/error.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/transport/builtin.hpp"
#include "haloscope/transport/shared_link.hpp"

namespace haloscope {
namespace {

class Shared final : public Transport {
 public:
  std::string name() const override { return "shared"; }
  std::vector<std::string> options() const override { return {"direct", "pull", "packed", "fence"}; }
  std::string summary() const override {
    return "stores into the neighbour's halos in memory that a node's ranks share (direct, the default); pull: loads "
           "from "
           "the neighbour's field; packed: packs into the neighbour's buffer, fields stay private; fence: direct with "
           "MPI_Win_fence instead of flags";
  }
  std::unique_ptr<Link> open(const LinkContext& context, const std::vector<std::string>& words) const override {
    const auto modes = options();
    if (words.size() > 1)
      throw UsageError("options " + join(words, " and ") + " of transport shared exclude each other; give one of them");
    if (words.empty()) return std::make_unique<SharedLink>(context, SharedMode::direct);
    const auto found = std::find(modes.begin(), modes.end(), words[0]);
    if (found == modes.end())
      throw UsageError(unknown_name("option of transport shared", words[0], modes) +
                       " (options of shared: " + join(modes, ", ") + ")");
    return std::make_unique<SharedLink>(context, static_cast<SharedMode>(found - modes.begin()));
  }
};

}  // namespace

const Transport& shared_transport() {
  static const Shared transport;
  return transport;
}

}  // namespace haloscope
