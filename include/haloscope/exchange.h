/* Haloscope's C interface to exchanges: grids of the ranks of a communicator, and halo exchanges of your own arrays.
 *
 * Rules that hold for every call, besides those of status.h:
 *  - `..._create` and `..._free` are collective over the communicator; every rank passes the same options and, of its
 *    arrays, the same types, widths and number in the same order. A request that is wrong on one rank fails on all of
 *    them, so that nobody waits. Other calls on an exchange are made by all ranks in the same order too; those on a
 *    grid are local.
 *  - Local cell (0, 0, 0) is the rank's first owned one. Dimension 0 is x: exchanges are fastest where it is the axis
 *    whose points follow each other in memory, the last one of arrays in C, the first one of arrays in Fortran.
 *  - The library is bound to the MPI that it was built for; haloscope_exchange_abi is for all with the standard ABI.
 *    Calls that take a communicator have a name of their own for each MPI, and fail with HS_USAGE where it is not the
 *    library's: no handle of another MPI is read. MPI must have been initialised before, and not yet have been
 *    finalised; an exchange that is freed after that is left as it is. One thread at a time uses an exchange, and only
 *    threads that MPI's level of thread support lets call it. Other calls fail with HS_USAGE.
 */
#ifndef HALOSCOPE_EXCHANGE_H
#define HALOSCOPE_EXCHANGE_H

#include <haloscope/status.h>
#include <haloscope/which_mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define hs_grid_create HS_OF_THIS_MPI(hs_grid_create)
#define hs_doctor HS_OF_THIS_MPI(hs_doctor)

typedef struct hs_box {
  int64_t lo[3], hi[3]; /* cells, half-open */
} hs_box;

/* ---- grids ------------------------------------------------------------------------------------------------------- */

enum {
  HS_SPLIT_EVEN,      /* blocks as even as can be, by `process_grid` and `rank_order` */
  HS_SPLIT_CARTESIAN, /* even blocks; places, periods, order of ranks of a communicator of MPI_Cart_create, by `axes` */
  HS_SPLIT_BOXES      /* each rank says what it owns: `owned`; no topology is looked at */
};
enum { HS_NOT_SPLIT = -1 }; /* in `axes`: no dimension of the communicator */

typedef struct hs_grid_options {
  uint64_t struct_size;
  int64_t cells[3];      /* global, each >= 1; default 1 */
  int32_t dims;          /* 1 to 3; default 3 */
  int32_t split;         /* HS_SPLIT_...; default EVEN */
  int32_t periodic[3];   /* 1: the dimension wraps around; default 0. CARTESIAN: of dimensions that are not split */
  int32_t rank_order[3]; /* EVEN: the dimensions, the one along which rank numbers run fastest first; default 0, 1, 2 */
  /* CARTESIAN: the communicator's dimension that is x, y, z, or HS_NOT_SPLIT, as for the columns of a 3D grid on a 2D
   * communicator; default 0, 1, 2. EVEN: in which order a Cartesian communicator's dimensions are compared with the
   * grid's */
  int32_t axes[3];
  int32_t holes; /* BOXES: 1: cells may belong to no rank; default 0 */
  hs_box owned;  /* BOXES: this rank's cells, global */
  /* EVEN: ranks per dimension, "2x3x1", or a rule: "cubic", "square", "prime-factors", "slabs"; NULL (default):
   * "square" in 2D, else "cubic" */
  const char* process_grid;
  /* node of each rank, on all ranks alike, to emulate nodes on one machine; NULL (default): machines are nodes */
  const int32_t* nodes;
  /* EVEN: 1: ranks take places so that neighbours share nodes and sockets; `rank_order` stands where that gains
   * nothing; default 0 */
  int32_t reorder;
  int32_t node_count; /* numbers in `nodes`; 0 (default): one for each rank, unchecked */
  /* what a binding has found wrong on this rank: the grid is refused with it on all of them; NULL (default): nothing */
  const char* problem;
  int32_t problem_status; /* that it fails with; default HS_USAGE */
  int32_t reserved;
} hs_grid_options;

