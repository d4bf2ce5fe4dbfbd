/* The C interface to exchanges: grids of the ranks of a communicator, and halo exchanges of a caller's arrays.
 *
 * Rules that hold for every call, in addition to the rules of status.h:
 *  - `..._create` and `..._free` are collective over the communicator; every rank passes the same options, and equally
 *    many arrays of the same types and widths in the same order. A request that is wrong on one rank fails on all
 *    ranks, so that no rank waits. All ranks make other calls on an exchange in the same order too; calls on a grid
 *    are local.
 *  - Local cell (0, 0, 0) is the rank's first owned one. Dimension 0 is x: exchanges are fastest where it is the axis
 *    that is contiguous in memory, the last one of arrays in C, the first one of arrays in Fortran.
 *  - The library is bound to the MPI that it was built for; haloscope_exchange_abi is for all MPIs with the standard
 *    ABI. Calls that take a communicator have a different name for each MPI, and fail with HS_USAGE where it is not the
 *    library's MPI: no handle of another MPI is read. Calls are made between MPI_Init and MPI_Finalize; an exchange
 *    that is freed later is left as it is. One thread at a time uses an exchange, and only threads that MPI's level of
 *    thread support allows to call it. Other calls fail with HS_USAGE.
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
  HS_SPLIT_EVEN,      /* blocks as even as possible, by `process_grid` and `rank_order` */
  HS_SPLIT_CARTESIAN, /* even blocks; positions, periods, rank order of a communicator of MPI_Cart_create, by `axes` */
  HS_SPLIT_BOXES      /* each rank specifies its cells: `owned` or `blocks`; topologies are ignored */
};
enum { HS_NOT_SPLIT = -1 }; /* in `axes`: the communicator does not split this dimension */

/* A grid turns about the nodes of cells on its high edge of y, or about the centres of its last row of cells. */
enum { HS_FOLD_NONE, HS_FOLD_NODE, HS_FOLD_CELL };

/* Two edges of panels that meet, with as many cells each: the first one and the second one. */
typedef struct hs_seam {
  int32_t panel[2];
  int32_t dimension[2]; /* 0: the edge is the low or high side of x; 1: of y */
  int32_t side[2];      /* 0: low; 1: high */
  int32_t reversed;     /* 1: the first cell along one edge is the last one along the other */
  int32_t reserved;
} hs_seam;

typedef struct hs_grid_options {
  uint64_t struct_size;
  int64_t cells[3];      /* global, each >= 1; default 1 */
  int32_t dims;          /* 1 to 3; default 3 */
  int32_t split;         /* HS_SPLIT_...; default EVEN */
  int32_t periodic[3];   /* 1: the dimension wraps around; default 0. CARTESIAN: for dimensions that are not split */
  int32_t rank_order[3]; /* EVEN: the dimensions, the one along which rank numbers run fastest first; default 0, 1, 2 */
  /* CARTESIAN: the communicator's dimension that is x, y, z, or HS_NOT_SPLIT, as for the columns of a 3D grid on a 2D
   * communicator; default 0, 1, 2. EVEN: the order in which a Cartesian communicator's dimensions are compared with
   * the grid's */
  int32_t axes[3];
  int32_t holes; /* BOXES: 1: cells may belong to no rank; default 0 */
  hs_box owned;  /* BOXES: this rank's cells, global; an empty box: none */
  /* EVEN: ranks per dimension, "2x3x1", or a rule: "cubic", "square", "prime-factors", "slabs"; NULL (default):
   * "square" in 2D, else "cubic" */
  const char* process_grid;
  /* node of each rank, equal on all ranks, to emulate nodes on one machine; NULL (default): machines are nodes */
  const int32_t* nodes;
  /* EVEN: 1: reorder ranks so that neighbours share nodes and sockets, unless this gains nothing over `rank_order`;
   * default 0 */
  int32_t reorder;
  int32_t node_count; /* numbers in `nodes`; 0 (default): one for each rank, unchecked */
  /* an error that a binding has found on this rank: the grid is refused with it on all ranks; NULL (default): none */
  const char* problem;
  int32_t problem_status; /* status of `problem`; default HS_USAGE */
  /* EVEN: ranks that own cells, the first ones, for coarse grids and gathered fields; 0 (default): all; where no
   * process grid of all ranks fits the cells, the largest number that fits */
  int32_t active_ranks;
  /* BOXES: this rank's blocks, global, in place of `owned`, where ranks have several each: tiles, blocks that a
   * balancer has dealt out. An exchange then takes the fields of a rank's first block, then the same ones of the next.
   * Arrays of devices need one block a rank */
  int32_t block_count; /* -1 (default): `owned` is the only one */
  const hs_box* blocks;
  /* HS_FOLD_...: exchanges fill the rows beyond the high edge of y from inner rows in reverse, and make points on the
   * fold equal, as at the north of tripolar ocean grids; default NONE. The grid is periodic in x and not in y. A field
   * whose edge there is ODD changes its sign. Accumulations, shares and arrays of devices need a grid without a fold */
  int32_t fold;
  /* The panels of a grid, blocks of cells that meet only at seams, turned against each other or not: the faces of a
   * cubed sphere. Exchanges fill the points beyond an edge from the panel that it meets, and points beyond a corner
   * where the ways around both of its edges lead to one place. Each block lies in one panel, and panels reach from end
   * to end of z. The grid is not periodic in x and y. Accumulations, shares and arrays of devices need a grid without
   * seams; see hs_cubed_sphere() */
  int32_t panel_count;  /* default 0: the grid is one panel, without seams */
  const hs_box* panels; /* global cells of each, equal on all ranks */
  const hs_seam* seams;
  int32_t seam_count; /* default 0 */
  int32_t reserved;
} hs_grid_options;

