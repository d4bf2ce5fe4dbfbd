#include "haloscope/reduce/gatherer.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/extend/agree.hpp"

namespace haloscope {

namespace {

std::size_t bytes_of(NumberType type) {
  return type == NumberType::real ? sizeof(double) : type == NumberType::integer ? sizeof(std::int32_t) : 1;
}

MPI_Datatype mpi_type(NumberType type) {
  return type == NumberType::real ? MPI_DOUBLE : type == NumberType::integer ? MPI_INT32_T : MPI_CHAR;
}

/// Writes a number. @return the place after it.
template <class T>
std::byte* put(double number, std::byte* to) {
  constexpr double least = std::numeric_limits<T>::lowest(), most = std::numeric_limits<T>::max();
  const T value = !(number > least)  ? std::numeric_limits<T>::lowest()  // also NaN
                  : !(number < most) ? std::numeric_limits<T>::max()
                                     : static_cast<T>(number);
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}
template <>
std::byte* put<double>(double number, std::byte* to) {
  std::memcpy(to, &number, sizeof number);
  return to + sizeof number;
}

template <class T>
double taken(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

/// Calls f.operator()<T>() for the type in which numbers are sent.
template <class F>
void with_type(NumberType type, const F& f) {
  if (type == NumberType::real)
    f.template operator()<double>();
  else if (type == NumberType::integer)
    f.template operator()<std::int32_t>();
  else
    f.template operator()<unsigned char>();
}

}  // namespace

Gatherer::Gatherer(const Reduction& reduction, MPI_Comm comm)
    : op_(reduction.op),
      by_(reduction.by),
      type_(reduction.type),
      comm_(comm),
      each_(reduction.numbers / reduction.collectives) {
  const auto ranks = static_cast<std::size_t>(ranks_in(comm));
  mine_.resize(static_cast<std::size_t>(each_) * bytes_of(type_));
  all_.resize(mine_.size() * ranks);
  lengths_.resize(ranks);
  places_.resize(lengths_.size());
}

void Gatherer::gather(std::span<double> numbers) {
  const auto each = static_cast<std::size_t>(each_);
  const MPI_Datatype type = mpi_type(type_);
  for (std::size_t first = 0; first < numbers.size(); first += each) {
    const auto part = numbers.subspan(first, each);
    pack(part);
    if (by_ == ReduceBy::lists)
      gather_lists();
    else
      REQUIRE_MPI(MPI_Allgather(mine_.data(), each_, type, all_.data(), each_, type, comm_));
    finish(part);
  }
}

/// Gathers lists like codes in which ranks do not have the lengths of the others' lists.
void Gatherer::gather_lists() {
  const MPI_Datatype type = mpi_type(type_);
  REQUIRE_MPI(MPI_Allgather(&each_, 1, MPI_INT, lengths_.data(), 1, MPI_INT, comm_));
  std::exclusive_scan(lengths_.begin(), lengths_.end(), places_.begin(), 0);
  REQUIRE_MPI(MPI_Allgatherv(mine_.data(), each_, type, all_.data(), lengths_.data(), places_.data(), type, comm_));
}

void Gatherer::start(std::span<const double> numbers, MPI_Request* request) {
  const MPI_Datatype type = mpi_type(type_);
  pack(numbers);
  REQUIRE_MPI(MPI_Iallgather(mine_.data(), each_, type, all_.data(), each_, type, comm_, request));
}

void Gatherer::pack(std::span<const double> numbers) {
  with_type(type_, [&]<class T>() {
    std::byte* to = mine_.data();
    for (double number : numbers) to = put<T>(number, to);
  });
}

void Gatherer::finish(std::span<double> numbers) const {
  std::fill(numbers.begin(), numbers.end(), identity_of(op_));
  with_type(type_, [&]<class T>() {
    const std::byte* from = all_.data();
    for (std::size_t rank = 0; rank < lengths_.size(); ++rank)
      for (double& number : numbers) {
        number = combined(op_, number, taken<T>(from));
        from += sizeof(T);
      }
  });
}

}  // namespace haloscope
