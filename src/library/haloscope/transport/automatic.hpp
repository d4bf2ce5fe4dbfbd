// Transport `auto`: a link that chooses among links of the host.
#pragma once

#include <string>
#include <vector>

#include "haloscope/transport/auto_choice.hpp"

namespace haloscope {

class AutoLink final : public Link {
 public:
  /// As for AutoChoice.
  AutoLink(const LinkContext& context, std::vector<Trial> candidates, AutoOptions options)
      : choice_(context, std::move(candidates), std::move(options)) {}

  void post(Ids in, int slot) override;
  void pack(Ids out, int slot, Share share) override;
  void send(Ids out, int slot) override;
  bool test(Ids in, int slot) override;
  void wait(Ids in, int slot) override;
  void unpack(Ids in, int slot, Share share) override;
  std::int64_t packing_lines(Ids ids, int slot) const override { return choice_.link(slot).packing_lines(ids, slot); }
  bool test_complete(Ids out, int slot) override;
  void complete(Ids out, int slot) override;
  int waiting_for(Ids in, int slot) const override { return choice_.link(slot).waiting_for(in, slot); }
  std::string report() const override { return choice_.report(); }
  bool must_be_awaited() const override { return choice_.must_be_awaited(); }
  bool closes_alone() const override { return choice_.closes_alone(); }
  bool follows() const override { return choice_.follows(); }
  void follow(int slot, SlotOffsets moved) override {
    for (Trial& candidate : choice_.candidates())
      if (candidate.link) candidate.link->follow(slot, moved);
  }

  void abandon() override { choice_.abandon(); }

  std::int64_t trials() const { return choice_.trials(); }
  std::int64_t deadline() const { return choice_.deadline(); }
  int chosen() const { return choice_.chosen(); }
  void keep() const { choice_.keep(); }
  int open() const { return choice_.open(); }

 private:
  AutoChoice choice_;
};

/// The input of AutoChoice: the candidates that could be opened here, or the two that an earlier program has cached.
struct TrialSetup {
  std::vector<Trial> candidates;
  AutoOptions options;
};
/// @param names       strategies without their patterns, the same on all ranks. @param left_out transports that are
///         not tried, with reasons.
/// @param words       options of the transport: quick, fresh.
/// @param closes_alone  of a candidate by its name, see Trial. @throws as the first candidate, where none can be
///         opened.
/// Collective.
TrialSetup open_trials(const LinkContext& context, const std::vector<std::string>& names,
                       std::vector<std::string> left_out, const std::vector<std::string>& words,
                       bool (*closes_alone)(const std::string& name));

}  // namespace haloscope