typedef struct hs_grid hs_grid;

#define hs_grid_init(options) hs_grid_init_sized((options), sizeof *(options))
void hs_grid_init_sized(hs_grid_options* options, uint64_t size);
/* Writes the six faces of a cube of edge x edge cells each, in a row in x, which fit a grid of 6 * edge x edge x levels
 * cells, and their twelve seams. They have the order of MITgcm's cubed spheres. Of faces 0, 2, 4 the high x edge meets
 * the low x edge of the next face, and the high y edge the low x edge of the next but one, reversed. Of faces 1, 3, 5
 * the high y edge meets the low y edge of the next face, and the high x edge the low y edge of the next but one,
 * reversed. Local. Fails with HS_USAGE for less than 1 cell. */
hs_status hs_cubed_sphere(int64_t edge, int64_t levels, hs_box panels[6], hs_seam seams[12]);
/* Creates a grid split over the ranks of `comm`, which must live as long as exchanges are created on the grid.
 * Fails with HS_USAGE for cells or ranks that do not fit each other, boxes that overlap, leave a gap or do not line
 * up (naming the cell), a communicator with a different topology or a graph, an inter-communicator; for MPI_COMM_NULL
 * on the ranks that pass it. Cost: a reduction; BOXES: 8 bytes from each rank to all and 48 for each block; `reorder`:
 * 8. */
hs_status hs_grid_create(MPI_Comm comm, const hs_grid_options* options, hs_grid** grid);
/* The same for a communicator of Fortran: comm%MPI_VAL of mpi_f08, an integer of mpi; comm.py2f() of mpi4py. */
hs_status hs_grid_create_f(int comm, const hs_grid_options* options, hs_grid** grid);
/* Local. */
hs_status hs_grid_free(hs_grid* grid);
/* Returns this rank's cells, in global coordinates. Fails with HS_USAGE on a grid of several blocks a rank. */
hs_status hs_grid_owned(const hs_grid* grid, hs_box* owned);
/* Returns the cells of a block of this rank, from 0; of block 0 without any: none. */
hs_status hs_grid_block(const hs_grid* grid, int32_t block, hs_box* owned);
/* Returns 1 for each side (dimension, low and high) of a block of this rank that lies at an edge of the grid or of its
 * panel, where the grid neither wraps around nor meets itself; else 0. */
hs_status hs_grid_edges(const hs_grid* grid, int32_t block, int32_t at_edge[3][2]);
/* The split of a grid. Dimensions that it lacks have 1 cell and 1 rank. */
typedef struct hs_grid_data {
  uint64_t struct_size;
  int64_t cells[3]; /* global */
  int32_t periodic[3];
  int32_t ranks[3];   /* the process grid; with several blocks a rank, blocks per dimension */
  int32_t dims, size; /* size: number of ranks */
  int32_t blocks;     /* of this rank */
  int32_t several;    /* 1: some rank has several blocks */
  int32_t fold;       /* HS_FOLD_... */
  int32_t panels;     /* number of panels */
} hs_grid_data;

#define hs_grid_data_init(data) hs_grid_data_init_sized((data), sizeof *(data))
void hs_grid_data_init_sized(hs_grid_data* data, uint64_t size);
/* Writes the members that the caller's header has. Local. */
hs_status hs_grid_get(const hs_grid* grid, hs_grid_data* data);
/* Returns a rank's position in the process grid. This call and the next one fail with HS_USAGE for a rank that the grid
 * lacks, and on a grid of several blocks a rank. */
