/* Haloscope's C interface: layouts, plans and programs, without MPI. C, Fortran and Python all bind to it.
 *
 * Rules that hold for every call:
 *  - A call that can fail returns an hs_status; hs_last_error() then holds the text, for the calling thread.
 *  - `hs_..._create` hands out a handle that the caller frees with `hs_..._free` (which accepts NULL). A plan and a
 *    program keep nothing of the layout, plan or struct they were made from.
 *  - A handle is a number, not an address. Every call recognises one that was freed, freed twice or given out by no
 *    call, and fails with HS_USAGE; a copy of a handle ends with the first of them that is freed.
 *  - Pointers inside structs that a call fills belong to the handle they came from and live as long as it does.
 *    `const char**` and `hs_spec` results live until the calling thread's next call of the same function.
 *  - Things with many fields, which grow with time, cross as JSON: choices, apps, the stages of a step, lists of names.
 *    Numbers that many operations need cross as plain arrays.
 *  - Structs passed in start with `struct_size`; `hs_..._init` sets it and every default. Structs without it are
 *    elements of arrays and change only together with HS_ABI.
 *  - Pure and local: no call communicates, and handles may be read by several threads at once.
 *
 * Dimension 0 is x, contiguous in memory; arrays of three hold (x, y, z). Dimensions a grid lacks hold 1 cell, 1 rank.
 * Boxes are half-open, in cells; rank-local ones count from the rank's first owned cell, so halos reach below 0.
 */
#ifndef HALOSCOPE_C_H
#define HALOSCOPE_C_H

#include <stdint.h>

/* The version of this interface; a library with another hs_abi() must not be called through this header. */
#define HS_ABI 6

