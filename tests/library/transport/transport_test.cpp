// Every transport, option and pattern on random exchanges: each ghost point must hold the id of the point it mirrors.
#include "allocation_counter.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/error.hpp"
#include "haloscope/transport/twosided/datatype.hpp"
#include "random_case.hpp"

namespace haloscope::test {
namespace {

void check_exchanges(const Case& c) {
  if (c.transport == "reference") return expect_right_halos(c);
  expect_right_halos(c, [](const Rig& rig) { return Sent{rig.plan.messages_out(), rig.plan.bytes_out()}; });
}

TEST(Transport, EveryGhostPointHoldsTheIdOfThePointItMirrors) {
  std::mt19937 random(20 + world_size());
  const auto variants = transport_variants();
  const int rounds = world_size() <= 2 ? 300 : world_size() <= 4 ? 20 : 8;
  for (int i = 0; i < rounds * static_cast<int>(variants.size()) && !HasFailure(); ++i)
    check_exchanges(random_case(random, variants[i % variants.size()]));
}

TEST(Transport, PeriodicCubeWorksWithEveryVariantAndPattern) {
  for (const Case& variant : transport_variants())
    for (int split : {0, 1, 2})
      for (Pattern pattern : {Pattern::ordered, Pattern::direct}) {
        if (world_size() > 4 && split != 1) continue;  // oversubscribed: keep it short
        Case c = variant;
        c.spec.pattern = pattern;
        check_exchanges(periodic_cube(split, c));
      }
}

TEST(Transport, SteadyStateAllocatesNothingOutsideMpi) {
  for (const Case& variant : transport_variants())
    for (Pattern pattern : {Pattern::ordered, Pattern::direct}) {
      Case c = periodic_cube(2, variant);
      c.spec.pattern = variant.transport == "reference" ? Pattern::direct : pattern;
      c.spec.quantities = {{"u", 8, ScalarType::real, Centring::cell}, {"v", 4, ScalarType::real, Centring::node}};
      expect_no_allocations(c);
    }
}

TEST(Transport, BothSlotsCanBeInFlightAtOnce) {
  for (const Case& variant : transport_variants())
    if (variant.transport != "reference") expect_right_in_flight(periodic_cube(0, variant), {0, 1});
}

TEST(Transport, LinkDestroyedInFlightCompletesItsMessages) {
  for (const Case& variant : transport_variants()) {
    if (variant.transport == "reference") continue;
    const Case c = periodic_cube(0, variant);
    end_in_flight(c);
    check_exchanges(c);  // no message is left over that could be mistaken for a later one
  }
}

TEST(Transport, AbandonedMessagesStayOutOfTheFieldsWithMemoryForThemOrWithout) {
  for (const bool memory : {true, false}) {
    Case c;
    c.options = {"datatype"};  // receives in the field itself
    c.spec.pattern = Pattern::direct;
    Rig rig(periodic_cube(0, c));
    rig.fill(0, 0);
    const std::vector<std::byte> before(rig.fields.bytes(0, 0).begin(), rig.fields.bytes(0, 0).end());
    rig.link->post(rig.in(0), 0);
    refuse_allocations(!memory);
    rig.link->abandon();
    refuse_allocations(false);
    MPI_Barrier(MPI_COMM_WORLD);
    rig.link->send(rig.out(0), 0);
    rig.link->complete(rig.out(0), 0);
    MPI_Barrier(MPI_COMM_WORLD);  // messages that were sent before it have arrived
    ASSERT_TRUE(std::ranges::equal(before, rig.fields.bytes(0, 0)));
    std::vector<std::byte> unmatched(before.size());
    for (std::size_t left = memory ? 0 : rig.in(0).size(); left > 0; --left)
      MPI_Recv(unmatched.data(), static_cast<int>(unmatched.size()), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG,
               rig.context().comm, MPI_STATUS_IGNORE);
  }
}

/// Neighbours of rank 0 in a ring: rank 1 sends immediately, the last rank only after a message of rank 0.
class LateNeighbour : public testing::Test {
 protected:
  void SetUp() override {
    if (world_size() < 3) GTEST_SKIP() << "needs a ring of at least 3 ranks";
  }
  /// Runs `look` on rank 0 once rank 1's message has had every chance to arrive and the last rank's has not been sent.
  template <class Look>
  void run(const std::vector<std::string>& options, Look look) {
    Case c{.options = options, .yield = true};
    c = periodic_cube(0, c);
    c.spec.pattern = Pattern::direct;
    c.spec.corners = false;
    Rig rig(c);
    rig.fill(0, 0);
    make_copies(rig.fields.views(), 0, rig.plan.copies).run();
    const int last = world_size() - 1;
    if (world_rank() == last) MPI_Recv(nullptr, 0, MPI_BYTE, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    rig.start(0, 0);
    if (world_rank() == 0) {
      look(rig);
      MPI_Send(nullptr, 0, MPI_BYTE, last, 99, MPI_COMM_WORLD);
    }
    rig.link->wait(rig.in(0), 0);
    EXPECT_EQ(rig.link->waiting_for(rig.in(0), 0), -1);
    rig.link->unpack(rig.in(0), 0, {});
    rig.link->complete(rig.out(0), 0);
    expect_right(rig, 0, 0);
  }
};

/// Calls `poll` until it reports that the message has come. Only a lost message takes a minute.
template <class Poll>
void poll_until_seen(Poll poll) {
  const double end = now_s() + 60;
  while (!poll() && now_s() < end) {
  }
}

TEST_F(LateNeighbour, TestanyUnpacksWhatHasArrivedWhileOthersAreMissing) {
  run({"testany"}, [](Rig& rig) {
    const std::byte* high_ghost = rig.fields.views()[0][0].at({rig.plan.cells[0], 2, 2});
    const std::byte poison[8] = {std::byte{255}, std::byte{255}, std::byte{255}, std::byte{255},
                                 std::byte{255}, std::byte{255}, std::byte{255}, std::byte{255}};
    poll_until_seen([&] {
      EXPECT_FALSE(rig.link->test(rig.in(0), 0));
      return std::memcmp(high_ghost, poison, 8) != 0;
    });
    EXPECT_NE(std::memcmp(high_ghost, poison, 8), 0);
  });
}

TEST_F(LateNeighbour, WaitingForNamesTheRankWhoseMessageIsMissing) {
  run({"testany"}, [](Rig& rig) {
    poll_until_seen([&] {
      rig.link->test(rig.in(0), 0);
      return rig.link->waiting_for(rig.in(0), 0) == world_size() - 1;
    });
    EXPECT_EQ(rig.link->waiting_for(rig.in(0), 0), world_size() - 1);
  });
}

TEST(MessageType, MoreBytesThanAnIntCountsTravelInOneMessage) {
  const MessageType big = byte_type(std::int64_t{5} << 31);
  MPI_Count size;
  MPI_Type_size_x(big.type(), &size);
  EXPECT_EQ(size * big.count(), std::int64_t{5} << 31);
  for (int bytes : {999, 1000, 1001, 2000, 2001, 5432}) {  // the same code with a small limit, really sent
    std::vector<char> out(bytes), in(bytes, 0);
    for (int i = 0; i < bytes; ++i) out[i] = static_cast<char>(i * 31);
    const MessageType type = byte_type(bytes, 1000);
    MPI_Sendrecv(out.data(), type.count(), type.type(), 0, 0, in.data(), bytes, MPI_BYTE, 0, 0, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
    EXPECT_EQ(out, in) << bytes;
  }
}

std::string refusal(const Case& c, const Views* views = nullptr) {
  const Layout layout(c.grid, c.ranks);
  const Plan plan = make_plan(layout, world_rank(), c.spec);
  const Storage fields(plan, 1);
  const auto own = LibraryComm::on(MPI_COMM_WORLD);
  const LinkTags tags(*own, plan, 1);
  return error_of([&] {
    open_transport(c.transport,
                   {.comm = own->comm(),
                    .layout = &layout,
                    .plan = &plan,
                    .views = views ? views : &fields.views(),
                    .tags = tags.tags()},
                   c.options);
  });
}

Case refused(const std::string& transport, const std::vector<std::string>& options) {
  Case variant{.transport = transport, .options = options};
  return periodic_cube(0, variant);
}

TEST(Transport, BadRequestsAreRefusedWithWhatToDoInstead) {
  EXPECT_PART(refusal(refused("p2p", {"testny"})), "testany");
  EXPECT_PART(refusal(refused("persistent", {"blocking"})), "testany, datatype");
  EXPECT_PART(refusal(refused("p2p", {"blocking", "testany"})), "drop one");
  EXPECT_PART(refusal(refused("persistant", {})), "did you mean persistent");
  EXPECT_PART(refusal(refused("reference", {"datatype"})), "no options");
  Case ordered = refused("reference", {});
  ordered.spec.pattern = Pattern::ordered;
  EXPECT_PART(refusal(ordered), "direct pattern");
}

TEST(Transport, ViewsThatDoNotFitThePlanAreRefused) {
  const Views none, other_size{{SlotView{nullptr, {16, 160, 1600}}}}, one_plane{{SlotView{nullptr, {8, 80, 0}}}};
  EXPECT_PART(refusal(refused("p2p", {}), &none), "one view per field");
  EXPECT_PART(refusal(refused("p2p", {}), &other_size), "points of 16");
  EXPECT_PART(refusal(refused("p2p", {}), &one_plane), "share memory");
}

}  // namespace
}  // namespace haloscope::test