typedef struct hs_grid hs_grid;

void hs_grid_init(hs_grid_options* options);
/* A grid split over the ranks of `comm`, which must live as long as exchanges are created on it.
 * Fails with HS_USAGE for cells or ranks that do not fit each other, boxes that overlap, leave a gap or do not line up
 * (naming the cell), a communicator whose topology is another one or a graph, an inter-communicator; for MPI_COMM_NULL
 * on the ranks that pass it. Cost: a reduction; BOXES: 48 bytes from each to all; `reorder`: 8. */
hs_status hs_grid_create(MPI_Comm comm, const hs_grid_options* options, hs_grid** grid);
/* The same for a communicator of Fortran: comm%MPI_VAL of mpi_f08, an integer of mpi; comm.py2f() of mpi4py. */
hs_status hs_grid_create_f(int comm, const hs_grid_options* options, hs_grid** grid);
/* Local. */
hs_status hs_grid_free(hs_grid* grid);
/* What this rank owns, in global coordinates. */
hs_status hs_grid_owned(const hs_grid* grid, hs_box* owned);
/* How a grid is split. Dimensions that it lacks hold 1 cell and 1 rank. */
typedef struct hs_grid_data {
  int64_t cells[3]; /* global */
  int32_t periodic[3];
  int32_t ranks[3];   /* the process grid */
  int32_t dims, size; /* size: ranks in all */
} hs_grid_data;

hs_status hs_grid_get(const hs_grid* grid, hs_grid_data* data);
/* A rank's place in the process grid. These calls fail with HS_USAGE for a rank that the grid does not have. */
hs_status hs_grid_coords(const hs_grid* grid, int32_t rank, int32_t coords[3]);
/* The rank at `offset` (each -1, 0, 1) from `rank`; -1 beyond an edge that is not periodic and in a hole; may be `rank`
 * itself. */
hs_status hs_grid_neighbour(const hs_grid* grid, int32_t rank, const int32_t offset[3], int32_t* neighbour);
/* For a binding's own checks before it opens an exchange: hs_agree_f() over the grid's communicator, without an
 * order. */
hs_status hs_grid_agree(const hs_grid* grid, hs_status status, const char* text);

/* ---- bindings ---------------------------------------------------------------------------------------------------- */

/* Collective work of bindings on a communicator, which is given as for hs_grid_create_f(). Where MPI refuses a call on
 * all ranks, these fail on all of them; where on some, the job ends, since the others wait.
 * what  the ranks make: "a grid", "an exchange"; for reports of long waits. */

/* Fails with HS_USAGE after MPI's end, where the library was used before. For bindings, before they convert a
 * communicator: Open MPI ends the job where that comes after its end. Makes no call of MPI while it runs. Local. */
hs_status hs_require_mpi(void);
/* The calling rank, of a communicator that a grid can be split over. Fails with HS_USAGE as hs_grid_create() does for
 * others. Local. */
hs_status hs_member_f(int comm, int32_t* rank, int32_t* size);
/* HS_OK where every rank passes HS_OK, else on each rank its own failure or, with its number, that of the first rank
 * that has one. Collective; cost: a reduction, with an order two.
 * text   the error of this rank; NULL with HS_OK.
 * order  of the axes of what the ranks make, as "C"; NULL, on all ranks: none. Fails with HS_USAGE where ranks differ
 *        in it. */
hs_status hs_agree_f(int comm, const char* what, hs_status status, const char* text, const char* order);
/* As many numbers of each rank, on all of them by rank. Collective.
 * all  out: `count` numbers for each rank. */
hs_status hs_gather_f(int comm, const char* what, const int64_t* mine, int32_t count, int64_t* all);
/* Prints the calling rank and a text on standard error and ends all ranks. Fails with HS_USAGE where MPI is not
 * running. */
hs_status hs_end_job(const char* text);

/* ---- exchanges --------------------------------------------------------------------------------------------------- */