hs_status hs_grid_coords(const hs_grid* grid, int32_t rank, int32_t coords[3]);
/* Returns the rank at `offset` (each -1, 0, 1) from `rank`; -1 beyond an edge that is not periodic, in a hole, beyond a
 * fold or seam; may be `rank` itself. */
hs_status hs_grid_neighbour(const hs_grid* grid, int32_t rank, const int32_t offset[3], int32_t* neighbour);
/* For checks of a binding before it opens an exchange: hs_agree_f() over the grid's communicator, without an order. */
hs_status hs_grid_agree(const hs_grid* grid, hs_status status, const char* text);

/* ---- bindings ---------------------------------------------------------------------------------------------------- */

/* Collective work of bindings on a communicator, which is passed as to hs_grid_create_f(). Where MPI refuses a call
 * on all ranks, these calls fail on all of them; where only on some, the job ends, because the others would wait.
 * what  the object that the ranks make: "a grid", "an exchange"; for reports of long waits. */

/* Fails with HS_USAGE after MPI_Finalize, where the library was used before. For bindings, before they convert a
 * communicator: Open MPI ends the job when that is done after MPI_Finalize. Makes no call of MPI while MPI runs.
 * Local. */
hs_status hs_require_mpi(void);
/* Returns the calling rank, of a communicator that a grid can be split over. Fails with HS_USAGE as hs_grid_create()
 * does for other communicators. Local. */
hs_status hs_member_f(int comm, int32_t* rank, int32_t* size);
/* Returns HS_OK where every rank passes HS_OK. Else each rank gets its own failure, or the failure of the first rank
 * that has one, with the number of that rank. Collective; cost: a reduction, with an order two.
 * text   the error of this rank; NULL with HS_OK.
 * order  order of the axes of that object, such as "C"; NULL, on all ranks: none. Fails with HS_USAGE where ranks
 *        differ in it. */
hs_status hs_agree_f(int comm, const char* what, hs_status status, const char* text, const char* order);
/* Gathers `count` numbers of each rank on all ranks, by rank. Collective.
 * all  out: `count` numbers for each rank. */
hs_status hs_gather_f(int comm, const char* what, const int64_t* mine, int32_t count, int64_t* all);
/* Prints the calling rank and a text on standard error and ends all ranks. Fails with HS_USAGE where MPI is not
 * running. */
hs_status hs_end_job(const char* text);

/* ---- exchanges --------------------------------------------------------------------------------------------------- */

enum { HS_TYPE_REAL, HS_TYPE_INTEGER };
enum { HS_CENTRING_CELL, HS_CENTRING_NODE, HS_CENTRING_FACE_X, HS_CENTRING_FACE_Y, HS_CENTRING_FACE_Z };
/* Ghost points beyond an edge of a grid that does not wrap around keep their values; have the values of the inner
 * points mirrored at the edge, unchanged or negated (a wall, whose normal velocity is odd); or have the nearest inner
 * value (an open boundary). */
enum { HS_EDGE_FIXED, HS_EDGE_EVEN, HS_EDGE_ODD, HS_EDGE_NEAREST };

/* One array of one rank, with its halo. */
typedef struct hs_field {
  uint64_t struct_size;  /* equal in all elements of an array of fields */
  void* const* first;    /* address of the first owned point (not of the halo), for each slot */
  int64_t stride[3];     /* bytes between points that are neighbours in x, y, z; of any sign and order */
  int32_t element_bytes; /* of a point, >= 1: 16 for a double complex, 24 for a struct of three doubles; default 8 */
  int32_t type;          /* HS_TYPE_..., default REAL; matters to strategies with fields=type, and to accumulations */
  int32_t centring;      /* HS_CENTRING_..., default CELL; planes that both ranks hold are never sent */
  int32_t low[3];        /* ghost layers that are filled on the low side, >= 0; default 0 */
  int32_t high[3];       /* ... and on the high side */
  /* of each number of a point, for hs_exchange_accumulate(): 4 for a float complex, 8 for three doubles; 0 (default):
   * a point is one number of its type; -1: it is not made of numbers */
  int32_t number_bytes;
  const char* name; /* for error texts; NULL (default): "field 1", ... */
  /* HS_EDGE_..., by dimension, of the low and the high side; default FIXED. Others need memory for the ghost layers
   * beyond the edge. ODD: reals of 4 or 8 bytes. Sums, files and redistributions ignore them. */
  int32_t edges[3][2];
  /* 1: the value of a cell lies on its high face in this dimension, as velocities of ocean models do in arrays of one
   * shape; default 0. Only folds and seams depend on it */
  int32_t on_high_face[3];
  int32_t vector; /* number of the vector field that this is a component of; 0 (default): none. Across a seam its x may
                   * be y, or opposite; across a fold it changes its sign. Reals of 4 or 8 bytes */
  int32_t along;  /* of a vector: 0 (default) x, 1 y, 2 z */
  int32_t reserved;
} hs_field;

