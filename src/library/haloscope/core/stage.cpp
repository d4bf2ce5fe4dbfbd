#include "haloscope/stage.hpp"

#include <algorithm>

#include "haloscope/sweep.hpp"

namespace haloscope {

namespace {

/// Returns the cells around a region that its sweep accesses when it reads `layers` around the points that touch a
/// written one.
Widths reach_of(const Access& access, const SweepSpec& sweep, const std::vector<Quantity>& quantities, int dims) {
  Widths reach{};
  const Centring read = quantities[access.quantity].centring;
  for (const Centring swept : swept_centrings(sweep, quantities))
    for (int d = 0; d < dims && access.concerns(swept); ++d) {
      const bool cells_of_a_face = staggered(swept, d) && !staggered(read, d);
      reach[d] = std::max(reach[d], access.layers + cells_of_a_face);
    }
  return reach;
}

bool has_number(int number, std::size_t count) { return number >= 0 && number < static_cast<int>(count); }

class Resolver {
 public:
  Resolver(Step& step, int dims, const std::string& app) : step_(step), dims_(dims), app_(app) {}

  void resolve() {
    check(!step_.quantities.empty(), "it has no quantities; give it at least one");
    check(!step_.stages.empty(), "its step has no stages; give it at least one");
    check_names(step_.quantities, "quantities");
    check_names(step_.stages, "stages");
    for (const Quantity& q : step_.quantities)
      check(q.slots == 1 || q.slots == 2,
            "quantity '" + q.name + "' has " + std::to_string(q.slots) + " slots; give it 1, or 2 for old and new");
    for (Stage& stage : step_.stages) resolve(stage);
    check_loops();
    resolve_ends();
  }

 private:
  void check(bool good, const std::string& fault) const {
    if (!good) throw UsageError("app '" + app_ + "' cannot be run: " + fault);
  }
  /// Checks that names differ: users, records and descriptions distinguish members of a list by their names.
  template <class List>
  void check_names(const List& list, const std::string& kind) const {
    for (auto one = list.begin(); one != list.end(); ++one)
      check(std::none_of(list.begin(), one, [&](const auto& other) { return other.name == one->name; }),
            "two " + kind + " are called '" + one->name + "'; give each its own name");
  }
  void check_loops() const {
    const int count = static_cast<int>(step_.stages.size());
    for (int first = 0; first < count; ++first) {
      const Stage& stage = step_.stages[first];
      check(stage.repeats >= 0 && first + stage.repeats <= count && stage.least >= 0 && stage.most >= stage.least,
            "stage '" + stage.name + "' repeats " + std::to_string(stage.repeats) + " stages " +
                std::to_string(stage.least) + " to " + std::to_string(stage.most) +
                " times; repeat stages that exist, and set most to least or more");
      for (int inner = first + 1; inner < first + stage.repeats; ++inner)
        check(step_.stages[inner].repeats == 0, "stage '" + step_.stages[inner].name +
                                                    "' opens a loop inside that of stage '" + stage.name +
                                                    "'; loops cannot be nested");
    }
  }
  static bool gathers(const Stage& stage, const SweepSpec& sweep) {
    const auto number = static_cast<int>(&sweep - stage.sweeps.data()),
               last = static_cast<int>(stage.sweeps.size()) - 1;
    return std::any_of(stage.reductions.begin(), stage.reductions.end(),
                       [&](const Reduction& r) { return (r.sweep < 0 ? last : r.sweep) == number; });
  }
  const Quantity& quantity(int number) const { return step_.quantities[number]; }

