// Transport `shared`: loads and stores between the ranks of a node, with the modes of option words.
#include "haloscope/core/names.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/transport/shared/shared_link.hpp"

namespace haloscope {

std::unique_ptr<Link> open_shared(const LinkContext& context, const std::vector<std::string>& words) {
  SharedMode mode = SharedMode::push;
  if (has(words, "pull")) mode = SharedMode::pull;
  if (has(words, "packed")) mode = SharedMode::packed;
  if (has(words, "fence")) mode = SharedMode::fence;
  return std::make_unique<SharedLink>(context, mode);
}

}  // namespace haloscope