#define hs_field_init(field) hs_field_init_sized((field), sizeof *(field))
void hs_field_init_sized(hs_field* field, uint64_t size);

typedef struct hs_exchange_options {
  uint64_t struct_size;
  const char* strategy; /* such as "ordered/p2p", see strategy.hpp; NULL (default): "auto", which tries several */
  int32_t corners;      /* 1 (default): fill edges and corners too; 0: only the halos that a star needs */
  int32_t slots;        /* addresses of each array, >= 1: buffers that take turns; default 1 */
  int32_t guard;        /* 1: poison stale halos, see hs_exchange_changed(); default 0; HALOSCOPE_GUARD overrides */
  int32_t reserved;
} hs_exchange_options;

typedef struct hs_exchange hs_exchange;

#define hs_exchange_init(options) hs_exchange_init_sized((options), sizeof *(options))
void hs_exchange_init_sized(hs_exchange_options* options, uint64_t size);
/* Opens an exchange of `count` >= 1 arrays, of any mixture of types. Their memory must stay in place. Where a rank has
 * several blocks: the arrays of the first block, then the same ones of the next.
 * options  NULL: the defaults. HALOSCOPE_STRATEGY in the environment of rank 0 overrides the strategy, which
 *          rank 0 reports.
 * Halos may be wider than blocks: their points then come from ranks beyond the neighbours, and around a periodic
 * dimension as often as necessary.
 * Fails with HS_USAGE for an unknown strategy, arrays whose points share memory, within one or between two (naming
 * both; the same array may be in several slots), ranks that request different exchanges; HS_UNAVAILABLE for a strategy
 * that this MPI does not support.
 * Cost: some reductions and the opening of the transport; plans are made once, here. Large arrays are moved to huge
 * pages where the system provides huge pages on request and points lie on half of the pages or more; addresses and
 * contents stay. HALOSCOPE_HUGE_PAGES=0 in a rank's environment leaves its pages as they are. */
hs_status hs_exchange_create(const hs_grid* grid, const hs_field* fields, int32_t count,
                             const hs_exchange_options* options, hs_exchange** exchange);
/* Sends all messages that are ready. Boundary points of the slot must not change before hs_exchange_finish().
 * Fails with HS_USAGE before the exchange in flight has been finished, and for a slot that does not exist. */
hs_status hs_exchange_start(hs_exchange* exchange, int32_t slot);
/* Advances messages. done  out, may be NULL: 1 when everything has arrived. Does not wait, with one exception:
 * reference, neighbor:blocking, rma-fence, rma-pscw:get and shared:fence complete only in a call of MPI that waits.
 * With these, the 1000th call of an exchange makes that MPI call, so that a loop ends. */
hs_status hs_exchange_progress(hs_exchange* exchange, int32_t* done);
/* Waits until the halos of the started slot are filled and sent points may change. */
hs_status hs_exchange_finish(hs_exchange* exchange);
/* hs_exchange_start() and hs_exchange_finish(). */
hs_status hs_exchange_run(hs_exchange* exchange, int32_t slot);
/* Arrays in the memory of a device, which is recognised by their addresses: the same three with a stream of the
 * caller's, a cudaStream_t or hipStream_t; NULL: the default stream. Packing runs after the work already enqueued on
 * the stream, and work enqueued after hs_exchange_finish_on() finds the halos filled: the host waits for messages,
 * not for the device. hs_exchange_start() uses the default stream, and hs_exchange_finish() waits for the device too.
 * Fail with HS_USAGE for arrays in host memory. */
hs_status hs_exchange_start_on(hs_exchange* exchange, int32_t slot, void* stream);
hs_status hs_exchange_finish_on(hs_exchange* exchange, void* stream);
hs_status hs_exchange_run_on(hs_exchange* exchange, int32_t slot, void* stream);
/* The transpose of hs_exchange_start(): values in the halos of a slot are added to the owned points that they are
 * copies of, and the halos are cleared, as after a deposition of particles, the assembly of elements, or in an
 * adjoint code. hs_exchange_progress() and hs_exchange_finish() continue it; the boundary and the halos of the slot
 * must not be accessed until then. Every strategy gives the same bits. Nodes and faces that several ranks hold then
 * get the sum of all holders.
 * Fails with HS_USAGE as hs_exchange_start() does, and for arrays whose points are not made of integers of 1, 2, 4 or 8
 * bytes or reals of 4 or 8: see number_bytes of hs_field.
 * Cost: the messages and bytes of an exchange, and one pass over the arrived data. The first call is collective and
 * opens another link; later ones allocate nothing. */