  void resolve(Stage& stage) {
    check(!stage.sweeps.empty(), "stage '" + stage.name + "' has no sweeps; give it at least one");
    check_names(stage.sweeps, "sweeps in stage '" + stage.name + "'");
    std::vector<int> doubled, written;
    for (SweepSpec& sweep : stage.sweeps) {
      const std::string name = "sweep '" + sweep.name + "' of stage '" + stage.name + "'";
      check(!sweep.writes.empty() || (gathers(stage, sweep) && !sweep.reads.empty()),
            name + " writes nothing and gathers no numbers; name a quantity in `writes`, or the sweep in a reduction");
      for (int w : sweep.writes) {
        check(has_number(w, step_.quantities.size()),
              name + " writes quantity " + std::to_string(w) + ", which is none of the app's");
        if (quantity(w).slots < 2) continue;
        check(std::find(doubled.begin(), doubled.end(), w) == doubled.end(),
              "quantity '" + quantity(w).name + "' has two slots and is written twice in stage '" + stage.name +
                  "'; give it one slot, or a quantity of its own for the second result");
        doubled.push_back(w);
      }
      for (Access& access : sweep.reads) {
        resolve(access, sweep, name);
        const bool stale = access.reach != Widths{} && quantity(access.quantity).fills_edges() &&
                           std::find(written.begin(), written.end(), access.quantity) != written.end();
        check(!stale, name + " reads around its points a quantity that an earlier sweep of the stage writes, '" +
                          quantity(access.quantity).name +
                          "', which exchanges fill beyond the grid's edges; move it to a separate stage");
      }
      written.insert(written.end(), sweep.writes.begin(), sweep.writes.end());
    }
    if (stage.exchange)
      for (const Access& access : *stage.exchange)
        check(has_number(access.quantity, step_.quantities.size()) && access.layers >= 0,
              "stage '" + stage.name + "' exchanges quantity " + std::to_string(access.quantity) +
                  ", which is none of the app's, or a negative number of layers");
    for (Reduction& reduction : stage.reductions) {
      resolve(reduction, stage);
      reductions_.push_back(reduction);
    }
    check_names(reductions_, "reductions");
    if (doubled.empty()) return;
    check(!flips_,
          "double-buffered quantities are written by several stages, which would change slots twice in a "
          "step; give the quantities of one stage one slot each");
    flips_ = true;
  }

  void resolve(Reduction& reduction, const Stage& stage) const {
    const std::string name = "reduction '" + reduction.name + "' of stage '" + stage.name + "'";
    if (reduction.sweep < 0) reduction.sweep = static_cast<int>(stage.sweeps.size()) - 1;
    check(has_number(reduction.sweep, stage.sweeps.size()) && reduction.numbers >= 1,
          name + " has no sweep or no numbers");
    check(reduction.collectives >= 1 && reduction.numbers % reduction.collectives == 0 &&
              (reduction.collectives == 1 || reduction.mode == ReduceMode::blocking),
          name + " has " + std::to_string(reduction.numbers) + " numbers for " + std::to_string(reduction.collectives) +
              " collectives; use a number that divides them evenly, and more than 1 only for a blocking reduction");
    check(growths(stage, 1)[0][reduction.sweep] == Widths{},
          name +
              " is of a sweep that goes beyond the rank's own cells, because later sweeps of the stage read its "
              "results around their points; move those sweeps to a separate stage");
    check_way(reduction, stage, name);
    for (const Reduction* other = stage.reductions.data(); other != &reduction; ++other)
      check(other->sweep != reduction.sweep ||
                (other->last_only == reduction.last_only && !gathering_sweep(reduction, stage).in_place),
            "two reductions of stage '" + stage.name + "' are of one sweep, '" + other->name + "' and '" +
                reduction.name +
                "'; let both be of every step or both of the last one alone, and give a sweep in place only one");
  }
  static const SweepSpec& gathering_sweep(const Reduction& reduction, const Stage& stage) {
    return stage.sweeps[reduction.sweep];
  }
  void check_way(const Reduction& reduction, const Stage& stage, const std::string& name) const {
    check(reduction.by != ReduceBy::lists || reduction.mode == ReduceMode::blocking,
          name + " is " + to_word(reduction.mode) +
              " and gathers lists, whose lengths have to come first; make it blocking, or gather numbers");
    check(reduction.by == ReduceBy::reduce || !gathering_sweep(reduction, stage).in_place,
          name +
              " gathers from all ranks the numbers of a sweep in place, whose ranks are in different steps; let it " +
              "go by 'reduce'");
    check(reduction.by != ReduceBy::reduce || reduction.type == NumberType::real,
          name + " reduces numbers of type '" + to_word(reduction.type) +
              "', which only gathers have; let it go by 'gather', or its type be 'real'");
  }

  void resolve(Access& access, const SweepSpec& sweep, const std::string& name) const {
    check(has_number(access.quantity, step_.quantities.size()) && access.layers >= 0,
          name + " reads quantity " + std::to_string(access.quantity) +
              ", which is none of the app's, or a negative number of layers");
    access.reach = reach_of(access, sweep, step_.quantities, dims_);
    const bool written = writes(sweep, access.quantity);
    check(!written || access.layers == 0 || sweep.in_place || quantity(access.quantity).slots == 2,
          name + " reads neighbours of quantity '" + quantity(access.quantity).name +
              "', which it overwrites; give it two slots, or set in_place");
  }

