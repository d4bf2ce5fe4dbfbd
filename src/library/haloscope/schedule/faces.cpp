#include <array>

#include "haloscope/extend/candidate.hpp"
#include "haloscope/extend/transport_traits.hpp"
#include "haloscope/schedule/builder.hpp"

namespace haloscope {

namespace {

/// Returns `all` without `inner`, as pairs of opposite faces; the last dimension's faces include edges and corners.
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

/// Adds the sweeps of faces. @return the last of them, -1 without any.
int add_faces(ProgramBuilder& b, const Box& inner, const ExchangeOps& exchange) {
  const Box owned = b.plan().own_cells();
  int last = -1;
  for (const auto& [face, twin] : face_pairs(owned, inner, b.plan().dims))
    last = b.sweep({.region = face, .valid = owned, .part = Part::outer, .twin = twin, .faces = true, .whole = owned},
                   0, {exchange.ready(), exchange.local});
  return last;
}

}  // namespace

/// Runs a kernel per pair of boundary faces, which reads halos from the received messages, and writes its results
/// both to the field and to the send buffers of the next exchange; the interior comes last, without overlap (White &
/// Dongarra 2011, version F). Messages with cells of earlier ones, as ordered patterns have them for stencils that read
/// corners, are packed between the rounds.
static Program make_faces(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  const ExchangeOps exchange = b.exchange(false);
  const Box inner = b.interior();
  const int faces = add_faces(b, inner, exchange);
  b.first_sweep(inner, Part::inner, {faces, exchange.ready(), exchange.local});
  return b.take();
}

/// The same with the interior on a separate stream, during everything else (White & Dongarra 2011, version G).
static Program make_faces_overlap(const Stage& stage, const Plan& plan, const ScheduleOptions& options) {
  ProgramBuilder b(stage, plan, options);
  const ExchangeOps exchange = b.exchange(false);
  const Box inner = b.interior();
  b.first_sweep(inner, Part::inner, {exchange.local});
  add_faces(b, inner, exchange);
  return b.take();
}

namespace {

/// Refuses transports in whose messages face kernels cannot find halos.
std::string refuse_hidden_messages(const Candidate& c) {
  const std::string name = "schedule '" + c.choice.schedule->name + "'";
  const Strategy& s = c.choice.strategy;
  if (!find_traits(s.transport).has_places)
    return name + " reads halos where messages have arrived, and transport '" + s.transport +
           "' has no such place; use staged or aware";
  return "";
}

}  // namespace

extern const Schedule faces_schedule{
    .name = "faces",
    .summary = "device: kernels of opposite faces also unpack and pack, then the interior",
    .colour = "#9d755d",
    .make = make_faces,
    .on_host = false,
    .on_device = true,
    .deep = false,
    .computes_on_host = false,
    .one_sweep = true,
    .illegal = refuse_hidden_messages};

extern const Schedule faces_overlap_schedule{
    .name = "faces-overlap",
    .summary = "faces, with the interior during packing, copies, messages and faces",
    .colour = "#54a24b",
    .make = make_faces_overlap,
    .on_host = false,
    .on_device = true,
    .deep = false,
    .computes_on_host = false,
    .one_sweep = true,
    .illegal = refuse_hidden_messages};

}  // namespace haloscope