hs_status hs_exchange_start_accumulate(hs_exchange* exchange, int32_t slot);
/* hs_exchange_start_accumulate() and hs_exchange_finish(). */
hs_status hs_exchange_accumulate(hs_exchange* exchange, int32_t slot);
/* The same for arrays in the memory of a device, ordered by a stream as hs_exchange_run_on() is;
 * hs_exchange_finish_on() ends an accumulation that the first has begun. Fail with HS_USAGE for arrays in host
 * memory, too. */
hs_status hs_exchange_start_accumulate_on(hs_exchange* exchange, int32_t slot, void* stream);
hs_status hs_exchange_accumulate_on(hs_exchange* exchange, int32_t slot, void* stream);
/* A part of an exchange, passed to its calls: some of its fields, fewer layers, some sides. */
typedef struct hs_part {
  uint64_t struct_size;
  const int32_t* only;     /* numbers of the fields, from 0; NULL (default): all */
  int32_t count;           /* numbers in `only` */
  int32_t depth;           /* layers on every side that the exchange fills; -1 (default): all of its layers */
  int32_t low[3], high[3]; /* layers per dimension and side; -1 (default): `depth` */
  /* 1: messages also carry the ghost layers that the exchange fills in dimensions where the part fills none; default
   * 0 */
  int32_t ghost_rows;
  int32_t reserved;
} hs_part;

#define hs_part_init(part) hs_part_init_sized((part), sizeof *(part))
void hs_part_init_sized(hs_part* part, uint64_t size);
/* The calls above for a part of the exchange; hs_exchange_progress() and hs_exchange_finish() continue them.
 * part  NULL: the whole exchange.
 * Fail with HS_USAGE for a field that the exchange lacks or that is named twice, and for more layers than it fills.
 * Cost: the messages of the part. The first call of a part is collective, like the opening of an exchange; parts of the
 * same fields and layers share links, and later calls allocate nothing. Accumulations leave the other halos as they
 * are. */
hs_status hs_exchange_start_part(hs_exchange* exchange, const hs_part* part, int32_t slot);
hs_status hs_exchange_run_part(hs_exchange* exchange, const hs_part* part, int32_t slot);
hs_status hs_exchange_start_accumulate_part(hs_exchange* exchange, const hs_part* part, int32_t slot);
hs_status hs_exchange_accumulate_part(hs_exchange* exchange, const hs_part* part, int32_t slot);
/* The same for arrays in the memory of a device, ordered by a stream. */
hs_status hs_exchange_start_part_on(hs_exchange* exchange, const hs_part* part, int32_t slot, void* stream);
hs_status hs_exchange_run_part_on(hs_exchange* exchange, const hs_part* part, int32_t slot, void* stream);
hs_status hs_exchange_start_accumulate_part_on(hs_exchange* exchange, const hs_part* part, int32_t slot, void* stream);
hs_status hs_exchange_accumulate_part_on(hs_exchange* exchange, const hs_part* part, int32_t slot, void* stream);
/* Starts to copy each point that several ranks hold (nodes and faces between blocks) from its owner to the other
 * holders; both ends of a periodic dimension count. The owner is the rank whose cell begins at the point, in each
 * dimension; where the grid ends there, or has a hole, the next block around the point, the same for all holders.
 * Halos keep their contents; hs_exchange_progress() and hs_exchange_finish() continue the call.
 * part  its fields; NULL: all. Its other members have their defaults.
 * Fail with HS_USAGE as hs_exchange_start() does, and for a part that names layers. Cost: a message to each rank that
 * holds points of this rank's; the first call is collective, like the opening of an exchange. */
hs_status hs_exchange_start_share(hs_exchange* exchange, const hs_part* part, int32_t slot);
/* Runs hs_exchange_start_share() and hs_exchange_finish(). */
hs_status hs_exchange_share(hs_exchange* exchange, const hs_part* part, int32_t slot);
/* The same for arrays in the memory of a device, ordered by a stream. */
hs_status hs_exchange_start_share_on(hs_exchange* exchange, const hs_part* part, int32_t slot, void* stream);
hs_status hs_exchange_share_on(hs_exchange* exchange, const hs_part* part, int32_t slot, void* stream);
/* The guard tracks stale halos. Without option `guard` these three calls only check that it is off.
 * Declares that owned points of a slot have changed, as after a sweep. Its halos become stale and are poisoned, except
 * the first `fresh` layers, which the sweep has computed too. Reals of 4 and 8 bytes become signalling NaNs that encode
 * their side, all other data bytes DB.
 * Fails with HS_USAGE for a slot that does not exist, a negative number, and while an exchange is in flight. Local;
 * cost: one store for each number in the halos. */