  /// Returns the stage that opens the loop which a stage is in; -1: it is in none.
  int loop_of(int number) const {
    for (int first = number; first >= 0; --first)
      if (step_.stages[first].repeats > number - first) return first;
    return -1;
  }
  /// Sets for each stage the reductions of earlier stages that end with it.
  void resolve_ends() {
    const int count = static_cast<int>(step_.stages.size());
    for (Stage& stage : step_.stages) stage.awaited.clear();
    for (int s = 0; s < count; ++s) {
      const auto& begun = step_.stages[s].reductions;
      for (std::size_t r = 0; r < begun.size(); ++r) {
        if (begun[r].until.empty()) continue;
        int last = s, place = static_cast<int>(r);  // of the reduction, counted from the first of stage `last`
        do {
          place -= static_cast<int>(step_.stages[last].reductions.size());
        } while (++last < count && step_.stages[last].name != begun[r].until);
        check(last < count && loop_of(last) == loop_of(s) && begun[r].mode == ReduceMode::nonblocking &&
                  !begun[r].last_only,
              "reduction '" + begun[r].name + "' lasts until stage '" + begun[r].until +
                  "'; make it nonblocking and of every step, and name a later stage, in the same loop if there is one");
        step_.stages[last].awaited.push_back(place);
      }
    }
  }

  Step& step_;
  int dims_;
  const std::string& app_;
  std::vector<Reduction> reductions_;
  bool flips_ = false;
};

Widths wider(Widths a, const Widths& b) {
  for (int d = 0; d < 3; ++d) a[d] = std::max(a[d], b[d]);
  return a;
}

Widths sum(Widths a, const Widths& b) {
  for (int d = 0; d < 3; ++d) a[d] += b[d];
  return a;
}

/// Walks the sweeps of some steps backwards. needed[q]: layers around the own points that quantity q must have before
/// the current sweep; touched[q]: the maximum of layers that any sweep so far reads or writes.
struct Backwards {
  std::vector<Widths> needed, touched;
  std::vector<std::vector<Widths>> growth;

  Backwards(const Stage& stage, int steps) : growth(static_cast<std::size_t>(steps)) {
    int most = 0;
    for (const SweepSpec& sweep : stage.sweeps) {
      for (const Access& access : sweep.reads) most = std::max(most, access.quantity);
      for (int w : sweep.writes) most = std::max(most, w);
    }
    needed.assign(static_cast<std::size_t>(most) + 1, Widths{});
    touched = needed;
    for (int step = steps - 1; step >= 0; --step) {
      auto& of_step = growth[step];
      of_step.resize(stage.sweeps.size());
      for (std::size_t s = stage.sweeps.size(); s-- > 0;) of_step[s] = before(stage.sweeps[s]);
    }
  }

