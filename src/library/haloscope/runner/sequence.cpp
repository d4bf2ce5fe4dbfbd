#include "haloscope/runner/sequence.hpp"

#include <algorithm>
#include <utility>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/patience.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

class Sequence::Waiting final : public ReportedWait {
 public:
  explicit Waiting(const Sequence& of) : of_(of) {}

 private:
  std::string describe() const override {
    for (std::size_t i = 0; i < of_.peers_.size(); ++i)
      if (of_.notes_->requests[i] != MPI_REQUEST_NULL)
        return name_rank(of_.comm_, of_.peers_[i]) + " has not begun exchange " + std::to_string(of_.number_) + " of " +
               of_.name_;
    return "other ranks have not begun exchange " + std::to_string(of_.number_) + " of " + of_.name_;
  }
  const Sequence& of_;
};

Sequence::Sequence(MPI_Comm comm, const Plan& plan, std::string name, int slots)
    : comm_(comm),
      rank_(plan.rank),
      name_(std::move(name)),
      changed_(static_cast<std::size_t>(slots)),
      notes_(std::make_unique<Notes>()) {
  for (const Message& message : plan.messages) peers_.push_back(message.peer);
  std::sort(peers_.begin(), peers_.end());
  peers_.erase(std::unique(peers_.begin(), peers_.end()), peers_.end());
  notes_->theirs.resize(peers_.size());
  notes_->requests.resize(2 * peers_.size(), MPI_REQUEST_NULL);
}

Sequence::~Sequence() {
  if (under_way_) static_cast<void>(notes_.release());
}

void Sequence::require_same() const {
  if (!difference_.empty()) throw UsageError(difference_);
}

void Sequence::start(int slot, int movement) {
  if (under_way_) check();
  require_same();
  ++number_;
  notes_->mine = {slot, movement, changed_[slot]};
  changed_[slot] = false;
  under_way_ = true;
  constexpr int bytes = sizeof(Note);
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    MPI_Request* const in = &notes_->requests[i];
    MPI_Request* const out = &notes_->requests[peers_.size() + i];
    REQUIRE_MPI(MPI_Irecv(&notes_->theirs[i], bytes, MPI_BYTE, peers_[i], 0, comm_, in));
    REQUIRE_MPI(MPI_Isend(&notes_->mine, bytes, MPI_BYTE, peers_[i], 0, comm_, out));
  }
}

bool Sequence::progress() {
  require_same();
  if (!under_way_) return true;
  // Waits for notes one by one, so that reports name a rank whose note is missing.
  bool all = true;
  for (MPI_Request& request : notes_->requests) {
    int done = 0;
    REQUIRE_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    all = all && done;
  }
  if (all) compare();
  return all;
}

void Sequence::check() {
  const Waiting waiting(*this);
  for (Spin spin(false); !progress();) spin.again();
}

void Sequence::compare() {
  under_way_ = false;
  for (std::size_t i = 0; i < peers_.size() && difference_.empty(); ++i)
    if (const std::string text = difference(notes_->theirs[i], peers_[i]); !text.empty())
      difference_ = "exchange " + std::to_string(number_) + " of " + name_ + " differs between rank " +
                    std::to_string(rank_) + " and rank " + std::to_string(peers_[i]) + ": " + text +
                    "; all ranks must make the same exchanges in the same order";
  require_same();
}

/// Returns the difference of two notes; "" where they agree.
std::string Sequence::difference(const Note& theirs, int peer) const {
  const Note& mine = notes_->mine;
  const std::string other = "rank " + std::to_string(peer), own = "rank " + std::to_string(rank_);
  if (theirs.slot != mine.slot)
    return own + " exchanges slot " + std::to_string(mine.slot) + ", " + other + " slot " + std::to_string(theirs.slot);
  if (theirs.movement != mine.movement) {
    const std::string here = own + " " + movements_[static_cast<std::size_t>(mine.movement)],
                      there = other + " " + movements_[static_cast<std::size_t>(theirs.movement)];
    return theirs.movement < mine.movement ? here + ", " + there : there + ", " + here;
  }
  if (theirs.changed != mine.changed)
    return (mine.changed ? own : other) + " has changed slot " + std::to_string(mine.slot) +
           " since its last exchange, " + (mine.changed ? other : own) +
           " has not, so one of them has made an exchange that the other has not";
  return "";
}

}  // namespace haloscope
