// The values that cross the bridge, with the list of their members that do.
#pragma once

#include "bindings/python/members.hpp"
#include "haloscope/model/costed_candidate.hpp"
#include "haloscope/program.hpp"

namespace haloscope {
HALOSCOPE_WORDS(Lane, "lane", "main", "comm", "sweep_stream", "halo_stream");
}

namespace haloscope::bridge {

template <>
inline constexpr auto members_of<Box> = std::tuple(Member{"lo", &Box::lo}, Member{"hi", &Box::hi});

template <>
inline constexpr auto members_of<GridSpec> = std::tuple(Member{"dims", &GridSpec::dims},
                                                        Member{"cells", &GridSpec::cells},
                                                        Member{"periodic", &GridSpec::periodic});

template <>
inline constexpr auto members_of<Quantity> = std::tuple(
    Member{"name", &Quantity::name}, Member{"element_bytes", &Quantity::element_bytes}, Member{"type", &Quantity::type},
    Member{"centring", &Quantity::centring}, Member{"slots", &Quantity::slots}, Member{"edges", &Quantity::edges});

template <>
inline constexpr auto members_of<ExchangeSpec::Sides> = std::tuple(Member{"low", &ExchangeSpec::Sides::low},
                                                                   Member{"high", &ExchangeSpec::Sides::high});
template <>
inline constexpr bool crosses_as_list<ExchangeSpec::Sides> = true;

template <>
inline constexpr auto members_of<ExchangeSpec> =
    std::tuple(Member{"quantities", &ExchangeSpec::quantities}, Member{"low", &ExchangeSpec::low},
               Member{"high", &ExchangeSpec::high}, Member{"widths", &ExchangeSpec::widths},
               Member{"pattern", &ExchangeSpec::pattern}, Member{"corners", &ExchangeSpec::corners},
               Member{"merge_peers", &ExchangeSpec::merge_peers}, Member{"merge", &ExchangeSpec::merge},
               Member{"order", &ExchangeSpec::order});

template <>
inline constexpr auto members_of<Region> = std::tuple(Member{"quantity", &Region::quantity},
                                                      Member{"box", &Region::box});

template <>
inline constexpr auto members_of<Message> = std::tuple(Member{"out", &Message::out}, Member{"peer", &Message::peer},
                                                       Member{"tag", &Message::tag}, Member{"round", &Message::round},
                                                       Member{"bytes", &Message::bytes},
                                                       Member{"regions", &Message::regions});

template <>
inline constexpr auto members_of<Copy> = std::tuple(Member{"quantity", &Copy::quantity}, Member{"round", &Copy::round},
                                                    Member{"to", &Copy::to}, Member{"shift", &Copy::shift},
                                                    Member{"negate", &Copy::negate});

template <>
inline constexpr auto members_of<model::Traffic> = std::tuple(Member{"bytes", &model::Traffic::bytes},
                                                              Member{"run_bytes", &model::Traffic::run_bytes},
                                                              Member{"in_place", &model::Traffic::in_place});

template <>
inline constexpr auto members_of<Plan> = std::tuple(Member{"rank", &Plan::rank}, Member{"dims", &Plan::dims},
                                                    Member{"rounds", &Plan::rounds}, Member{"cells", &Plan::cells},
                                                    Member{"has_neighbour", &Plan::has_neighbour},
                                                    Member{"own_neighbour", &Plan::own_neighbour},
                                                    Member{"messages", &Plan::messages},
                                                    Member{"copies", &Plan::copies});

template <>
inline constexpr auto members_of<Op> = std::tuple(Member{"kind", &Op::kind}, Member{"lane", &Op::lane},
                                                  Member{"slot", &Op::slot}, Member{"target", &Op::target},
                                                  Member{"after", &Op::after});

template <>
inline constexpr auto members_of<Sweep> = std::tuple(Member{"region", &Sweep::region}, Member{"valid", &Sweep::valid},
                                                     Member{"into", &Sweep::into}, Member{"step", &Sweep::step},
                                                     Member{"levels", &Sweep::levels}, Member{"part", &Sweep::part},
                                                     Member{"twin", &Sweep::twin}, Member{"faces", &Sweep::faces},
                                                     Member{"number", &Sweep::number},
                                                     Member{"in_place", &Sweep::in_place},
                                                     Member{"whole", &Sweep::whole});

template <>
inline constexpr auto members_of<Ring> = std::tuple(Member{"to_device", &Ring::to_device},
                                                    Member{"boxes", &Ring::boxes});

template <>
inline constexpr auto members_of<Program> = std::tuple(
    Member{"steps", &Program::steps}, Member{"slots", &Program::slots}, Member{"final_slot", &Program::final_slot},
    Member{"comm_thread", &Program::comm_thread}, Member{"sharing", &Program::sharing},
    Member{"device", &Program::device}, Member{"wraps", &Program::wraps}, Member{"signals", &Program::signals},
    Member{"ops", &Program::ops}, Member{"sweeps", &Program::sweeps}, Member{"sets", &Program::sets},
    Member{"copy_sets", &Program::copy_sets}, Member{"block", &Program::block}, Member{"rings", &Program::rings});

template <>
inline constexpr auto members_of<ScheduleOptions> = std::tuple(
    Member{"depth", &ScheduleOptions::depth}, Member{"steps", &ScheduleOptions::steps},
    Member{"substeps", &ScheduleOptions::substeps}, Member{"tiles", &ScheduleOptions::tiles},
    Member{"sharing", &ScheduleOptions::sharing}, Member{"barrier", &ScheduleOptions::barrier},
    Member{"collective_rounds", &ScheduleOptions::collective_rounds}, Member{"series", &ScheduleOptions::series},
    Member{"device", &ScheduleOptions::device}, Member{"staged", &ScheduleOptions::staged},
    Member{"pack_first", &ScheduleOptions::pack_first}, Member{"walls", &ScheduleOptions::walls},
    Member{"last", &ScheduleOptions::last}, Member{"slots", &ScheduleOptions::slots},
    Member{"flips", &ScheduleOptions::flips}, Member{"signals", &ScheduleOptions::signals});

template <>
inline constexpr auto members_of<model::Setting> = std::tuple(Member{"placement", &model::Setting::placement},
                                                              Member{"active", &model::Setting::active},
                                                              Member{"custom", &model::Setting::custom},
                                                              Member{"reductions", &model::Setting::reductions},
                                                              Member{"repeats", &model::Setting::repeats});

}  // namespace haloscope::bridge
