/* The bridge between Haloscope's Python package and its C++ library: apps, choices, plans, programs and predictions,
 * without MPI. It serves the package of the same version alone; other programs use haloscope/exchange.h.
 *
 *  - Values cross as JSON, with the names that their members have in C++; arrays hold a number for each rank.
 *  - `json` results live until the calling thread's next call of the same function.
 *  - Pure and local: no call communicates. Several threads may call at the same time.
 *
 * Dimension 0 is x, contiguous in memory; lists of three hold (x, y, z). Dimensions a grid lacks hold 1 cell, 1 rank.
 * Boxes are half-open, in cells; rank-local ones count from the rank's first owned cell, so halos reach below 0.
 *
 * Parts of requests:
 *   choice   app, cells, any of the fields of hs_describe("fields"), and set, the app's parameters; absent: the default
 *   layout   grid (dims, cells, periodic), ranks (of the process grid), places (of each rank; absent: x fastest)
 *   spec     the members of ExchangeSpec (plan.hpp)
 *   setting  the members of model::Setting: placement, active, custom, reductions, repeats
 */
#ifndef HALOSCOPE_BRIDGE_H
#define HALOSCOPE_BRIDGE_H

#include <haloscope/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- apps and choices -------------------------------------------------------------------------------------------- */

/* Everything of one kind, as an array: "apps", "transports", "schedules", "reduction-schemes", "fields" (of a choice),
 * "strategies" (for fields in host memory), "device-strategies", "rules" (of process grids), "backends" (of devices),
 * "placements" (of ranks on nodes), "terms" (of predictions), "operations" (of programs), "bounds" (of numbers),
 * "constants". Fails with HS_USAGE for an unknown kind. */
hs_status hs_describe(const char* kind, const char** json);
/* A strategy, parsed: name (its canonical form), transport, between, pattern, device, shared_fields (neighbours' fields
 * are read or written, which must then be in memory that a node's ranks share), probes (of the MPI library, that it
 * relies on). Fails with HS_USAGE for a malformed one. */
hs_status hs_parse_strategy(const char* text, const char** json);
/* Registers an app of another program, to be planned and predicted; it replaces one declared earlier under its name.
 * app  as hs_describe("apps") returns it, and as that program prints it when called with --describe
 * Fails with HS_USAGE for JSON that does not describe an app, and for the name of an app of this library. Not while
 * other threads call. */
hs_status hs_declare_app(const char* app);

/* One part of a choice: "fields" (the fields that have an effect, defaults filled in), "step" (quantities and stages),
 * "sweeps" (names in profiles of its sweeps, by stage), "spec" (of the exchange of a stage), "options" (of the schedule
 * in that stage; steps = depth).
 * Fails with HS_USAGE for an unknown field or value of a choice, naming the closest ones, and for a stage that its step
 * does not have; spec, options: for a choice that is not legal. */
hs_status hs_examine(const char* choice, const char* part, int32_t stage, const char** json);
/* The choices of a space, as an array of objects: choice (fields that have an effect), reason (why it cannot run, and
 * the remedy; "": it can).
 * space  choice: the fields that are the same for all; axes: pairs of a field and its values, the last one fastest, of
 *        which each choice is checked without fields that have no effect on it; or depths and arrangements, as
 *        hs_advise() has them: its candidates, each with changes (the fields that differ from the choice's) in place of
 *        choice.
 * Cost: independent of cells and ranks, for each choice. */
hs_status hs_expand(const char* space, const char** json);

/* ---- plans and programs ------------------------------------------------------------------------------------------ */

/* Ranks per dimension by a rule or explicit ("2x3x1"); their product is `ranks` >= 1. Fails with HS_USAGE. Cost
 * O(square of the divisors of `ranks`). */
hs_status hs_process_grid(const char* rule, int32_t ranks, int32_t dims, const int64_t cells[3], int32_t grid[3]);
/* The layout of a choice.
 * node, socket  of each rank, any numbers, for a choice that reorders its ranks; NULL: its emulated nodes, if any.
 * Cost O(ranks log ranks) where ranks are reordered. */
