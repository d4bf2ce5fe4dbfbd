// A transport that is not part of this library: plain blocking calls, registered by its traits and found by its name.
#include <cstring>
#include <deque>

#include "haloscope/extend/transport.hpp"
#include "haloscope/haloscope.hpp"
#include "link_rig.hpp"
#include "step_rig.hpp"
#include "tori.hpp"

namespace haloscope::test {
namespace {

/// Messages in buffers, received by MPI_Recv in the order of the plan.
class BlockingLink final : public Link {
 public:
  explicit BlockingLink(const LinkContext& context)
      : comm_(context.comm), tags_(context.tags), plan_(*context.plan), views_(*context.views) {
    ++opened;
    for (const Message& m : plan_.messages) buffers_.emplace_back(static_cast<std::size_t>(m.bytes));
    requests_.assign(plan_.messages.size(), MPI_REQUEST_NULL);
  }
  ~BlockingLink() override { MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE); }

  void post(Ids, int) override {}
  void pack(Ids out, int slot, Share share) override {
    if (share.part > 0) return;
    for (int id : out)
      move(id, slot, [](std::byte* packed, std::byte* field, std::size_t n) { std::memcpy(packed, field, n); });
  }
  void send(Ids out, int slot) override {
    for (int id : out) {
      const Message& m = plan_.messages[id];
      const int bytes = static_cast<int>(m.bytes), tag = tags_.of(m.tag, 0, slot);
      MPI_Isend(buffer(id).data(), bytes, MPI_BYTE, m.peer, tag, comm_, &request(id));
      ++sent_messages;
    }
  }
  Blocks blocks() const override { return Blocks::always; }
  bool arrives_in_wait() const override { return true; }
  bool test(Ids, int) override { return false; }
  void wait(Ids in, int slot) override {
    for (int id : in) {
      const Message& m = plan_.messages[id];
      const int bytes = static_cast<int>(m.bytes), tag = tags_.of(m.tag, 0, slot);
      MPI_Recv(buffer(id).data(), bytes, MPI_BYTE, m.peer, tag, comm_, MPI_STATUS_IGNORE);
    }
  }
  void unpack(Ids in, int slot, Share share) override {
    if (share.part > 0) return;
    for (int id : in)
      move(id, slot, [](std::byte* packed, std::byte* field, std::size_t n) { std::memcpy(field, packed, n); });
  }
  bool test_complete(Ids out, int) override {
    int all = 1;
    for (int id : out) {
      int done = 0;
      MPI_Test(&request(id), &done, MPI_STATUS_IGNORE);
      all &= done;
    }
    return all == 1;
  }
  void complete(Ids out, int) override {
    for (int id : out) MPI_Wait(&request(id), MPI_STATUS_IGNORE);
  }
  int waiting_for(Ids in, int) const override { return in.empty() ? -1 : plan_.messages[in.front()].peer; }
  std::string report() const override { return "blocking calls"; }

  static inline int opened = 0, sent_messages = 0;

 private:
  std::vector<std::byte>& buffer(int id) { return buffers_[id]; }
  MPI_Request& request(int id) { return requests_[id]; }

  /// Visits a message's regions row by row.
  template <class Move>
  void move(int id, int slot, Move copy) {
    std::byte* packed = buffer(id).data();
    for (const Region& region : plan_.messages[id].regions) {
      const auto q = static_cast<std::size_t>(region.quantity);
      const auto bytes = static_cast<std::size_t>(region.box.extent(0) * plan_.spec.quantities[q].element_bytes);
      for (std::int64_t z = region.box.lo[2]; z < region.box.hi[2]; ++z)
        for (std::int64_t y = region.box.lo[1]; y < region.box.hi[1]; ++y, packed += bytes)
          copy(packed, views_[q][slot].at({region.box.lo[0], y, z}), bytes);
    }
  }

