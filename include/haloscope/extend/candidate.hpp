// Candidates: choices with everything that follows from them, and their legality.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "haloscope/choice.hpp"
#include "haloscope/extend/app.hpp"
#include "haloscope/extend/reorder.hpp"
#include "haloscope/extend/schedule.hpp"

namespace haloscope {

/// A choice with everything that follows from it, the input of legality and programs. Its parts live as long as the
/// last candidate that shares them: a reference into a temporary candidate dangles.
struct Candidate {
 private:
  struct Body {
    Problem problem;
    Step step;
    Layout layout;
  };
  std::shared_ptr<const Body> body_;  // shared by candidates that differ only in the times and ways of messages
  Candidate(const Choice& choice, const App& app, const std::function<Layout()>& layout);

 public:
  const Choice& choice;
  const App& app;
  const Problem& problem;
  const Step& step;
  const Layout& layout;

  /// @param sites  see make_layout(). @throws UsageError for an invalid app, form, parameter or grid.
  explicit Candidate(const Choice& choice, const Sites& sites = {});
  /// The same for an app that need not be registered, on a layout that need not follow from the choice: grid and
  /// ranks of the choice are the layout's. `choice` and `app` must outlive the candidate.
  Candidate(const Choice& choice, const App& app, const Layout& layout);
  /// The app, problem, step and layout of `like` under a choice that differs from its choice only in the times and
  /// ways of messages. `choice` must outlive the candidate.
  Candidate(const Choice& choice, const Candidate& like);
  /// Returns the strategy of a stage.
  const Strategy& strategy(int stage) const;
};

/// Returns the problem of a choice: defaults filled in, parameters checked.
/// @throws UsageError for a form, scalar type or parameter that the app lacks.
Problem problem_of(const Choice& choice);

/// Returns the node of each rank when `ranks` ranks are split into `nodes` nodes as evenly as possible; empty for
/// nodes = 0.
/// @throws UsageError for fewer ranks than nodes.
std::vector<int> emulated_nodes(int ranks, int nodes, Placement placement);

/// The one legality function: returns an empty text if the choice can run, else the reason and the remedy.
/// Printable. Pure and local. It does not check this machine's MPI: opening a transport that the MPI lacks throws
/// UnavailableError.
std::string illegal(const Choice& choice);
std::string illegal(const Candidate& candidate);
/// The same by all rules except the rules of plans: make_plan() may still throw.
std::string refused(const Candidate& candidate);

/// Returns the exchange of a stage under a choice: as wide as the steps between exchanges need, with corners where
/// stencil or depth need them. It lists the exchanged quantities, in the order of the step.
/// @throws UsageError if the choice is not legal.
ExchangeSpec exchange_spec(const Choice& choice, int stage = 0);
ExchangeSpec exchange_spec(const Candidate& candidate, int stage = 0);
/// Returns the quantities of the step that an exchange of a stage moves, in the order of its spec.
std::vector<int> exchanged(const Candidate& candidate, int stage = 0);
/// Returns true if messages move fields of a device; with walls they move host cells.
bool messages_on_device(const Choice& choice);
/// Returns the options of a schedule for a legal choice, for programs of its whole depth; the rest are defaults.
ScheduleOptions schedule_options(const Choice& choice, int stage = 0);
ScheduleOptions schedule_options(const Candidate& candidate, int stage = 0);
/// Returns the layout of a choice.
/// @param sites  nodes and sockets of the ranks, which matter to a choice that reorders them; empty: its emulated
///               nodes, or, where it has none, unknown, so that ranks keep their order. @throws UsageError as Layout
///               does.
Layout make_layout(const Choice& choice, const Sites& sites = {});

/// Returns true if the field of that name has an effect on this choice.
bool matters(const Choice& choice, const std::string& field);
/// Returns the same choice with all fields without effect at their defaults.
Choice normal(Choice choice);

}  // namespace haloscope
