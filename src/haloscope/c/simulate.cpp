// Simulations of the C interface.
#include <algorithm>
#include <memory>
#include <vector>

#include "haloscope/c/bridge.hpp"
#include "haloscope/model/cast.hpp"

/// A choice on a machine, in the order in which one part refers to another, and its simulator.
struct hs_simulation {
  using Handle = void;
  haloscope::Choice choice;
  haloscope::Candidate candidate;
  haloscope::model::Profile profile;
  haloscope::model::Setting setting;
  haloscope::model::SweepNames names;
  haloscope::model::Shared shared;
  haloscope::model::Case of;
  haloscope::model::Cast cast;
  std::unique_ptr<haloscope::simulate::Simulator> simulator;

  hs_simulation(const haloscope::Choice& given, const haloscope::model::Profile& machine, haloscope::model::Setting how,
                std::shared_ptr<const haloscope::model::Placed> placed,
                const haloscope::model::MessageOverheads& overheads)
      : choice(on_nodes(given, *placed)),
        candidate(haloscope::model::legal(choice, *placed)),
        profile(machine),
        setting(std::move(how)),
        names(haloscope::model::sweep_names(candidate)),
        of(candidate, profile, setting, names, shared, std::move(placed)),
        cast(of),
        simulator(cast.make_simulator(overheads)) {}
};

namespace haloscope::c {

static_assert(sizeof(hs_simulation_result::seconds) / sizeof(double) == op_kinds);

namespace {

const model::Actors& actors_of(const hs_simulation& simulation, std::int32_t number) {
  const auto& all = simulation.cast.actors();
  return all[enumerator<std::size_t>(number, static_cast<int>(all.size()), "class")];
}

nlohmann::json to_json(const model::Actors& actors, bool opening) {
  nlohmann::json json{{"rank", actors.rank}, {"opening", static_cast<int>(opening)}, {"stages", actors.stages}};
  for (const simulate::OpSeconds& op : actors.seconds) json["seconds"].push_back(op.seconds);
  return json;
}

}  // namespace

}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

void hs_simulation_options_init(hs_simulation_options* options) {
  const simulate::Options o;
  if (!options) return;
  *options = {sizeof(hs_simulation_options),
              o.rounds,
              o.counted_from,
              o.noise_s,
              o.noise_share,
              o.seed,
              o.efficiency,
              o.by_itself,
              0};
}

hs_status hs_simulation_create(const hs_choice* choice, const hs_profile* profile, const hs_setting* setting,
                               double overhead_s, double gap_s, hs_simulation** simulation) {
  return guarded([&] {
    const Choice& c = needed(choice, "choice").choice;
    const model::Profile& machine = needed(profile, "profile").profile;
    const model::Setting how = from_c(setting);
    auto placed = std::make_shared<const model::Placed>(model::place_choice(c, machine, how));
    needed(simulation, "simulation") = keep(new hs_simulation(c, machine, how, std::move(placed), {overhead_s, gap_s}));
  });
}

hs_status hs_simulation_json(const hs_simulation* simulation, const char** json) {
  return guarded([&] {
    thread_local std::string result;
    const hs_simulation& s = needed(simulation, "simulation");
    answer(result,
           {{"ranks", s.choice.ranks},
            {"steps", s.of.steps},
            {"efficiency", s.of.efficiency},
            {"classes", s.cast.actors().size()},
            {"comm_thread", s.cast.has_comm_thread()},
            {"outside", s.cast.outside()},
            {"notes", s.of.notes}},
           json);
  });
}

hs_status hs_simulation_classes(const hs_simulation* simulation, int32_t* class_of) {
  return guarded([&] {
    const auto& classes = needed(simulation, "simulation").cast.class_of();
    std::copy(classes.begin(), classes.end(), &needed(class_of, "class_of"));
  });
}

hs_status hs_simulation_class(const hs_simulation* simulation, int32_t number, const char** json) {
  return guarded([&] {
    thread_local std::string result;
    const hs_simulation& s = needed(simulation, "simulation");
    answer(result, to_json(actors_of(s, number), s.cast.has_opening()), json);
  });
}

hs_status hs_simulation_program(const hs_simulation* simulation, int32_t number, int32_t program, hs_program** result) {
  return guarded([&] {
    const auto& programs = actors_of(needed(simulation, "simulation"), number).programs;
    const auto which = enumerator<std::size_t>(program, static_cast<int>(programs.size()), "program");
    needed(result, "result") = keep(new hs_program(flatten(Program(programs[which]))));
  });
}

hs_status hs_simulation_free(hs_simulation* simulation) { return release(simulation, "simulation"); }

hs_status hs_simulation_run(hs_simulation* simulation, const hs_simulation_options* options, double* ends,
                            hs_simulation_result* result) {
  return guarded([&] {
    hs_simulation_options defaults;
    hs_simulation_options_init(&defaults);
    const hs_simulation_options o = versioned(options, defaults, "hs_simulation_options");
    needed(ends, "ends");
    const simulate::Result found = needed(simulation, "simulation")
                                       .simulator->run({o.rounds, o.counted_from, o.noise_s, o.noise_share, o.seed,
                                                        o.efficiency, o.by_itself != 0});
    std::copy(found.ends.begin(), found.ends.end(), ends);
    hs_simulation_result& r = needed(result, "result");
    std::copy(found.seconds.begin(), found.seconds.end(), r.seconds);
    r.messages = found.messages;
    r.bytes = found.bytes;
    r.operations = found.operations;
    r.events = found.events;
  });
}
