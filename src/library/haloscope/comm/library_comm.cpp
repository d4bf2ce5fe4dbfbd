#include "haloscope/comm/library_comm.hpp"

#include <algorithm>
#include <array>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/running.hpp"
#include "haloscope/comm/shared_failure.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

constexpr int block = 64;               // tags are reserved in blocks
constexpr int most_blocks = 1 << 20;    // maximum of blocks in a bitmap that is reduced
constexpr int least_tag_limit = 32767;  // guaranteed by every MPI

/// An attribute of a communicator: the library's communicator on it, or a mark that it is one itself.
struct Attribute {
  std::shared_ptr<LibraryComm> on;
  std::weak_ptr<LibraryComm> itself;
};

int remove(MPI_Comm, int, void* attribute, void*) {
  delete static_cast<Attribute*>(attribute);
  return MPI_SUCCESS;
}

int key() {
  static const int made = [] {
    stay_loaded();
    int number = MPI_KEYVAL_INVALID;
    CHECK_MPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, remove, &number, nullptr));
    return number;
  }();
  return made;
}

Attribute* attribute_of(MPI_Comm comm) {
  void* found = nullptr;
  int there = 0;
  CHECK_MPI(MPI_Comm_get_attr(comm, key(), static_cast<void*>(&found), &there));
  return there ? static_cast<Attribute*>(found) : nullptr;
}

void set_attribute(MPI_Comm comm, Attribute attribute) {
  auto kept = std::make_unique<Attribute>(std::move(attribute));
  CHECK_MPI(MPI_Comm_set_attr(comm, key(), kept.get()));
  static_cast<void>(kept.release());
}

int tag_limit(MPI_Comm comm) {
  int* limit = nullptr;
  int there = 0;
  CHECK_MPI(MPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&limit), &there));
  return there ? *limit : least_tag_limit;
}

/// Returns the first of `count` consecutive free blocks; -1 where none exist.
int first_fit(const std::vector<unsigned char>& used, int count, int limit) {
  int run = 0;
  for (int b = 0; b < limit; ++b) {
    run = b < static_cast<int>(used.size()) && used[static_cast<std::size_t>(b)] ? 0 : run + 1;
    if (run == count) return b - count + 1;
  }
  return -1;
}

}  // namespace

LibraryComm::LibraryComm(MPI_Comm users)
    : comm_(duplicate(users)), most_blocks_(std::min(tag_limit(comm_.get()) / block, most_blocks)) {}

LibraryComm::~LibraryComm() {
  if (mpi_is_over()) return;
  nodes_.clear();
  SharedFailure::receive_the_rest(comm());
}

std::shared_ptr<LibraryComm> LibraryComm::on(MPI_Comm users) {
  if (const Attribute* known = attribute_of(users)) return known->on ? known->on : known->itself.lock();
  const std::shared_ptr<LibraryComm> made(new LibraryComm(users));
  set_attribute(made->comm(), {nullptr, made});
  set_attribute(users, {made, {}});
  note_kept();
  return made;
}

const Node& LibraryComm::node(const std::vector<int>& nodes) {
  std::unique_ptr<Node>& known = nodes_[nodes];
  if (!known) {
    known = std::make_unique<Node>(comm(), nodes);
    note_kept();
  }
  return *known;
}

bool LibraryComm::has_more_ranks_than_cores(int threads) {
  auto known = crowded_.find(threads);
  if (known == crowded_.end()) {
    known = crowded_.emplace(threads, more_ranks_than_cores(comm(), threads)).first;
    note_kept();
  }
  return known->second;
}

std::shared_ptr<void> LibraryComm::shared(const std::string& key, std::shared_ptr<void> (*make)()) {
  std::shared_ptr<void>& known = shared_[key];
  if (!known) {
    known = make();
    note_kept();
  }
  return known;
}

TagRange LibraryComm::reserve_tags(int count) {
  std::array<int, 2> most{(count + block - 1) / block, static_cast<int>(used_.size())};
  CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, most.data(), 2, MPI_INT, MPI_MAX, comm()));
  const auto [blocks, beyond] = most;
  int first = beyond;
  if (beyond + blocks > most_blocks_) {
    std::vector<unsigned char> used = used_;
    used.resize(static_cast<std::size_t>(beyond));
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, used.data(), beyond, MPI_UNSIGNED_CHAR, MPI_MAX, comm()));
    first = first_fit(used, blocks, most_blocks_);
    if (first < 0)
      throw Error(Exit::failed, "the exchanges that are open use all " + std::to_string(most_blocks_ * block) +
                                    " message tags of this MPI; free exchanges that are not needed any more, or "
                                    "exchange more fields in one");
  }
  used_.resize(std::max(used_.size(), static_cast<std::size_t>(first + blocks)));
  std::fill_n(used_.begin() + first, blocks, 1);
  return {shared_from_this(), first, blocks};
}

TagRange::TagRange(std::shared_ptr<LibraryComm> of, int first_block, int blocks)
    : of_(std::move(of)), first_block_(first_block), blocks_(blocks) {}

TagRange::~TagRange() {
  if (!of_) return;
  auto& used = of_->used_;
  std::fill_n(used.begin() + first_block_, blocks_, 0);
  while (!used.empty() && used.back() == 0) used.pop_back();
}

void TagRange::retire() {
  if (!of_) return;
  of_->itself_ = std::move(of_);
  note_kept();
}

int TagRange::first() const { return first_block_ * block; }

}  // namespace haloscope