hs_status hs_make_layout(const char* choice, const int32_t* node, const int32_t* socket, const char** json);
/* A rank of a layout: coords and owned cells in the grid, neighbours (27 ranks, by offset, x fastest; -1: none), and
 * the parts for which the request has members: plan (of `spec`), with the traffic of its messages, and the points that
 * it owns and allocates of each quantity; program (of `schedule`, for `stage` of `step` with `options`, from that
 * plan).
 * request  layout, rank; spec; schedule, step, stage, options
 * Fails with HS_USAGE for a rank outside the layout, a halo wider than the smallest block it is filled from, an unknown
 * schedule or stage, impossible options. Cost O(messages), independent of cells and ranks. */
hs_status hs_plan(const char* request, const char** json);
/* The peers of other ranks whose plans differ from one rank's in rank numbers only.
 * request  layout, spec, rank
 * ranks    `count` of them
 * peers    out: count x messages, by rank, then in the order of the plan's messages */
hs_status hs_find_peers(const char* request, int32_t count, const int32_t* ranks, int32_t* peers);
/* Sums over the plans of all ranks.
 * request  layout, spec
 * groups   of each rank: `between` then has the bytes sent from group to group; NULL: none
 * Cost O(ranks x messages). */
hs_status hs_add_up(const char* request, const int32_t* groups, const char** json);
/* Proves that the programs of all ranks never read data that has not arrived, and end at the right time step. Small
 * grids only: cost O(ranks x (operations^2 + points x steps)).
 * request  choice; options: options of its schedule to replace
 * finding  out: "" or the fault */
hs_status hs_check(const char* request, const char** finding);

/* ---- the model --------------------------------------------------------------------------------------------------- */

/* A machine profile, by a handle. */
typedef struct hs_profile hs_profile;

/* A profile from its JSON, of the format data/profile.schema.json. Fails with HS_USAGE for one that is not valid,
 * naming the fault and its position. Cost: milliseconds. */
hs_status hs_open_profile(const char* json, hs_profile** profile);
/* The profile of the same machine at another pace: every cost in proportion to the kernel of the pace that resembles
 * it, but costs of devices, which no kernel resembles.
 * pace    as the `pace` of a record: ranks, and times by name
 * Fails with HS_UNAVAILABLE when the profile has no pace with this number of ranks, HS_USAGE for JSON that is not a
 * pace. Cost: a copy. */
hs_status hs_profile_at_pace(const hs_profile* profile, const char* pace, hs_profile** scaled);
hs_status hs_free_profile(hs_profile* profile);

/* The mapping of ranks: node, and socket numbered over all nodes.
 * request       choice, setting: on the profile's machine; choice alone: on its emulated nodes, all 0 where it has
 *               none; ranks, sockets_per_node, cores_per_socket, setting: on any machine
 * profile       NULL where none is needed
 * node, socket  out: for each rank. Fails with HS_USAGE for an impossible setting. */
hs_status hs_map_ranks(const char* request, const hs_profile* profile, int32_t* node, int32_t* socket);

/* The predicted times of a step of choices, in step with all other ranks, long after the start, as an array of objects
 * in seconds per time step: profile, pace (of the prediction over the pace of the calibration, by kind), time_s,
 * interval and exchange_interval (90 %, null where the profile has none), interval_from (the regime of the held-out
 * measurements that they are from, or "all"; "": from the profile's parameters), regime and exchange_regime (the bound
 * of the step, and of the exchange), terms (by name, along the critical path of the slowest rank; they add up to
 * time_s), busy (the same terms, hidden or not), worst_rank, worst_node, worst_node_bytes (that it sends to other
 * nodes), nodes, classes (of ranks), messages, bytes and message_bytes (that the worst rank sends in all exchanges of a
 * step; min and max), bound ("latency-bound" or "bandwidth-bound", by their mean), reason (one clause with the bound of
 * the exchange), outside (costs beyond the calibrated range), notes.
 * request  choices, setting, samples (of the profile's parameters for the interval, 0: none), singly (true: every rank
 *          is timed instead of one per class; slow, for checks)
 * Fails with HS_USAGE when a choice cannot run, HS_UNAVAILABLE when the profile lacks a cost that it needs.
 * Cost: about a millisecond for each choice, a second for 10^5 ranks. */
