// Point-to-point messages, started anew in every exchange.
#include "haloscope/transport/builtin.hpp"
#include "haloscope/transport/twosided/message_link.hpp"

namespace haloscope {
namespace {

class P2pLink final : public MessageLink {
 public:
  P2pLink(const LinkContext& context, const MessageOptions& options, const Placement& placement = {})
      : MessageLink(context, options, placement) {}
  ~P2pLink() override { finish(); }

 private:
  void start_receive(Port& p) override {
    MPI_Irecv(p.data, p.type.count(), p.type.type(), p.peer, p.tag, comm(), &p.request);
  }
  /// Blocking sends cannot deadlock: a program posts the receives of a round before it sends, on every rank.
  void start_send(Port& p) override {
    if (options().blocking)
      MPI_Send(p.data, p.type.count(), p.type.type(), p.peer, p.tag, comm());
    else
      MPI_Isend(p.data, p.type.count(), p.type.type(), p.peer, p.tag, comm(), &p.request);
  }
};

class P2p final : public Transport {
 public:
  std::string name() const override { return "p2p"; }
  std::string summary() const override {
    return "nonblocking MPI messages, awaited together; blocking: MPI_Send, receives awaited one by one; testany: "
           "receives unpacked as they arrive; datatype: MPI gathers and scatters";
  }
  std::unique_ptr<Link> open(const LinkContext& context, const std::vector<std::string>& words) const override {
    return std::make_unique<P2pLink>(context, MessageOptions::parse(name(), words));
  }
};

}  // namespace

std::unique_ptr<Link> open_placed_messages(const LinkContext& context, const Placement& placement) {
  return std::make_unique<P2pLink>(context, MessageOptions{}, placement);
}

const Transport& p2p_transport() {
  static const P2p transport;
  return transport;
}

}  // namespace haloscope
