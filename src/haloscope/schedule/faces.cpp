#include <array>

#include "haloscope/schedule/builder.hpp"

namespace haloscope {

namespace {

/// What `inner` leaves of `all`, as pairs of opposite faces; the last dimension's have edges and corners.
std::vector<std::array<Box, 2>> face_pairs(Box all, const Box& inner, int dims) {
  if (inner.empty()) return {{all, Box{}}};
  std::vector<std::array<Box, 2>> pairs;
  for (int d = dims - 1; d >= 0; --d) {
    Box low = all, high = all;
    low.hi[d] = all.lo[d] = inner.lo[d];
    high.lo[d] = all.hi[d] = inner.hi[d];
    if (low.empty()) std::swap(low, high);
    if (!low.empty()) pairs.push_back({low, high.empty() ? Box{} : high});
  }
  return pairs;
}

/// @return the last of the faces' sweeps, -1 without any.
int add_faces(ProgramBuilder& b, const Box& inner, const ExchangeOps& exchange) {
  const Box owned = b.plan().owned(0);
  int last = -1;
  for (const auto& [face, twin] : face_pairs(owned, inner, b.plan().dims))
    last = b.sweep({face, owned, 1, 0, 1, Part::outer, twin, true}, 0, {exchange.ready(), exchange.local});
  return last;
}

}  // namespace

/// A kernel per pair of boundary faces takes halos from where messages have arrived and writes its results both to the
/// field and to where the next exchange sends them from; the interior comes last and nothing overlaps (White & Dongarra
/// 2011, version F).
Program make_faces(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  const ExchangeOps exchange = b.exchange(false);
  const Box inner = b.interior();
  const int faces = add_faces(b, inner, exchange);
  b.first_step(inner, Part::inner, {faces, exchange.ready(), exchange.local});
  return b.take();
}

/// The same with the interior on a stream of its own, beside everything else (White & Dongarra 2011, version G).
Program make_faces_overlap(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  const ExchangeOps exchange = b.exchange(false);
  const Box inner = b.interior();
  b.first_step(inner, Part::inner, {exchange.local});
  add_faces(b, inner, exchange);
  return b.take();
}

}  // namespace haloscope
