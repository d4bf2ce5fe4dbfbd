// Persistent requests: arguments are passed to MPI once per message and slot, then requests are only started.
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/mpi_traits.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/transport/open_locally.hpp"
#include "haloscope/transport/twosided/message_link.hpp"

namespace haloscope {
namespace {

class PersistentLink final : public MessageLink {
 public:
  PersistentLink(const LinkContext& context, const MessageOptions& options) : PersistentLink(options, context) {
    for (int slot = 0; slot < slots(); ++slot)
      for (int id = 0; id < messages(); ++id)
        if (context.moves(id)) make_request(port(id, slot));
  }
  ~PersistentLink() override {
    finish();
    for (int slot = 0; slot < slots(); ++slot)
      for (int id = 0; id < messages(); ++id)
        if (MPI_Request& request = port(id, slot).request; request != MPI_REQUEST_NULL)
          REQUIRE_MPI(MPI_Request_free(&request));
  }

 private:
  /// Makes an object without requests, so that a later exception runs the destructor, which frees the requests made
  /// so far.
  PersistentLink(const MessageOptions& options, const LinkContext& context) : MessageLink(context, options) {}

  void make_request(Port& p) {
    if (p.out)
      CHECK_MPI(MPI_Send_init(p.data, p.type.count(), p.type.type(), p.peer, p.tag, comm(), &p.request));
    else
      CHECK_MPI(MPI_Recv_init(p.data, p.type.count(), p.type.type(), p.peer, p.tag, comm(), &p.request));
  }
  void renew(Port& p) override {
    CHECK_MPI(MPI_Request_free(&p.request));
    make_request(p);
  }
  void start_receive(Port& p) override { REQUIRE_MPI(MPI_Start(&p.request)); }
  void start_send(Port& p) override { REQUIRE_MPI(MPI_Start(&p.request)); }
};

}  // namespace

std::unique_ptr<Link> open_persistent(const LinkContext& context, const std::vector<std::string>& words) {
  const MessageOptions options = MessageOptions::parse(words);
  if (mpi_traits.simulated && options.datatype)
    throw UnavailableError(
        "option datatype of transport persistent: SMPI gathers the data when a request is made, not when it is "
        "started; use p2p:datatype or persistent");
  return open_locally<PersistentLink>(context, options);
}

}  // namespace haloscope