hs_status hs_exchange_changed(hs_exchange* exchange, int32_t slot, int32_t fresh);
/* Declares that halos are read `depth` layers deep from here on. Fails with HS_USAGE, on all ranks, where fewer are
 * fresh on a side that the exchange fills: the text names the field, the side, the layers and the number of the last
 * exchange. Local. */
hs_status hs_exchange_require_fresh(hs_exchange* exchange, int32_t depth, int32_t slot);
/* Checks the owned points of a slot for poison. Fails with HS_USAGE, on all ranks, where a stale halo was read: the
 * text names the first such point and the side that the poison came from. Collective: a reduction, and one load for
 * each number. */
hs_status hs_exchange_check_clean(hs_exchange* exchange, int32_t slot);
/* The same two for arrays in the memory of a device: after the work already enqueued on a stream, and the poison
 * before work enqueued later.
 * Without a stream they come after the work already enqueued on the default stream, and the host waits for the
 * poison. Fail with HS_USAGE for arrays in host memory, too. */
hs_status hs_exchange_changed_on(hs_exchange* exchange, int32_t slot, int32_t fresh, void* stream);
hs_status hs_exchange_check_clean_on(hs_exchange* exchange, int32_t slot, void* stream);
/* Moves a slot to other addresses of the arrays, with unchanged strides: for codes that swap pointers.
 * first  address of the first owned point of each field, in their order.
 * Local, and plans stay; strategies whose neighbours hold the addresses (shared except shared:packed, one-sided ones,
 * neighbor, partitioned) are opened again, which is collective. Fails with HS_USAGE while an exchange is in flight.
 * Only the next start refuses arrays that then share memory, so that two arrays may be swapped in two calls. */
hs_status hs_exchange_rebind(hs_exchange* exchange, int32_t slot, void* const* first);
/* Exchanges other arrays by the plans of this exchange: hs_exchange_rebind(), where arrays of the slot lie elsewhere
 * than in the last call, then hs_exchange_run(). The ranks' arrays may move in different calls. Cost: both calls, the
 * first one if arrays have moved; with strategies that open again, also a reduction in each call. */
hs_status hs_exchange_run_at(hs_exchange* exchange, int32_t slot, void* const* first);
/* Returns the addresses of the arrays of a slot, for callers that move one of several: the first owned point of each
 * field, in order, as passed when the exchange was created or last rebound, even if that hs_exchange_rebind() failed.
 * Local. Fails with HS_USAGE for a slot that does not exist.
 * first  out: an address for each field. */
hs_status hs_exchange_first(const hs_exchange* exchange, int32_t slot, void** first);
/* Returns one line with the strategy that moves the halos, the messages that this rank sends, and the choice of
 * `auto`. The text lives until the next call. */
hs_status hs_exchange_report(hs_exchange* exchange, const char** text);
/* Finishes the exchange in flight, and frees the exchange. Collective: all ranks free their exchanges in the same
 * order, and may wait for each other. After MPI_Finalize it leaves resources of MPI as they are. */
hs_status hs_exchange_free(hs_exchange* exchange);

/* Handlers of XLA's foreign function interface, version 0.3, for programs that JAX and others compile for the host:
 * hs_exchange_run_at(), and hs_exchange_rebind() with hs_exchange_accumulate().
 * call  XLA_FFI_CallFrame*. Arguments and results are a token, then all arrays in order, each result in the memory of
 *       its argument. Attribute `exchange` is the handle as an integer of 64 bits, `before` an array of such integers:
 *       the bytes before the first owned point of each array.
 * Return NULL, or the XLA_FFI_Error* of a call that failed. */
void* hs_exchange_xla(void* call);
void* hs_exchange_accumulate_xla(void* call);

/* Calls on an exchange that may be collective in addition to their messages. */
enum { HS_CALL_ACCUMULATE, HS_CALL_CHECK_CLEAN, HS_CALL_REBIND, HS_CALL_SHARE, HS_CALL_RUN_AT };
/* For a binding that checks arguments itself: replaces a call that this rank cannot make, and fails with `status` and
 * `text`.
 * Where the call is collective, like rebinding with some strategies or the first accumulation, it fails on the other
 * ranks with the text and this rank's number: no rank waits. */
hs_status hs_exchange_refuse(hs_exchange* exchange, int32_t call, hs_status status, const char* text);
/* For a binding whose memory is exhausted: returns the library's error text, with the bytes needed and available.
 * Needs no memory. The status for the text is HS_FAILED.
 * purpose  purpose of the memory, such as "the list of arrays"
 * text     out, of `size` characters */