enum { HS_TYPE_REAL, HS_TYPE_INTEGER };
enum { HS_CENTRING_CELL, HS_CENTRING_NODE, HS_CENTRING_FACE_X, HS_CENTRING_FACE_Y, HS_CENTRING_FACE_Z };

/* One array of one rank, with its halo. */
typedef struct hs_field {
  void* const* first;    /* address of the first owned point (not of the halo), for each slot */
  int64_t stride[3];     /* bytes between points that are neighbours in x, y, z; of any sign and order */
  int32_t element_bytes; /* of a point, >= 1: 16 for a double complex, 24 for a struct of three doubles */
  int32_t type;          /* HS_TYPE_...; matters to strategies with fields=type, and to accumulating */
  int32_t centring;      /* HS_CENTRING_...; planes that both ranks hold are never sent */
  int32_t low[3];        /* ghost layers that are filled on the low side, >= 0 */
  int32_t high[3];       /* ... and on the high side */
  /* of each number of a point, for hs_exchange_accumulate(): 4 for a float complex, 8 for three doubles; 0: a point is
   * one number of its type; -1: it is not made of numbers */
  int32_t number_bytes;
  const char* name; /* for messages; NULL: "field 1", ... */
} hs_field;

typedef struct hs_exchange_options {
  uint64_t struct_size;
  const char* strategy; /* as "ordered/p2p", see strategy.hpp; NULL (default): "auto", which tries them */
  int32_t corners;      /* 1 (default): fill edges and corners too; 0: only what a star needs */
  int32_t slots;        /* addresses of each array, >= 1: buffers that take turns; default 1 */
  int32_t guard;        /* 1: poison stale halos, see hs_exchange_changed(); default 0; HALOSCOPE_GUARD overrides */
  int32_t reserved;
} hs_exchange_options;

typedef struct hs_exchange hs_exchange;

void hs_exchange_init(hs_exchange_options* options);
/* Open an exchange of `count` >= 1 arrays, of any mixture of types. Their memory must stay where it is.
 * options  NULL: the defaults. HALOSCOPE_STRATEGY in the environment of rank 0 overrides the strategy; rank 0 says so.
 * Fails with HS_USAGE for a halo wider than the blocks it is filled from, an unknown strategy, arrays whose points
 * share memory, within one or between two (naming both; in another slot the same array may come again), ranks that ask
 * for different things; HS_UNAVAILABLE for a strategy that this MPI cannot serve.
 * Cost: some reductions and what the transport opens; plans are made once, here. Large arrays are moved to huge pages
 * where the system has them for programs that ask and points lie on half of the pages or more; addresses and contents
 * stay. */
hs_status hs_exchange_create(const hs_grid* grid, const hs_field* fields, int32_t count,
                             const hs_exchange_options* options, hs_exchange** exchange);
/* Send what can be sent. Boundary points of the slot must not change before hs_exchange_finish().
 * Fails with HS_USAGE before the slot under way has been finished, and for a slot that there is not. */
hs_status hs_exchange_start(hs_exchange* exchange, int32_t slot);
/* Let messages move on. done  out, may be NULL: 1 when everything has arrived. Does not wait; but with reference,
 * neighbor:blocking, rma-fence, rma-pscw:get and shared:fence, which complete only in a call of MPI that waits, the
 * 1000th call of an exchange makes that call, so that a loop ends. */
hs_status hs_exchange_progress(hs_exchange* exchange, int32_t* done);
/* Wait until the halos of the started slot are filled and sent points may change. */
hs_status hs_exchange_finish(hs_exchange* exchange);
/* hs_exchange_start() and hs_exchange_finish(). */
hs_status hs_exchange_run(hs_exchange* exchange, int32_t slot);
/* Arrays in the memory of a device, which is recognised by their addresses: the same three with a stream of the
 * caller's, a cudaStream_t or hipStream_t; NULL: the default stream. Packing comes after what it has been given, and
 * what it is given after hs_exchange_finish_on() finds the halos filled: the host waits for messages, not for the
 * device. Without a stream, hs_exchange_start() counts as on the default stream, and hs_exchange_finish() waits for the
 * device too.
 * Fail with HS_USAGE for arrays in host memory. */