  MPI_Comm comm_;
  MessageTags tags_;
  Plan plan_;
  Views views_;
  std::deque<std::vector<std::byte>> buffers_;
  std::vector<MPI_Request> requests_;
};

const TransportTraits traits{.name = "test-blocking",
                             .summary = "messages by blocking calls",
                             .options = {"loud"},
                             .listed = {},
                             .single_messages = false};

std::unique_ptr<Link> open_blocking(const LinkContext& context, const std::vector<std::string>&) {
  return std::make_unique<BlockingLink>(context);
}

class AddedTransport : public testing::Test {
 protected:
  static void SetUpTestSuite() { add_transport({&traits, open_blocking}); }
};

TEST_F(AddedTransport, RunsAppsBySchedulesDepthsAndThreadsLikeReference) {
  for (const auto& periodic : periodicities)
    for (int depth : {1, 2}) {
      Choice c = flat_choice("laplace2d", periodic, {29, 23, 1});
      c.depth = depth;
      c.strategy = "reference";
      const std::uint64_t expected = checksum_of(c);
      for (const char* strategy :
           {"ordered/test-blocking", "direct:merged/test-blocking", "direct/test-blocking:loud"}) {
        c.strategy = strategy;
        const std::vector<Choice> all = by_schedules(c);
        EXPECT_GE(all.size(), 3u);
        for (const Choice& choice : all) EXPECT_EQ(checksum_of(choice), expected) << describe(choice);
      }
    }
}

TEST_F(AddedTransport, MovesWhatThePlanSaysAndNothingElse) {
  Choice c = flat_choice("laplace2d", {true, true});
  c.strategy = "ordered/test-blocking";
  haloscope::Run run(MPI_COMM_WORLD, c);
  run.initialise();
  const int opened = BlockingLink::opened, before = BlockingLink::sent_messages;
  run.advance(7);
  EXPECT_EQ(BlockingLink::opened, opened);
  EXPECT_EQ(BlockingLink::sent_messages - before, 7 * run.plan().messages_out());
  EXPECT_EQ(run.counts().messages, 7 * run.plan().messages_out());
  EXPECT_EQ(run.transport_report(), "blocking calls");
}

TEST_F(AddedTransport, FillsHalosOfEveryCentringAndWidth) {
  Case c{.grid = {3, {7, 4 * world_size() + 1, 6}, {true, false, true}},
         .ranks = {1, world_size(), 1},
         .transport = "test-blocking"};
  c.spec.low = {1, 2, 1};
  c.spec.high = {2, 1, 1};
  c.spec.quantities = {{.name = "u"},
                       {.name = "v", .element_bytes = 4, .centring = Centring::face_y},
                       {.name = "w", .centring = Centring::node}};
  c.threads = 2;
  for (Pattern pattern : {Pattern::ordered, Pattern::direct}) {
    c.spec.pattern = pattern;
    Rig rig(c);
    for (int epoch = 0; epoch < 4; ++epoch) {
      rig.fill(epoch % 2, epoch);
      rig.exchange(epoch % 2);
      EXPECT_EQ(rig.wrong_points(epoch % 2, epoch), 0);
    }
  }
}

TEST_F(AddedTransport, ExchangesInFlightReceiveTheirOwnMessages) {
  const Grid<2> grid = small_torus(MPI_COMM_WORLD);
  std::deque<Field<double, 2>> fields;
  std::deque<Exchange> halos;
  for (int n = 0; n < 2; ++n) {
    fields.emplace_back(grid, FieldOptions{.halo = 1});
    halos.push_back(make_exchange(grid, {fields[n]}, "ordered/test-blocking"));
  }
  for (int round = 1; round <= 3; ++round) {
    for (int n = 0; n < 2; ++n) {
      each_cell(grid, 1, [&](auto i, auto j) { fields[n][0](i, j) = is_own(grid, i, j) ? 10 * round + n : -1; });
      halos[n].start();
    }
    while (!halos[1].progress()) continue;
    halos[1].finish();
    halos[0].finish();
    for (int n = 0; n < 2; ++n)
      each_cell(grid, 1, [&](auto i, auto j) { ASSERT_EQ(fields[n][0](i, j), 10 * round + n) << i << "," << j; });
  }
}

TEST_F(AddedTransport, IsKnownToStrategiesAndItsOptionsAreChecked) {
  EXPECT_EQ(to_string(Strategy("direct/test-blocking:loud")), "direct/test-blocking:loud");
  EXPECT_EQ(&find_traits("test-blocking"), &traits);
  EXPECT_THROW(Strategy("direct/test-blocking:quiet"), UsageError);
  EXPECT_THROW(add_transport({&traits, open_blocking}), UsageError);
  EXPECT_NE(refused_single_messages("ordered/test-blocking"), "");
}

}  // namespace
}  // namespace haloscope::test