 private:
  /// Steps back over a sweep. @return the layers by which the sweep's region is grown.
  Widths before(const SweepSpec& sweep) {
    Widths growth{};
    for (int w : sweep.writes) growth = wider(growth, needed[w]);
    for (int w : sweep.writes) {
      needed[w] = Widths{};
      touch(w, growth);
    }
    for (const Access& access : sweep.reads) {
      Widths& most = needed[access.quantity];
      most = wider(most, sum(growth, access.reach));
      touch(access.quantity, most);
    }
    return growth;
  }
  void touch(int q, const Widths& layers) {
    Widths& most = touched[q];
    most = wider(most, layers);
  }
};

/// The first use of a quantity in a group of stages.
enum class Use { none, reads, writes };

Use first_use(const Stage& stage, int q) {
  const auto is_q = [q](const Access& access) { return access.quantity == q; };
  if (stage.exchange && std::any_of(stage.exchange->begin(), stage.exchange->end(), is_q)) return Use::reads;
  for (const SweepSpec& sweep : stage.sweeps) {
    if (std::any_of(sweep.reads.begin(), sweep.reads.end(), is_q)) return Use::reads;
    if (writes(sweep, q)) return Use::writes;
  }
  return Use::none;
}

/// Returns true if sweeps may read values of a quantity beyond the edge of the grid that only initial data set.
/// @param room  layers that the quantity has around the grid.
bool has_fixed_values(const Quantity& quantity, const Widths& room, const std::array<bool, 3>& periodic) {
  for (std::size_t d = 0; d < 3; ++d)
    if (!periodic[d] && room[d] > 0 && (quantity.edges[d].low == Edge::fixed || quantity.edges[d].high == Edge::fixed))
      return true;
  return false;
}

/// Returns the stages from the first group that uses a quantity to the last one; empty if its values outlive the
/// step.
std::optional<StageGroup> lifetime_of(const Step& step, int q) {
  std::optional<StageGroup> life;
  for (const StageGroup& group : groups_of(step)) {
    Use use = Use::none;
    for (int s = group.first; s < group.end && use == Use::none; ++s) use = first_use(step.stages[s], q);
    if (use == Use::none) continue;
    const Stage& opening = step.stages[group.first];
    const bool may_be_left_out = opening.repeats > 0 && opening.least == 0;
    if (!life && (use == Use::reads || may_be_left_out)) return std::nullopt;
    life = {life ? life->first : group.first, group.end};
  }
  return life;
}

}  // namespace

const std::vector<ReductionScheme>& reduction_schemes() {
  static const std::vector<ReductionScheme> schemes{
#define REDUCER(name, word, summary) {word, summary},
#include "haloscope/reduce/reducers.def"
#undef REDUCER
  };
  return schemes;
}

int Step::slots() const {
  return std::any_of(quantities.begin(), quantities.end(), [](const Quantity& q) { return q.slots == 2; }) ? 2 : 1;
}

std::vector<StageGroup> groups_of(const Step& step) {
  std::vector<StageGroup> groups;
  const int count = static_cast<int>(step.stages.size());
  for (int first = 0; first < count; first = groups.back().end)
    groups.push_back({first, first + std::max(1, step.stages[first].repeats)});
  return groups;
}

bool is_one_sweep(const Step& step) {
  return step.quantities.size() == 1 && step.stages.size() == 1 && step.stages.front().sweeps.size() == 1;
}

bool has_loops(const Step& step) {
  return std::any_of(step.stages.begin(), step.stages.end(), [](const Stage& stage) { return stage.repeats > 0; });
}

std::vector<std::optional<StageGroup>> lifetimes_of(const Step& step, const std::array<bool, 3>& periodic) {
  std::vector<std::optional<StageGroup>> lives(step.quantities.size());
  const std::vector<Widths> room = room_of(step, 1);
  for (std::size_t q = 0; q < lives.size(); ++q)
    if (step.quantities[q].slots == 1 && !has_fixed_values(step.quantities[q], room[q], periodic))
      lives[q] = lifetime_of(step, static_cast<int>(q));
  return lives;
}

bool flips(const Step& step, int stage) {
  for (const SweepSpec& sweep : step.stages[stage].sweeps)
    for (int w : sweep.writes)
      if (step.quantities[w].slots == 2) return true;
  return false;
}

Step resolved(Step step, int dims, const std::string& app) {
  Resolver(step, dims, app).resolve();
  return step;
}

Step stencil_step(int dims, int radius, bool box_stencil, double flops_per_point) {
  Step step;
  step.quantities = {Quantity{.name = "u", .element_bytes = 0, .slots = 2}};
  step.stages = {{.sweeps = {{.name = "sweep",
                              .reads = {{0, radius}},
                              .writes = {0},
                              .box_stencil = box_stencil,
                              .flops_per_point = flops_per_point}}}};
  return resolved(step, dims, "stencil");
}

std::vector<Centring> swept_centrings(const SweepSpec& sweep, const std::vector<Quantity>& quantities) {
  if (sweep.writes.empty()) return {Centring::cell};
  std::vector<Centring> found;
  for (int w : sweep.writes) found.push_back(quantities[w].centring);
  return found;
}

bool writes(const SweepSpec& sweep, int q) {
  return std::find(sweep.writes.begin(), sweep.writes.end(), q) != sweep.writes.end();
}

Box points_of(const Box& box, const Box& whole, Centring centring, int dims) {
  Box points = box;
  for (int d = 0; d < dims; ++d)
    if (staggered(centring, d) && box.hi[d] == whole.hi[d] && !box.empty()) ++points.hi[d];
  return points;
}

std::vector<std::vector<Widths>> growths(const Stage& stage, int steps) { return Backwards(stage, steps).growth; }

std::vector<Widths> halos_of(const Step& step, const Stage& stage, int steps) {
  std::vector<Widths> halos(step.quantities.size());
  if (stage.exchange && steps == 1) {
    for (const Access& access : *stage.exchange) {
      Widths& widths = halos[access.quantity];
      for (int& width : widths) width = std::max(width, access.layers);
    }
    return halos;
  }
  const auto needed = Backwards(stage, steps).needed;
  std::copy(needed.begin(), needed.end(), halos.begin());
  return halos;
}

std::vector<Widths> room_of(const Step& step, const Stage& stage, int steps) {
  std::vector<Widths> room = halos_of(step, stage, steps);
  const auto touched = Backwards(stage, steps).touched;
  for (std::size_t q = 0; q < touched.size(); ++q) room[q] = wider(room[q], touched[q]);
  return room;
}

std::vector<Widths> room_of(const Step& step, int steps) {
  std::vector<Widths> widest(step.quantities.size());
  for (const Stage& stage : step.stages) {
    const std::vector<Widths> room = room_of(step, stage, steps);
    for (std::size_t q = 0; q < room.size(); ++q) widest[q] = wider(widest[q], room[q]);
  }
  return widest;
}

Box SweepArgs::points(int q) const { return points_of(region, whole, centrings[q], dims); }

}  // namespace haloscope