hs_status hs_exchange_start_on(hs_exchange* exchange, int32_t slot, void* stream);
hs_status hs_exchange_finish_on(hs_exchange* exchange, void* stream);
hs_status hs_exchange_run_on(hs_exchange* exchange, int32_t slot, void* stream);
/* The transpose of hs_exchange_start(): what lies in the halos of a slot is added to the points that own it, and the
 * halos are cleared, as after a deposition of particles, the assembly of elements, or in an adjoint code.
 * hs_exchange_progress() and hs_exchange_finish() carry it on; the boundary and the halos of the slot must not be
 * touched before. The same bits by every strategy. Nodes and faces that several ranks hold then get the sum of all
 * holders.
 * Fails with HS_USAGE as hs_exchange_start() does, and for arrays whose points are not made of integers of 1, 2, 4 or 8
 * bytes or reals of 4 or 8: see number_bytes of hs_field.
 * Cost: the messages and bytes of an exchange, and one pass over what arrives. The first call is collective and opens
 * another link; later ones allocate nothing. */
hs_status hs_exchange_start_accumulate(hs_exchange* exchange, int32_t slot);
/* hs_exchange_start_accumulate() and hs_exchange_finish(). */
hs_status hs_exchange_accumulate(hs_exchange* exchange, int32_t slot);
/* The same for arrays in the memory of a device, ordered by a stream as hs_exchange_run_on() is;
 * hs_exchange_finish_on() ends what the first has begun. Fail with HS_USAGE for arrays in host memory, too. */
hs_status hs_exchange_start_accumulate_on(hs_exchange* exchange, int32_t slot, void* stream);
hs_status hs_exchange_accumulate_on(hs_exchange* exchange, int32_t slot, void* stream);
/* The guard: which halos are stale. Without option `guard` these three do nothing but look whether there is one.
 * The own points of a slot have changed, as after a sweep: its halos are stale and poisoned, but for the first `fresh`
 * layers, which the sweep has computed too. Reals of 4 and 8 bytes become signalling NaNs that carry their side on,
 * anything else bytes DB.
 * Fails with HS_USAGE for a slot that there is not, a negative number, and while anything is under way. Local; cost:
 * one store for each number in the halos. */
hs_status hs_exchange_changed(hs_exchange* exchange, int32_t slot, int32_t fresh);
/* Halos are read `depth` layers deep from here on. Fails with HS_USAGE, on all ranks alike, where fewer are fresh on a
 * side that the exchange fills: it names the field, the side, the layers and the number of the last exchange. Local. */
hs_status hs_exchange_require_fresh(hs_exchange* exchange, int32_t depth, int32_t slot);
/* Look for poison in the own points of a slot. Fails with HS_USAGE, on all ranks alike, where a stale halo was read: it
 * names the first such point and the side that the poison came from. Collective: a reduction, and one load for each
 * number. */
hs_status hs_exchange_check_clean(hs_exchange* exchange, int32_t slot);
/* The same two for arrays in the memory of a device: after what a stream has been given, and the poison before what it
 * is given next.
 * Without a stream they come after what the default stream has been given, and the host waits for the poison. Fail with
 * HS_USAGE for arrays in host memory, too. */
hs_status hs_exchange_changed_on(hs_exchange* exchange, int32_t slot, int32_t fresh, void* stream);
hs_status hs_exchange_check_clean_on(hs_exchange* exchange, int32_t slot, void* stream);
/* The arrays of a slot lie elsewhere from now on, with the strides that they had: for codes that swap pointers.
 * first  address of the first owned point of each field, in their order.
 * Local, and plans stay; strategies whose neighbours know the addresses (shared but for shared:packed, one-sided ones,
 * neighbor, partitioned) are opened again, which is collective. Fails with HS_USAGE while an exchange is under way.
 * Arrays that share memory then are refused by the next start, so that two of them may swap places in two calls. */
