// Point-to-point messages, started anew in every exchange.
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/transport/open_locally.hpp"
#include "haloscope/transport/twosided/message_link.hpp"

namespace haloscope {
namespace {

class P2pLink final : public MessageLink {
 public:
  P2pLink(const LinkContext& context, const MessageOptions& options, const MessagePlaces& placement = {})
      : MessageLink(context, options, placement) {}
  ~P2pLink() override { finish(); }

 private:
  void start_receive(Port& p) override {
    REQUIRE_MPI(MPI_Irecv(p.data, p.type.count(), p.type.type(), p.peer, p.tag, comm(), &p.request));
  }
  /// Blocking sends cannot deadlock: a program posts the receives of a round before it sends, on every rank.
  void start_send(Port& p) override {
    if (options().blocking)
      REQUIRE_MPI(MPI_Send(p.data, p.type.count(), p.type.type(), p.peer, p.tag, comm()));
    else
      REQUIRE_MPI(MPI_Isend(p.data, p.type.count(), p.type.type(), p.peer, p.tag, comm(), &p.request));
  }
};

}  // namespace

std::unique_ptr<Link> open_placed_messages(const LinkContext& context, const MessagePlaces& placement) {
  return std::make_unique<P2pLink>(context, MessageOptions{}, placement);
}

std::unique_ptr<Link> open_p2p(const LinkContext& context, const std::vector<std::string>& words) {
  return open_locally<P2pLink>(context, MessageOptions::parse(words));
}

}  // namespace haloscope