void hs_exhausted_memory(const char* purpose, int64_t bytes, char* text, int32_t size);

/* ---- redistributions --------------------------------------------------------------------------------------------- */

/* Fields move between two splits of one grid, such as splits over other numbers of ranks, pencils along another
 * dimension, all cells on one rank: the points that ranks own in the first one, to the ranks that hold them in the
 * second one. Nodes and faces that several ranks hold get their owner's value, see hs_exchange_start_share(), on all of
 * their holders. Ghost layers neither move nor change; points in a hole of the first split stay as they are in the
 * second one. */
typedef struct hs_redistribution hs_redistribution;

/* Opens a redistribution of `count` >= 1 fields. Collective.
 * from, to  grids of the same cells and periodic dimensions on one communicator.
 * sources   the fields in the first split; targets: the same ones in the second, in separate memory. Their low and high
 *           ghost layers do not matter. Where a rank owns no cells, addresses may be null. Where ranks have several
 *           blocks: `count` fields of the first block, then of the next.
 * options   strategy, NULL: "direct/p2p", of devices "direct:merged/auto-device", and slots; NULL: the defaults. A
 *           rank sends at most one message to each other rank, or the number that `fields` of the strategy requests.
 *           Buffers are as large as the fields, and "auto" holds buffers of several transports. HALOSCOPE_STRATEGY has
 *           no effect.
 * Fails with HS_USAGE, on all ranks, for grids that differ, fields that do not fit each other, and where ranks request
 * different redistributions. */
hs_status hs_redistribution_create(const hs_grid* from, const hs_grid* to, const hs_field* sources,
                                   const hs_field* targets, int32_t count, const hs_exchange_options* options,
                                   hs_redistribution** redistribution);
/* Sends all messages. Owned points of the slot must not change in the sources, and not be read in the targets, before
 * hs_redistribution_finish(). Fails with HS_USAGE while another one is in flight, and for a slot that does not
 * exist. */
hs_status hs_redistribution_start(hs_redistribution* redistribution, int32_t slot);
/* The same for fields in the memory of a device, after the work already enqueued on a stream of the caller's. */
hs_status hs_redistribution_start_on(hs_redistribution* redistribution, int32_t slot, void* stream);
/* Advances messages, as hs_exchange_progress() does. done  out, may be NULL: 1 when everything has arrived. */
hs_status hs_redistribution_progress(hs_redistribution* redistribution, int32_t* done);
/* Waits until all points have arrived and sent ones may change. */
hs_status hs_redistribution_finish(hs_redistribution* redistribution);
/* hs_redistribution_start() and hs_redistribution_finish(). */
hs_status hs_redistribution_run(hs_redistribution* redistribution, int32_t slot);
/* Returns one line with the strategy, and the messages and bytes that this rank sends. The text lives until the next
 * call. */
hs_status hs_redistribution_report(hs_redistribution* redistribution, const char** text);
/* Finishes the one in flight, and frees it. Collective, as hs_exchange_free(). */
hs_status hs_redistribution_free(hs_redistribution* redistribution);

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* Sums over the points of a grid, each of which counts once: of nodes and faces that several ranks hold, the owner's
 * value, see hs_exchange_start_share(). Ghost layers do not count. Results have the same bits on any number of ranks,
 * for any split of the grid and any layout in memory. An infinite or undefined term gives an infinite or undefined sum.
 * field  its slot 0; points are reals of 4 or 8 bytes, in host memory; of several numbers for products and norms. Where
 *        ranks have several blocks: an array, the field of each block of this rank.
 * Fail with HS_USAGE, on all ranks, for other fields, and where ranks pass different ones or other grids. Collective;
 * cost: two reductions to all of 48 and 24 bytes, and two passes over the points. */