hs_status hs_predict(const char* request, const hs_profile* profile, const char** json);
/* Candidates for a choice, ranked by their predictions: time_s, fastest first; candidates (the fields of each that
 * differ from the choice's); group of each (from 0; its members cannot be distinguished from its fastest); simplest, of
 * each group the position among the candidates of its simplest member within 5 % of its fastest; first_of_depth, pairs
 * of a depth and the position of its fastest candidate; predictions (pairs of a position and the JSON of a prediction
 * as text: of the first candidate, of simplest, of first_of_depth); changes, sentences on changes of the machine that
 * would change the answer; refused, pairs of a reason why candidates are missing and their number.
 * request  choice, setting, samples (of the profile's parameters, under which candidates are compared), every (true:
 *          predictions of all candidates); among: the candidates to compare, by changes; absent: every strategy,
 *          schedule and depth, deep ones with every kind of substeps (depths: time steps per exchange to try), each in
 *          every arrangement (arrangements: changes of reorder and process_grid)
 * Fails with HS_USAGE when none is legal, HS_UNAVAILABLE when the profile lacks a cost that all need. Cost: a
 * prediction each. */
hs_status hs_advise(const char* request, const hs_profile* profile, const char** json);
/* The candidate that is predicted fastest: the members of a prediction, changes, equals (changes of the candidates that
 * the profile cannot distinguish from it, fastest first); notes also holds the assumptions.
 * question  choice, whose strategy, schedule, depth and substeps are replaced. Besides, each with a default:
 *           assumed_app (true: the app represents a program that has named none), depths, seconds_per_cell (of the
 *           program's own sweep), fused (true: it can apply all sub-steps of a deep halo tile by tile in the cache),
 *           halo (ghost layers that there is room for), shared_memory (false: fields lie in a rank's own memory),
 *           samples, cpu and mpi_library (of the program), among (as of hs_advise)
 * Fails as hs_advise does, and for an invalid question. Cost: a fraction of a second; seconds for thousands of
 * ranks. */
hs_status hs_best(const char* question, const hs_profile* profile, const char** json);

/* ---- simulation: programs of all ranks, message by message ------------------------------------------------------- */

/* The programs and costs of all ranks of a choice, as a simulation has them: ranks, steps (time steps of a round),
 * comm_thread, outside (costs beyond the calibrated range), notes, and classes of ranks with equal plans and costs,
 * each with rank (one of it), opening (programs that run once, before the programs of a round), stages (of each
 * program), programs, seconds (of each operation, by program).
 * request   choice, setting
 * class_of  out: the class of each rank. Fails as hs_predict does. */
hs_status hs_programs(const char* request, const hs_profile* profile, int32_t* class_of, const char** json);
/* Simulates time steps of a choice; times in seconds per time step over the second half of the rounds: time_s (of all
 * ranks together, between the ends of the last rank), mean_s and percentiles (5, 50, 95, 100; over ranks and rounds,
 * from one end of a round to the next), by_operation (mean over ranks, waiting included), worst_rank (the last to end);
 * rounds, steps, classes, outside, notes; messages, bytes, operations, events (in all steps).
 * request  choice, setting; steps >= 1 (at least two rounds are simulated), noise_s and noise_share (mean delay of an
 *          operation that takes time, exponentially distributed, in seconds and as a part of its seconds), seed (the
 *          same one produces the same run), overhead_s (sender and receiver each are busy with a message; subtracted
 *          from its latency), gap_s (min time between two sends of a rank), by_itself (true: rendezvous messages need
 *          to be posted but no call)
 * Fails as hs_predict does, with HS_USAGE for numbers out of range and times that do not fit into memory, HS_FAILED
 * when ranks deadlock.
 * Cost: seconds for 10^6 ranks, and O(events x log(ranks)): about a second per million events. */
hs_status hs_simulate(const char* request, const hs_profile* profile, const char** json);

#ifdef __cplusplus
}
#endif

#endif
