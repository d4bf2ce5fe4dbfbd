// Loads and stores between the ranks of a node: which option word is which mode.

#include "haloscope/core/names.hpp"
#include "haloscope/strategy.hpp"
#include "haloscope/transport/builtin.hpp"
#include "haloscope/transport/shared/shared_link.hpp"

namespace haloscope {
namespace {

class Shared final : public Transport {
 public:
  std::string name() const override { return "shared"; }
  std::string summary() const override {
    return "stores into the neighbour's halos in memory that a node's ranks share (direct, the default); pull: loads "
           "from the neighbour's field; packed: packs into the neighbour's buffer, fields stay private; fence: direct "
           "with "
           "MPI_Win_fence instead of flags";
  }
  std::unique_ptr<Link> open(const LinkContext& context, const std::vector<std::string>& words) const override {
    check_options(name(), words);
    SharedMode mode = SharedMode::direct;
    if (has(words, "pull")) mode = SharedMode::pull;
    if (has(words, "packed")) mode = SharedMode::packed;
    if (has(words, "fence")) mode = SharedMode::fence;
    return std::make_unique<SharedLink>(context, mode);
  }
};

}  // namespace

const Transport& shared_transport() {
  static const Shared transport;
  return transport;
}

}  // namespace haloscope
