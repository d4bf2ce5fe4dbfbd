#include "haloscope/comm/maximum.hpp"

#include <algorithm>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/patience.hpp"
#include "haloscope/extend/agree.hpp"

namespace haloscope {

Maximum::Maximum(MPI_Comm comm, std::vector<int> ranks, int tag, std::size_t most)
    : comm_(comm), ranks_(std::move(ranks)), tag_(tag) {
  place_ = static_cast<int>(std::find(ranks_.begin(), ranks_.end(), rank_in(comm_)) - ranks_.begin());
  far_ = static_cast<int>(ranks_.size());
  for (auto* numbers : {&all_, &sent_, &received_}) numbers->reserve(most);
}

Maximum::~Maximum() {
  const DescribedWait waiting(
      [] { return std::string("other ranks have not come to the end of a choice of transports"); });
  for (Spin spin(true); !test();) spin.again();
}

void Maximum::start(std::span<const double> mine) {
  all_.assign(mine.begin(), mine.end());
  received_.resize(all_.size());
  far_ = 1;
  start_round();
}

void Maximum::start_round() {
  const int size = static_cast<int>(ranks_.size()), count = static_cast<int>(all_.size());
  if (far_ >= size) return;
  sent_ = all_;
  const int from = ranks_[static_cast<std::size_t>((place_ - far_ + size) % size)];
  const int to = ranks_[static_cast<std::size_t>((place_ + far_) % size)];
  REQUIRE_MPI(MPI_Irecv(received_.data(), count, MPI_DOUBLE, from, tag_, comm_, &requests_[0]));
  REQUIRE_MPI(MPI_Isend(sent_.data(), count, MPI_DOUBLE, to, tag_, comm_, &requests_[1]));
}

bool Maximum::test() {
  while (far_ < static_cast<int>(ranks_.size())) {
    int done = 0;
    REQUIRE_MPI(MPI_Testall(2, requests_, &done, MPI_STATUSES_IGNORE));
    if (!done) return false;
    for (std::size_t i = 0; i < all_.size(); ++i) all_[i] = std::max(all_[i], received_[i]);
    far_ *= 2;
    start_round();
  }
  return true;
}

}  // namespace haloscope