#ifdef __cplusplus
extern "C" {
#endif

/* Outcome of a call; equal to the exit codes of Haloscope's programs. */
typedef int32_t hs_status;
enum {
  HS_OK = 0,
  HS_FAILED = 1,     /* something broke: out of memory, an internal fault */
  HS_USAGE = 2,      /* the request can never work: wrong value, unknown name, illegal combination */
  HS_UNAVAILABLE = 3 /* a legal request that this build cannot serve */
};

/* The version of the library, "major.minor.patch". */
const char* hs_version(void);
/* The HS_ABI that the library was built with. */
int32_t hs_abi(void);
/* What was asked, what is wrong and what to do, for this thread's last call that did not return HS_OK; else "". */
const char* hs_last_error(void);

/* ---- what there is ----------------------------------------------------------------------------------------------- */

/* Everything of one kind, as a JSON array.
 * kind  objects with name, summary and traits: "apps", "transports", "schedules", "reduction-schemes"; objects with
 *       name, type, group, meaning, words and default: "fields" (of a choice); names, defaults first: "strategies"
 *       (for fields in host memory), "device-strategies", "rules" (of process grids), "backends" (of devices),
 *       "placements" (of ranks on nodes), "terms" (of predictions)
 * json  out. Fails with HS_USAGE for an unknown kind. */
hs_status hs_list(const char* kind, const char** json);

/* One app as JSON: forms, parameters, and for each form the quantities and stages of a step.
 * set   parameters that are not their defaults, as a JSON object of values or texts; NULL: none
 * json  out. Fails with HS_USAGE and the nearest valid names. */
hs_status hs_app_describe(const char* name, const char* set, const char** json);

/* Make an app of another program known, to be planned and priced, in place of one declared earlier under its name.
 * json  as hs_app_describe gives it, and that program when called with --describe
 * Fails with HS_USAGE for JSON that describes no app, and for the name of an app of this library. Not while other
 * threads call. */
hs_status hs_app_declare(const char* json);

/* A strategy such as "ordered/p2p" as JSON: name (its canonical form), transport, between, pattern, device,
 * shared_fields (neighbours' fields are read or written, which must then be in memory that a node's ranks share) and
 * probes (of the MPI library, that it relies on). Fails with HS_USAGE for a malformed one. */
hs_status hs_strategy_describe(const char* text, const char** json);

/* ---- choices ----------------------------------------------------------------------------------------------------- */

/* Everything a user picks for one run. */
typedef struct hs_choice hs_choice;

/* A choice from a JSON object: app, cells, any of hs_list("fields"), and set, the app's parameters; what is absent has
 * its default. Fails with HS_USAGE for an unknown field or value, naming the nearest. */
hs_status hs_choice_create(const char* json, hs_choice** choice);
hs_status hs_choice_free(hs_choice* choice);
/* Its fields that have an effect, defaults filled in. Fails with HS_USAGE for what its app does not know. */
hs_status hs_choice_json(const hs_choice* choice, const char** json);
/* Why `choice` cannot run and what to do about it; "" when it can. Local, cost independent of cells and ranks. */
hs_status hs_illegal(const hs_choice* choice, const char** reason);

/* Node of each rank when `choice` splits its ranks into nodes; all 0 where it does not.
 * nodes  out: as many numbers as it has ranks. Fails with HS_USAGE for more nodes than ranks. */
hs_status hs_choice_nodes(const hs_choice* choice, int32_t* nodes);

/* ---- steps: what a time step is made of -------------------------------------------------------------------------- */

/* Quantities, and stages: an exchange, sweeps, reductions. */
typedef struct hs_step hs_step;

/* The step of a choice. Fails with HS_USAGE for what its app does not know. */
hs_status hs_step_create_of(const hs_choice* choice, hs_step** step);
/* A step from JSON as hs_step_json gives it; dims: 1 to 3. Fails with HS_USAGE for what cannot be computed. */
hs_status hs_step_create(int32_t dims, const char* json, hs_step** step);
hs_status hs_step_free(hs_step* step);
hs_status hs_step_json(const hs_step* step, const char** json);

/* ---- layouts: how a grid is split -------------------------------------------------------------------------------- */

typedef struct hs_layout hs_layout;

typedef struct hs_box {
  int64_t lo[3], hi[3]; /* half-open */
} hs_box;

typedef struct hs_layout_data {
  int64_t cells[3]; /* global */
  int32_t periodic[3];
  int32_t ranks[3];   /* the process grid */
  int32_t dims, size; /* size: ranks in all */
} hs_layout_data;

/* Ranks per dimension by a rule ("cubic", "square", "prime-factors", "slabs") or explicit ("2x3x1"); their product is
* `ranks` >= 1. Fails with HS_USAGE. Cost O(square of the divisors of `ranks`). */
hs_status hs_process_grid(const char* rule, int32_t ranks, int32_t dims, const int64_t cells[3], int32_t grid[3]);

/* A grid of `cells` over `ranks` ranks per dimension. Rank numbers run x fastest; the first (cells mod ranks) ranks of
 * a dimension own one cell more. Fails with HS_USAGE for cells or ranks < 1, more ranks than cells, dims outside 1..3.
 */
hs_status hs_layout_create(int32_t dims, const int64_t cells[3], const int32_t periodic[3], const int32_t ranks[3],
                           hs_layout** layout);
/* The layout of a choice. One that reorders its ranks does so for its emulated nodes, if it has any. */
hs_status hs_layout_create_of(const hs_choice* choice, hs_layout** layout);
/* The same with its ranks on known machines.
 * nodes, sockets  of each rank, any numbers; a node's sockets may have those of another's. Cost O(ranks log ranks). */
hs_status hs_layout_create_on(const hs_choice* choice, const int32_t* nodes, const int32_t* sockets,
                              hs_layout** layout);
hs_status hs_layout_free(hs_layout* layout);
hs_status hs_layout_get(const hs_layout* layout, hs_layout_data* data);
/* The rank's place in the process grid. These calls fail with HS_USAGE for a rank outside 0..size-1. */
hs_status hs_layout_coords(const hs_layout* layout, int32_t rank, int32_t coords[3]);
/* The rank's cells, in global coordinates. */
hs_status hs_layout_owned(const hs_layout* layout, int32_t rank, hs_box* owned);
/* The rank at `offset` (each -1, 0, 1) from `rank`; -1 beyond an edge that is not periodic; may be `rank` itself. */
hs_status hs_layout_neighbour(const hs_layout* layout, int32_t rank, const int32_t offset[3], int32_t* neighbour);
/* The place of each rank in the process grid, x fastest.
 * places  out: as many numbers as there are ranks */
hs_status hs_layout_places(const hs_layout* layout, int32_t* places);
/* The rank that owns a global cell. Fails with HS_USAGE for a cell outside the grid. */
hs_status hs_layout_owner(const hs_layout* layout, const int64_t cell[3], int32_t* owner);

/* Which ranks have the same plans, whatever the exchange, but for the rank numbers in them.
 * classes  out: for each rank of the layout the number of its class, 0..count-1, in order of their first ranks
 * count    out. Cost O(ranks x log(classes)); there are at most 6 per dimension that the grid has, to its power. */
hs_status hs_layout_classes(const hs_layout* layout, int32_t* classes, int32_t* count);

/* ---- plans: what moves in one exchange --------------------------------------------------------------------------- */

enum { HS_CENTRING_CELL, HS_CENTRING_NODE, HS_CENTRING_FACE_X, HS_CENTRING_FACE_Y, HS_CENTRING_FACE_Z };
/* What ghost points beyond an edge hold: values that stay, inner ones mirrored, or those negated. */
enum { HS_EDGE_FIXED, HS_EDGE_EVEN, HS_EDGE_ODD };
enum { HS_TYPE_REAL, HS_TYPE_INTEGER };
enum { HS_PATTERN_ORDERED, HS_PATTERN_DIRECT };
enum { HS_MERGE_ALL, HS_MERGE_TYPE, HS_MERGE_NONE, HS_MERGE_SERIAL, HS_MERGE_PIPELINED };

/* One field that takes part. */
typedef struct hs_quantity {
  const char* name;
  int32_t element_bytes; /* >= 1 */
  int32_t type;          /* HS_TYPE_... */
  int32_t centring;      /* HS_CENTRING_...; planes that both ranks hold are never sent */
  int32_t edges[3];      /* HS_EDGE_..., per dimension that does not wrap around */
} hs_quantity;

/* Ghost layers of one quantity. */
typedef struct hs_sides {
  int32_t low[3], high[3];
} hs_sides;

/* Everything that decides what one exchange moves. */
typedef struct hs_spec {
  uint64_t struct_size;
  const hs_quantity* quantities;
  int32_t quantity_count; /* default 1: an 8-byte cell-centred real "u" */
  int32_t low[3];         /* ghost layers on the low side, >= 0; default 1 */
  int32_t high[3];        /* ghost layers on the high side, >= 0; default 1 */
  int32_t pattern;        /* HS_PATTERN_ORDERED (default) or _DIRECT */
  int32_t corners;        /* 1 (default): edges and corners too */
  int32_t merge_peers;    /* 1: one message per distinct peer and round; default 0 */
  int32_t merge;          /* which quantities share a message: HS_MERGE_ALL (default), _TYPE, _NONE, and
                             which have rounds of their own: _SERIAL, _PIPELINED */
  int32_t order[3];       /* dimensions in the order of an ordered plan's rounds; default 0, 1, 2 */
  int32_t reserved;
  const hs_sides* widths; /* ghost layers by quantity where they differ; NULL (default): low and high for all */
} hs_spec;

void hs_spec_init(hs_spec* spec);
/* The exchange of a choice in one stage of its step: as wide as the steps between exchanges need. Quantities
 * have the names that they have in the step. Fails with HS_USAGE if the choice is not legal or has no such stage. */
hs_status hs_spec_of(const hs_choice* choice, int32_t stage, hs_spec* spec);

typedef struct hs_plan hs_plan;

/* A box of one quantity, rank-local. */
typedef struct hs_region {
  hs_box box;
  int32_t quantity;
  int32_t reserved;
} hs_region;

/* A one-way message; both ends list its regions in the same order. */
typedef struct hs_message {
  int64_t bytes;
  int32_t out; /* 1: this rank sends it */
  int32_t peer;
  int32_t tag; /* unique among the messages from one rank to another in one exchange */
  int32_t round;
  int32_t first_region, region_count; /* in hs_plan_data.regions */
} hs_message;

/* A halo box `to` filled from the same rank's points at `to` + `shift`, negated or not. */
typedef struct hs_copy {
  hs_box to;
  int64_t shift[3];
  int32_t quantity, round;
  int32_t negate, reserved;
} hs_copy;

typedef struct hs_plan_data {
  int32_t rank, dims, rounds;
  int32_t own_neighbour[3];    /* 1: the neighbour in this dimension is the rank itself */
  int32_t has_neighbour[3][2]; /* [dimension][low, high]; own neighbours count */
  int64_t cells[3];            /* owned */
  int64_t bytes_out;
  int32_t messages_out;
  int32_t message_count, region_count, copy_count;
  const hs_message* messages; /* by round; within a round receives before sends */
  const hs_region* regions;
  const hs_copy* copies; /* by round */
} hs_plan_data;

/* The plan of one rank. Fails with HS_USAGE for a rank outside the layout, a halo wider than the smallest block it is
 * filled from, a negative width, no quantity. Cost O(messages), independent of cells and ranks. */
hs_status hs_plan_create(const hs_layout* layout, int32_t rank, const hs_spec* spec, hs_plan** plan);
hs_status hs_plan_free(hs_plan* plan);
hs_status hs_plan_get(const hs_plan* plan, hs_plan_data* data);
/* The points of a quantity that the rank owns (shared planes included), and those with every ghost layer. */
hs_status hs_plan_boxes(const hs_plan* plan, int32_t quantity, hs_box* owned, hs_box* allocated);

/* How the bytes of a message, or of copies, lie in a field with Haloscope's own strides. */
typedef struct hs_traffic {
  int64_t bytes;
  int64_t run_bytes; /* mean length of a stretch without gaps */
  int32_t in_place;  /* 1: the message is one stretch and needs no packing */
  int32_t reserved;
} hs_traffic;

/* The traffic of one of the plan's messages. Fails with HS_USAGE for a message that it does not have. */
hs_status hs_plan_traffic(const hs_plan* plan, int32_t message, hs_traffic* traffic);
/* Peers of other ranks whose plans are this one's but for rank numbers (one class of hs_layout_classes).
 * ranks  `count` of them; layout is the plan's own
 * peers  out: count x message_count, by rank, then in the order of the plan's messages
 * Fails with HS_USAGE for a rank outside the layout. */
hs_status hs_plan_peers(const hs_layout* layout, const hs_plan* plan, int32_t count, const int32_t* ranks,
                        int32_t* peers);

/* One exchange of all ranks together. Bytes and messages are counted where they are sent. */
typedef struct hs_totals {
  int64_t messages, bytes, copies, copy_bytes;
  int64_t largest_message_bytes;
  int64_t rank_bytes_min, rank_bytes_max;
  int64_t rank_cells_min, rank_cells_max;
  int32_t rank_messages_min, rank_messages_max;
  int32_t rank_peers_min, rank_peers_max; /* distinct ranks sent to */
  int32_t worst_rank;                     /* the first one that sends most bytes */
  int32_t ranks;
} hs_totals;

/* Sums over the plans of all ranks. Fails as hs_plan_create does. Cost O(ranks x messages). */
hs_status hs_plan_totals(const hs_layout* layout, const hs_spec* spec, hs_totals* totals);

/* Bytes that one exchange of all ranks sends from group to group, as from node to node.
 * groups  of each rank, any numbers. Fails as hs_plan_create does. Cost O(ranks x messages). */
hs_status hs_plan_between(const hs_layout* layout, const hs_spec* spec, const int32_t* groups, int64_t* bytes);

/* ---- programs: when things happen -------------------------------------------------------------------------------- */

enum {
  HS_OP_BARRIER,
  HS_OP_POST,
  HS_OP_COPY,
  HS_OP_PACK,
  HS_OP_SEND,
  HS_OP_WAIT,
  HS_OP_UNPACK,
  HS_OP_COMPLETE,
  HS_OP_SWEEP,
  HS_OP_PROGRESS,
  HS_OP_D2H,      /* copy packed messages from the device to the host */
  HS_OP_H2D,      /* copy messages that have arrived from the host to the device */
  HS_OP_GATHER,   /* collect a ring's cells where they are, on the host or a device */
  HS_OP_TRANSFER, /* bring them to the other memory */
  HS_OP_SCATTER,  /* put them in their places there */
  HS_OP_REDUCE,   /* combine a reduction's numbers over threads and begin to over ranks */
  HS_OP_REDUCED   /* until the numbers of a reduction that is under way are there */
};
/* The team of threads; one thread at a time, in program order; two streams of a device, each in program order. */
enum { HS_LANE_MAIN, HS_LANE_COMM, HS_LANE_SWEEP_STREAM, HS_LANE_HALO_STREAM };
enum { HS_PART_FULL, HS_PART_INNER, HS_PART_OUTER };
enum { HS_SHARING_GUIDED, HS_SHARING_DYNAMIC };
enum { HS_SUBSTEPS_FULL, HS_SUBSTEPS_SHRINK, HS_SUBSTEPS_BLOCKED };
enum { HS_SERIES_WHOLE, HS_SERIES_OPENING, HS_SERIES_ENTRY, HS_SERIES_BODY, HS_SERIES_CLOSING };

/* Bytes of a rank's field from which on its sweeps store around the cache, unless a choice says otherwise. */
enum { HS_STREAM_FROM_BYTES = 8388608 };

typedef struct hs_program hs_program;

/* One operation. `after`: operations that must have finished first. */
typedef struct hs_op {
  int32_t kind, lane; /* HS_OP_..., HS_LANE_... */
  int32_t slot;       /* slot read or exchanged, relative to the slot current at the start */
  int32_t target;     /* message set, copy set, sweep, ring, or reduction counted from the stage's first, by kind; -1:
                         none, or of HS_OP_REDUCED the last reduction of an earlier stage */
  int32_t first_after, after_count; /* in hs_program_data.after */
} hs_op;

/* One of a stage's sweeps on `region`, of which `valid` holds right values afterwards. */
typedef struct hs_sweep {
  hs_box region, valid;
  int32_t into;   /* slot written */
  int32_t step;   /* time step read, 0-based */
  int32_t levels; /* time steps fused */
  int32_t part;   /* HS_PART_... */
  hs_box twin;    /* more cells written by the same launch of a device: the opposite face; empty: none */
  hs_box whole;   /* of the whole sweep, of which `region` may be a part; empty: region and twin */
  int32_t faces;  /* 1: halos are read where messages have arrived; what the next exchange sends is written there too */
  int32_t number; /* of the stage's sweep */
  int32_t in_place; /* 1: line by line, new values used at once */
  int32_t reserved;
} hs_sweep;

/* A program as plain arrays. Set i holds set_messages[set_starts[i]] up to set_starts[i + 1]; copy sets and rings
 * likewise. A ring is cells that the host has and the device's block needs, or the other way round. */
typedef struct hs_program_data {
  int32_t steps, slots, final_slot, comm_thread, sharing;
  int32_t device; /* 1: some operations run on a device; all their streams meet at the program's end */
  int32_t wraps;  /* 1: sweeps reach own-neighbour cells by wrapping around, not through halos */
  int32_t op_count, after_count, sweep_count, set_count, copy_set_count;
  const hs_op* ops;
  const int32_t* after;
  const hs_sweep* sweeps;
  const int32_t* set_starts;      /* set_count + 1 */
  const int32_t* set_messages;    /* numbers of the plan's messages */
  const int32_t* copy_set_starts; /* copy_set_count + 1 */
  const hs_copy* set_copies;
  hs_box block; /* cells that are a device's where the rest is the host's; empty: all on one side */
  int32_t ring_count;
  int32_t signals; /* 1: one kernel packs a round's messages, waits for those of its peers and unpacks them */
  const int32_t* ring_to_device; /* ring_count; 0: from the device to the host */
  const int32_t* ring_starts;    /* ring_count + 1 */
  const hs_box* ring_boxes;
} hs_program_data;

/* What a schedule may know. */
typedef struct hs_schedule_options {
  uint64_t struct_size;
  int32_t depth;             /* time steps per exchange; default 1 */
  int32_t steps;             /* of this program, 1..depth; default 1 */
  int32_t substeps;          /* HS_SUBSTEPS_...: what the steps between exchanges sweep; default full */
  int32_t tiles;             /* interior tiles of "split"; default 8 */
  int32_t sharing;           /* HS_SHARING_...: how comm-thread hands out interior cells; default guided */
  int32_t barrier;           /* 1: barrier before each exchange; default 0 */
  int32_t collective_rounds; /* 1: every rank takes part in every round, as fences need it; default 0 */
  int32_t series;            /* "pipeline" only: HS_SERIES_..., which of its programs; default whole */
  int32_t device;            /* 1: fields live on a device, which sweeps, copies and packs (no "box"); default 0 */
  int32_t staged;            /* 1: ... and messages go through host memory; default 0 */
  int32_t pack_first;        /* "streams": interior sweeps start after the first round is packed; default 1 */
  int32_t walls;             /* "box", "box-overlap": layers of the host around the device's block; default 1 */
  int32_t last;              /* 1: it ends a run, with the reductions of a last step too; default 0 */
  int32_t slots;             /* of the step: 2 where a quantity is double-buffered; default 2 */
  int32_t flips;             /* 1: the stage writes double-buffered quantities; default 1 */
  int32_t signals;           /* 1: on a device, one kernel a round moves all its messages; default 0 */
} hs_schedule_options;

void hs_schedule_options_init(hs_schedule_options* options);
/* The schedule options of a choice for one stage; steps = depth. */
hs_status hs_schedule_options_of(const hs_choice* choice, int32_t stage, hs_schedule_options* options);

/* The program that a schedule makes for one stage of a step, from its plan. Fails with HS_USAGE for an unknown schedule
 * or stage and for impossible options. */
hs_status hs_program_create(const char* schedule, const hs_step* step, int32_t stage, const hs_plan* plan,
                            const hs_schedule_options* options, hs_program** program);
/* Only the exchange, no sweep. barrier: 1 puts a barrier first. */
hs_status hs_program_create_exchange(const hs_plan* plan, int32_t barrier, hs_program** program);
/* A program from plain arrays, which are copied. Fails with HS_USAGE for a number out of range, and for NULL where a
 * count is above 0. The caller answers for the lengths: each array has as many entries as its count says, and
 * set_messages, set_copies and ring_boxes as many as the last of their starts, which nothing here can check. */
hs_status hs_program_create_from(const hs_program_data* data, hs_program** program);
hs_status hs_program_free(hs_program* program);
hs_status hs_program_get(const hs_program* program, hs_program_data* data);

/* The traffic of one of the program's copy sets, which fill halos from cells of the rank's own.
 * plan  the one that the program was made from. Fails with HS_USAGE for a copy set that the program does not have. */
hs_status hs_program_traffic(const hs_program* program, const hs_plan* plan, int32_t copy_set, hs_traffic* traffic);

/* Proves that the programs of all ranks never read what is not yet there, and end at the right time step.
 * stages    of the step; plans, programs: stages x ranks, by stage, then in rank order. A plan's quantities are those
 *           of the step with the same names
 * finding   out: "" or what is wrong. Small grids only: cost O(ranks x (operations^2 + points x steps)). */
hs_status hs_check(const hs_layout* layout, const hs_step* step, int32_t stages, const hs_plan* const* plans,
                   const hs_program* const* programs, const char** finding);

/* ---- the model: what a choice costs on a machine ----------------------------------------------------------------- */

/* A machine profile. */
typedef struct hs_profile hs_profile;

/* A profile from its JSON, of the format data/profile.schema.json. Fails with HS_USAGE for one that is not valid,
 * naming what and where. Cost: milliseconds. */
hs_status hs_profile_create(const char* json, hs_profile** profile);

/* The profile of the same machine at another pace: every cost in proportion to the kernel of the pace that is like it,
 * but those of devices, which no kernel is like.
 * pace    a JSON object as the `pace` of a record: ranks, and times by name
 * scaled  out: to be freed by hs_profile_free
 * Fails with HS_UNAVAILABLE when the profile has no pace with as many ranks, HS_USAGE for what is no pace. Cost: that
 * of a copy. */
hs_status hs_profile_at_pace(const hs_profile* profile, const char* pace, hs_profile** scaled);
hs_status hs_profile_free(hs_profile* profile);

/* What a choice leaves open about how it is run. */
typedef struct hs_setting {
  uint64_t struct_size;
  const char* placement; /* of ranks on the profile's nodes: "fill" (default), "balanced", "by-socket", "round-robin",
                             "custom" */
  const int32_t* places; /* "custom": node, and socket of that node, of each rank; default NULL */
  int32_t place_count;   /* ranks that it has places for; default 0 */
  int32_t active;        /* most cores in use per socket, >= 1; -1 (default): all */
  int32_t reductions;    /* all-reduces per time step beside those of the app; default 0 */
  int32_t repeats;       /* executions of a loop of stages per time step; default 1 */
} hs_setting;

void hs_setting_init(hs_setting* setting);

/* The predicted time of a step, in step with all other ranks, long after the start, as a JSON object in seconds per
 * time step: profile, pace (that it is for, over that of the calibration, by kind), time_s, interval and
 * exchange_interval (90 %, null where the profile has none), interval_from (the regime of the held-out measurements
 * that they are from, or "all"; "": from the profile's parameters), regime and exchange_regime (what bounds the step,
 * and the exchange), terms (by name, along the critical path of the slowest rank; they add up to time_s), busy (the
 * same terms, hidden or not), worst_rank, worst_node, worst_node_bytes (that it sends to other nodes), nodes, classes
 * (of ranks), messages, bytes and message_bytes (that the worst rank sends in all exchanges of a step, and the least
 * and largest), bound (whether their mean is "latency-bound" or "bandwidth-bound"), reason (what bounds the exchange,
 * in one clause), outside (costs beyond the calibrated range), notes.
 * samples  draws of the profile's parameters for the interval, 0: none
 * singly   1: price every rank instead of one per class; slow, for checks
 * Fails with HS_USAGE when the choice cannot run, HS_UNAVAILABLE when the profile lacks a cost that it needs.
 * Cost: about a millisecond, a second for 10^5 ranks. */
hs_status hs_predict(const hs_choice* choice, const hs_profile* profile, const hs_setting* setting, int32_t samples,
                     int32_t singly, const char** json);

/* Candidates for a choice: every strategy, schedule and depth, legal or not; deep ones with every kind of substeps. As
 * a JSON array of objects: the fields that differ from the choice's.
 * depths  depth_count time steps per exchange to try; NULL: 1, 2, 4, 8, 16 */
hs_status hs_candidates(const hs_choice* choice, const int32_t* depths, int32_t depth_count, const char** json);

typedef struct hs_advice hs_advice;

/* Candidates ranked by their predictions.
 * among    those to look at, as hs_candidates has them; NULL: all with these depths
 * samples  draws of the profile's parameters, under which candidates are compared
 * Fails with HS_USAGE when none is legal, HS_UNAVAILABLE when the profile lacks what all need. Cost: a prediction
 * each. */
hs_status hs_advice_create(const hs_choice* choice, const hs_profile* profile, const hs_setting* setting,
                           const int32_t* depths, int32_t depth_count, const char* among, int32_t samples,
                           hs_advice** advice);
/* The ranking, as a JSON object: time_s of the candidates, fastest first; group of each (from 0: of those that cannot
 * be told from its fastest member); simplest, of each group the place among the candidates of its simplest member
 * within 5 % of its fastest; first_of_depth, pairs of a depth and the place of its fastest candidate; changes,
 * sentences on what would change the answer; refused, pairs of a reason why candidates are missing and how many. */
hs_status hs_advice_json(const hs_advice* advice, const char** json);
/* A candidate, as a JSON object: the fields of hs_predict, and changes, as hs_candidates has them.
 * place  0: the fastest */
hs_status hs_advice_candidate(const hs_advice* advice, int32_t place, const char** json);
hs_status hs_advice_free(hs_advice* advice);

/* The candidate that is predicted fastest, as a JSON object: the fields of hs_predict, changes, equals (changes
 * of those that the profile cannot tell from it, fastest first); notes also holds what was assumed.
 * question  a JSON object with choice, whose strategy, schedule, depth and substeps are to be found. Besides, each with
 *           a default: assumed_app (true: the app only stands for a program that has named none), depths,
 *           seconds_per_cell (of the program's own sweep), fused (true: it can apply all sub-steps of a deep halo tile
 *           by tile in the cache), halo (ghost layers that there is room for), shared_memory (false: fields lie in a
 *           rank's own memory), samples, cpu and mpi_library (of the program that asks), among (as of hs_advice_create)
 * Fails as hs_advice_create does, and for a question that cannot be right. Cost: a fraction of a second; seconds for
 * thousands of ranks. */
hs_status hs_best(const char* question, const hs_profile* profile, const char** json);

/* Where the ranks of a choice run on the profile's machine: node, and socket numbered over all nodes.
 * node, socket  out: as many numbers as there are ranks. Fails with HS_USAGE for a setting that cannot be. */
hs_status hs_choice_places(const hs_choice* choice, const hs_profile* profile, const hs_setting* setting, int32_t* node,
                           int32_t* socket);
/* The same for any machine, by a rule or custom places.
 * setting  its placement, places and active count; sockets_per_node, cores_per_socket >= 1 */
hs_status hs_place_ranks(int32_t ranks, int32_t sockets_per_node, int32_t cores_per_socket, const hs_setting* setting,
                         int32_t* node, int32_t* socket);

/* The names in profiles of a choice's sweeps, as a JSON array of arrays: by stage, then by sweep.
 * Fails with HS_USAGE for what its app does not know. */
hs_status hs_sweep_names(const hs_choice* choice, const char** json);

/* ---- simulation: programs of all ranks, message by message ------------------------------------------------------- */

/* How to run. */
typedef struct hs_simulation_options {
  uint64_t struct_size;
  int32_t rounds;       /* >= 1; default 10 */
  int32_t counted_from; /* first round in hs_simulation_result.seconds; default 0 */
  double noise_s;       /* mean delay of an operation that takes time, exponentially distributed; default 0 */
  double noise_share;   /* ... plus this part of the operation's seconds; default 0 */
  uint64_t seed;        /* the same seed gives the same run; default 0 */
  double efficiency;    /* speed of messages while their receiver computes, above 0 to 1 (default) */
  int32_t by_itself;    /* 1: rendezvous messages need to be posted but no call; default 0 */
  int32_t reserved;
} hs_simulation_options;

void hs_simulation_options_init(hs_simulation_options* options);

typedef struct hs_simulation_result {
  double seconds[17]; /* by HS_OP_...: sum over ranks and counted rounds, waiting included */
  int64_t messages, bytes, operations, events;
} hs_simulation_result;

typedef struct hs_simulation hs_simulation;

/* All ranks of a choice with the programs and prices of a prediction.
 * overhead_s  seconds that sender and receiver each are busy with a message, taken out of its latency
 * gap_s       least seconds between two sends of a rank
 * Fails as hs_predict does, and with HS_USAGE for overheads beyond the latency. Cost: seconds for 10^6 ranks. */
hs_status hs_simulation_create(const hs_choice* choice, const hs_profile* profile, const hs_setting* setting,
                               double overhead_s, double gap_s, hs_simulation** simulation);
/* What it consists of, as a JSON object: ranks, steps (time steps of a round), efficiency (speed of messages while
 * their receiver computes), classes (of ranks with equal plans and prices), comm_thread, outside (costs beyond the
 * calibrated range), notes. */
hs_status hs_simulation_json(const hs_simulation* simulation, const char** json);
/* The class of each rank, 0..classes-1. class_of  out: as many numbers as there are ranks */
hs_status hs_simulation_classes(const hs_simulation* simulation, int32_t* class_of);
/* A class, as a JSON object: rank (one of it), opening (programs that are run once, before those of a round), stages
 * (of each program), seconds (of each operation of all programs). */
hs_status hs_simulation_class(const hs_simulation* simulation, int32_t number, const char** json);
/* A copy of one of its programs. */
hs_status hs_simulation_program(const hs_simulation* simulation, int32_t number, int32_t program, hs_program** result);
hs_status hs_simulation_free(hs_simulation* simulation);
/* Carries out all rounds; may be called again, by one thread at a time.
 * ends  out: rounds x ranks, when each rank ended each round, seconds from the start
 * Fails with HS_USAGE for options out of range, HS_FAILED when ranks deadlock.
 * Cost O(events x log(ranks)): about a second per million events. */
hs_status hs_simulation_run(hs_simulation* simulation, const hs_simulation_options* options, double* ends,
                            hs_simulation_result* result);

#ifdef __cplusplus
}
#endif

#endif