hs_status hs_grid_sum(const hs_grid* grid, const hs_field* field, double* result);
/* The same for the real or the imaginary parts of complex numbers. Fails where other ranks call hs_grid_sum(). */
hs_status hs_grid_sum_of_parts(const hs_grid* grid, const hs_field* field, double* result);
/* The inner product of two fields of one centring: the sum of the products of all their numbers. */
hs_status hs_grid_dot(const hs_grid* grid, const hs_field* field, const hs_field* other, double* result);
/* The square root of the inner product of a field with itself. */
hs_status hs_grid_norm(const hs_grid* grid, const hs_field* field, double* result);
/* For bindings: fails in place of one of these calls, which this rank cannot make, on all ranks. */
hs_status hs_grid_refuse_sum(const hs_grid* grid, hs_status status, const char* text);

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Fields in files of NumPy's format .npy, which any number of ranks writes and reads: the points of the grid, each
 * once, x fastest, in the file's last axis before the numbers of a point. A node or a face that several ranks hold is
 * written by its owner and read by all holders; where a staggered dimension is periodic, the file has both of its ends.
 * Ghost layers are neither written nor read. A file takes its name when it is complete; until then it is PATH.part.
 * field  its slot 0, in host memory. Where ranks have several blocks: an array, the field of each block of this rank.
 * type   of the numbers in the file, as NumPy names it: "<f8", "|u1", "<c16", "|b1"; NULL: by the field's type.
 * order  "C" or NULL: the file's shape begins with the slowest axis, and numpy.load() returns arrays [z, y, x]; "F":
 *        with the fastest one, [x, y, z]. The bytes are the same; a file of the other order is refused.
 * Fail, on all ranks, with HS_USAGE for other fields, ranks that pass different paths or fields, and files of another
 * format, type or shape, or that were cut off; with HS_FAILED where the file system fails. Collective; cost: a
 * redistribution to whole planes, and the file's bytes divided by the ranks. */

/* Writes a field. Points in holes of the grid are 0. */
hs_status hs_grid_write(const hs_grid* grid, const hs_field* field, const char* type, const char* order,
                        const char* path);
/* Reads a field. */
hs_status hs_grid_read(const hs_grid* grid, const hs_field* field, const char* type, const char* order,
                       const char* path);
/* The same points without a header, in a file of another format: an array in one piece, as a contiguous dataset of HDF5
 * or an array of a file of the program. The file exists and has these bytes already, of which only they change.
 * offset  byte of the first point in the file; of a dataset of HDF5 H5Dget_offset().
 * Fail also where the file has not these bytes. A write that fails may leave some of them changed; the type of the
 * numbers in the file is not checked. */
hs_status hs_grid_write_at(const hs_grid* grid, const hs_field* field, const char* path, int64_t offset);
hs_status hs_grid_read_at(const hs_grid* grid, const hs_field* field, const char* path, int64_t offset);
/* For bindings: fail in place of one of these calls, which this rank cannot make, on all ranks. */
hs_status hs_grid_refuse_write(const hs_grid* grid, hs_status status, const char* text);
hs_status hs_grid_refuse_read(const hs_grid* grid, hs_status status, const char* text);

/* ---- imitated devices -------------------------------------------------------------------------------------------- */

/* Devices that the CPU imitates, to try programs on machines without a GPU: the driver functions that callers of
 * exchanges need. Exchanges recognise memory of imitated devices like memory of GPUs. HALOSCOPE_HOST_DEVICE specifies
 * the number of devices; default 1.
 * device  number, from 0. Fail with HS_USAGE for a device that does not exist. */

/* Allocates zeroed memory of a device, like cudaMalloc. */
hs_status hs_imitated_allocate(uint64_t bytes, int32_t device, void** memory);
/* Frees memory. Fails with HS_USAGE for an address that hs_imitated_allocate() has not returned. */
hs_status hs_imitated_release(void* memory);
/* Copies like cudaMemcpy: on the default stream of device 0, in any direction; waits until the copy is done. */
hs_status hs_imitated_copy(void* to, const void* from, uint64_t bytes);
/* Makes a stream, a thread that does its work in order, like cudaStreamCreate. */
hs_status hs_imitated_make_stream(int32_t device, void** stream);
/* Finishes the work of a stream, then frees it. */
hs_status hs_imitated_free_stream(void* stream);
/* Enqueues kernel(context) on a stream, or on the default stream of device 0 (NULL); returns immediately. */
hs_status hs_imitated_launch(void* stream, void (*kernel)(void* context), void* context);
/* Waits until a stream's work is done. */
hs_status hs_imitated_finish(void* stream);

/* ---- the machine ------------------------------------------------------------------------------------------------- */

/* Receives one check, the same on every rank: verdict is "ok", "warning", "broken" or "not here", remedy "" where
 * nothing needs to be done. Texts live until it returns. */
typedef void (*hs_tell_check)(void* context, const char* name, const char* verdict, const char* found,
                              const char* remedy);
/* Examines the ranks of `comm` from inside the running program: pinning, /dev/shm, huge pages, values of exchanged
 * halos. Checks that may crash or hang an MPI are left to the command `haloscope doctor`. Collective. A finding is
 * not a failure.
 * Fails with HS_USAGE for a null function, and where MPI is not running. Cost: some collective calls, two exchanges,
 * 64 MiB written and freed on each rank. */
hs_status hs_doctor(MPI_Comm comm, hs_tell_check tell, void* context);

#ifdef __cplusplus
}
#endif

#endif