hs_status hs_exchange_rebind(hs_exchange* exchange, int32_t slot, void* const* first);
/* Where the arrays of a slot lie, for callers that move one of several: the address of the first owned point of each
 * field, in their order, as the exchange was created or last rebound with; also where hs_exchange_rebind() has failed
 * with them. Local. Fails with HS_USAGE for a slot that there is not.
 * first  out: as many addresses as there are fields. */
hs_status hs_exchange_first(const hs_exchange* exchange, int32_t slot, void** first);
/* Which strategy moves the halos, what this rank sends, what `auto` has chosen: one line. It lives until the next
 * call. */
hs_status hs_exchange_report(hs_exchange* exchange, const char** text);
/* Finishes what is under way. Collective: all ranks free their exchanges in the same order, and may wait for each
 * other. After MPI_Finalize it leaves what MPI holds as it is. */
hs_status hs_exchange_free(hs_exchange* exchange);

/* Calls on an exchange that may be collective beside their messages. */
enum { HS_CALL_ACCUMULATE, HS_CALL_CHECK_CLEAN, HS_CALL_REBIND };
/* For a binding that checks arguments itself, in place of a call that this rank cannot make: fails with `status` and
 * `text`.
 * Where that call of the other ranks is collective, as rebinding by some strategies or the first accumulation is, it
 * fails on them with the text and this rank's number: no rank waits. */
hs_status hs_exchange_refuse(hs_exchange* exchange, int32_t call, hs_status status, const char* text);
/* For a binding whose own memory is exhausted: the library's text for that, with the bytes needed and available. Needs
 * no memory, and goes with HS_FAILED.
 * purpose  of the memory, as "the list of arrays"
 * text     out, of `size` characters */
void hs_exhausted_memory(const char* purpose, int64_t bytes, char* text, int32_t size);

/* ---- imitated devices -------------------------------------------------------------------------------------------- */

/* Devices that the CPU imitates, to try programs where there is no card: what of a driver a caller of exchanges needs.
 * Their memory is recognised as that of cards is. HALOSCOPE_HOST_DEVICE says how many there are; 1 if it does not.
 * device  number, from 0. Fail with HS_USAGE for a device that does not exist. */

/* Zeroed memory of a device, as by cudaMalloc. */
hs_status hs_imitated_allocate(uint64_t bytes, int32_t device, void** memory);
/* Fails with HS_USAGE for anything but what hs_imitated_allocate() has given. */
hs_status hs_imitated_release(void* memory);
/* As cudaMemcpy: on the default stream of device 0, in any direction; waits until it is done. */
hs_status hs_imitated_copy(void* to, const void* from, uint64_t bytes);
/* A thread that does its work in order, as by cudaStreamCreate. */
hs_status hs_imitated_make_stream(int32_t device, void** stream);
/* Finishes its work. */
hs_status hs_imitated_free_stream(void* stream);
/* Have kernel(context) called by a stream, or the default stream of device 0 (NULL); returns at once. */
hs_status hs_imitated_launch(void* stream, void (*kernel)(void* context), void* context);
/* Wait until a stream's work is done. */
hs_status hs_imitated_finish(void* stream);

/* ---- the machine ------------------------------------------------------------------------------------------------- */

/* Told of one check, on every rank alike: verdict is "ok", "warning", "broken" or "not here", remedy "" where there is
 * nothing to do. Texts live until it returns. */
typedef void (*hs_tell_check)(void* context, const char* name, const char* verdict, const char* found,
                              const char* remedy);
/* Examine the ranks of `comm` from inside the running program: pinning, /dev/shm, huge pages, values of exchanged
 * halos. What may crash or hang an MPI is left to the command `haloscope doctor`. Collective. What it finds is no
 * failure.
 * Fails with HS_USAGE for no function, and where MPI is not running. Cost: some collective calls, two exchanges, 64 MiB
 * touched and given back on each rank. */
hs_status hs_doctor(MPI_Comm comm, hs_tell_check tell, void* context);

#ifdef __cplusplus
}
#endif

#endif
