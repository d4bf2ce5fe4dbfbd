/* Halos through the C interface: a C array on a Cartesian communicator, whose last dimension is x; and refused
 * calls. */
#include <haloscope/exchange.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(hs_status status) {
  if (status == HS_OK) return;
  fprintf(stderr, "%s\n", hs_last_error());
  MPI_Abort(MPI_COMM_WORLD, status);
}

struct upload {
  double *to, *from;
  size_t count;
};

static void run_upload(void* context) {
  const struct upload* up = context;
  size_t i;
  for (i = 0; i < up->count; ++i) up->to[i] = up->from[i];
}

/* The same array on an imitated device, filled, exchanged and read by its stream. `field` is the array's, on the
 * host. */
static int wrong_on_device(const hs_grid* grid, hs_field field, const hs_box* own) {
  const int64_t nx = own->hi[0] - own->lo[0], ny = own->hi[1] - own->lo[1], row = nx + 2;
  const size_t count = (size_t)((ny + 2) * row), bytes = count * sizeof(double);
  double* host = calloc(count, sizeof(double));
  void *memory, *first, *stream, *on_host[2];
  hs_field two[2];
  hs_exchange_options how;
  hs_exchange* halo;
  struct upload up;
  int64_t i, j;
  int wrong = 0;
  check(hs_imitated_allocate(bytes, 0, &memory));
  check(hs_imitated_make_stream(0, &stream));
  if (hs_imitated_allocate(bytes, 1000, &first) != HS_USAGE || hs_imitated_release(host) != HS_USAGE) return 1;
  first = (double*)memory + row + 1;
  on_host[0] = field.first[0];
  two[0] = two[1] = field;
  two[0].first = &first;
  two[1].first = on_host;
  hs_exchange_init(&how);
  if (hs_exchange_create(grid, two, 2, &how, &halo) != HS_USAGE) return 1; /* in two memories */
  how.strategy = "ordered/p2p";
  if (hs_exchange_create(grid, two, 1, &how, &halo) != HS_USAGE) return 1;
  how.strategy = "direct/staged";
  if (hs_exchange_create(grid, two + 1, 1, &how, &halo) != HS_USAGE) return 1;
  how.strategy = NULL;
  check(hs_exchange_create(grid, two, 1, &how, &halo));
  for (j = 0; j < ny; ++j)
    for (i = 0; i < nx; ++i) host[(j + 1) * row + i + 1] = (double)(100 * (own->lo[1] + j) + own->lo[0] + i);
  up.to = memory, up.from = host, up.count = count;
  check(hs_imitated_launch(stream, run_upload, &up));
  check(hs_exchange_start_on(halo, 0, stream));
  check(hs_exchange_finish_on(halo, stream));
  check(hs_exchange_run_on(halo, 0, stream));
  check(hs_imitated_finish(stream));
  check(hs_imitated_copy(host, memory, bytes));
  for (j = -1; j <= ny; ++j)
    for (i = -1; i <= nx; ++i)
      wrong += host[(j + 1) * row + i + 1] != (double)(100 * ((own->lo[1] + j + 20) % 20) + (own->lo[0] + i + 30) % 30);
  for (i = 0; i < (int64_t)count; ++i) host[i] = 1;
  check(hs_imitated_launch(stream, run_upload, &up));
  check(hs_exchange_start_accumulate_on(halo, 0, stream));
  check(hs_exchange_finish_on(halo, stream));
  check(hs_exchange_accumulate_on(halo, 0, stream)); /* nothing more: the halos are clear */
  check(hs_imitated_finish(stream));
  check(hs_exchange_accumulate(halo, 0));
  check(hs_exchange_changed_on(halo, 0, 0, stream)); /* nothing without a guard */
  check(hs_exchange_check_clean_on(halo, 0, stream));
  check(hs_imitated_copy(host, memory, bytes));
  for (j = 0; j < ny; ++j)
    for (i = 0; i < nx; ++i)
      wrong += host[(j + 1) * row + i + 1] != (1 + (i == 0) + (i == nx - 1)) * (1 + (j == 0) + (j == ny - 1));
  hs_exchange_free(halo);
  check(hs_imitated_free_stream(stream));
  check(hs_imitated_release(memory));
  free(host);
  return wrong;
}

/* A 3D grid on a 2D communicator, which leaves its columns whole. */
static int wrong_columns(MPI_Comm cart, int size) {
  hs_grid_options split;
  hs_grid* grid;
  hs_box own;
  int32_t beside, coords[3];
  const int32_t up[3] = {0, 1, 0};
  int rank;
  MPI_Comm_rank(cart, &rank);
  hs_grid_init(&split);
  split.split = HS_SPLIT_CARTESIAN;
  split.cells[0] = 30, split.cells[1] = 5, split.cells[2] = 20;
  split.periodic[1] = 1;
  if (hs_grid_create(cart, &split, &grid) != HS_USAGE) return 1; /* dimension 2 of a communicator of two */
  split.axes[0] = 1, split.axes[1] = HS_NOT_SPLIT, split.axes[2] = 0;
  check(hs_grid_create(cart, &split, &grid));
  check(hs_grid_owned(grid, &own));
  check(hs_grid_coords(grid, rank, coords));
  check(hs_grid_neighbour(grid, rank, up, &beside));
  if (own.lo[1] != 0 || own.hi[1] != 5 || coords[1] != 0 || beside != rank) return 1;
  check(hs_grid_free(grid));
  split.axes[2] = HS_NOT_SPLIT; /* a dimension that has several processes */
  return size > 1 && hs_grid_create(cart, &split, &grid) != HS_USAGE;
}

static int refused_with(hs_status status, const char* part) {
  return status == HS_USAGE && strstr(hs_last_error(), part) != NULL;
}

/* Structs of an older header, which work, and structs without a size. */
static int wrong_sizes(const hs_grid* grid, hs_field field) {
  struct older { /* hs_field without its last member */
    uint64_t struct_size;
    void* const* first;
    int64_t stride[3];
    int32_t element_bytes, type, centring, low[3], high[3], number_bytes;
  } old[2];
  hs_field two[2];
  hs_grid_data data;
  hs_exchange* halo;
  double sum;
  memcpy(&old[0], &field, sizeof old[0]);
  old[0].struct_size = sizeof old[0];
  old[1] = old[0];
  check(hs_exchange_create(grid, (const hs_field*)old, 1, NULL, &halo));
  check(hs_exchange_free(halo));
  if (!refused_with(hs_exchange_create(grid, (const hs_field*)old, 2, NULL, &halo), "share memory")) return 1;
  two[0] = two[1] = field;
  two[1].struct_size = sizeof old[0];
  if (!refused_with(hs_exchange_create(grid, two, 2, NULL, &halo), "elements of struct_size")) return 1;
  two[0].struct_size = 0;
  if (!refused_with(hs_exchange_create(grid, two, 1, NULL, &halo), "struct_size 0")) return 1;
  if (!refused_with(hs_grid_sum(grid, two, &sum), "struct_size 0")) return 1;
  two[0].struct_size = 16; /* no header had this one */
  if (!refused_with(hs_grid_sum(grid, two, &sum), "struct_size 16")) return 1;
  two[0] = field;
  two[0].stride[1] = 0;
  if (!refused_with(hs_grid_sum(grid, two, &sum), "points share memory")) return 1;
  hs_grid_data_init(&data);
  data.struct_size -= 4 * sizeof(int32_t); /* without its last four members */
  data.blocks = 77;
  check(hs_grid_get(grid, &data));
  if (data.blocks != 77 || data.cells[0] != 30 || data.dims != 2) return 1;
  data.struct_size = sizeof data + 8;
  return !refused_with(hs_grid_get(grid, &data), "struct_size");
}

/* Handles of objects that do not exist, on this rank or on all. */
static int wrong_handles(hs_grid* grid, const hs_field* field, int rank) {
  hs_exchange *halo, *other, *copy;
  hs_grid* freed = NULL;
  hs_grid_options split;
  hs_grid_data how_split;
  hs_exchange_options how;
  void* first[1];
  const char* text;
  int32_t done;
  int foreign[64] = {0};
  hs_exchange_init(&how);
  how.strategy = "ordered/p2p";
  check(hs_exchange_create(grid, field, 1, &how, &halo));
  copy = halo;
  check(hs_exchange_free(halo));
  check(hs_exchange_create(grid, field, 1, &how, &other)); /* may lie where the first one did */
  first[0] = field->first[0];
  if (hs_exchange_free(copy) != HS_USAGE || hs_exchange_start(copy, 0) != HS_USAGE ||
      hs_exchange_run(copy, 0) != HS_USAGE || hs_exchange_finish(copy) != HS_USAGE ||
      hs_exchange_progress(copy, &done) != HS_USAGE || hs_exchange_accumulate(copy, 0) != HS_USAGE ||
      hs_exchange_changed(copy, 0, 0) != HS_USAGE || hs_exchange_rebind(copy, 0, first) != HS_USAGE ||
      hs_exchange_report(copy, &text) != HS_USAGE || hs_exchange_first(copy, 0, first) != HS_USAGE ||
      hs_exchange_refuse(copy, HS_CALL_REBIND, HS_USAGE, "no") != HS_USAGE)
    return 1;
  if (hs_exchange_run((hs_exchange*)(void*)foreign, 0) != HS_USAGE) return 1;       /* not a handle */
  if (hs_exchange_run((hs_exchange*)(void*)grid, 0) != HS_USAGE) return 1;          /* one of another kind */
  if (hs_exchange_run((hs_exchange*)((char*)other + 512), 0) != HS_USAGE) return 1; /* close to one */
  hs_grid_init(&split);
  split.dims = 1;
  split.cells[0] = 100;
  check(hs_grid_create(MPI_COMM_WORLD, &split, &freed));
  check(hs_grid_free(freed));
  if (hs_grid_free(freed) != HS_USAGE || hs_grid_get(freed, &how_split) != HS_USAGE) return 1;
  if (hs_exchange_create(freed, field, 1, &how, &halo) != HS_USAGE) return 1;
  if (hs_grid_create(MPI_COMM_WORLD, &split, rank == 0 ? NULL : &freed) != HS_USAGE) return 1; /* on all ranks */
  if (hs_exchange_create(grid, field, 1, &how, rank == 0 ? NULL : &halo) != HS_USAGE) return 1;
  if (hs_exchange_refuse(other, HS_CALL_ACCUMULATE, HS_USAGE, "no") != HS_USAGE ||
      hs_exchange_refuse(other, 9, HS_USAGE, "") != HS_USAGE)
    return 1;
  check(hs_exchange_run(other, 0));
  check(hs_exchange_free(other));
  return hs_exchange_free(NULL) != HS_OK || hs_grid_free(NULL) != HS_OK;
}

/* The addresses that an exchange has are the ones of its creation or last rebind, slot by slot. */
static int wrong_addresses(const hs_grid* grid, hs_field field, double* u, size_t bytes) {
  hs_exchange_options how;
  hs_exchange* halo;
  void *slots[2], *moved[1], *found[1] = {NULL};
  double *other = malloc(bytes), *third = malloc(bytes);
  const size_t at = (size_t)((double*)field.first[0] - u);
  slots[0] = u + at, slots[1] = other + at, moved[0] = third + at;
  field.first = slots;
  hs_exchange_init(&how);
  how.strategy = "ordered/p2p";
  how.slots = 2;
  check(hs_exchange_create(grid, &field, 1, &how, &halo));
  check(hs_exchange_first(halo, 1, found));
  if (found[0] != slots[1]) return 1;
  check(hs_exchange_rebind(halo, 1, moved));
  check(hs_exchange_first(halo, 1, found));
  if (found[0] != moved[0]) return 1;
  check(hs_exchange_first(halo, 0, found));
  if (found[0] != slots[0]) return 1;
  check(hs_exchange_run_at(halo, 0, moved)); /* both slots in one array, in turn */
  check(hs_exchange_first(halo, 0, found));
  if (found[0] != moved[0] || hs_exchange_run_at(halo, 2, moved) != HS_USAGE ||
      hs_exchange_run_at(halo, 0, NULL) != HS_USAGE)
    return 1;
  if (hs_exchange_first(halo, 2, found) != HS_USAGE || hs_exchange_first(halo, -1, found) != HS_USAGE ||
      hs_exchange_first(halo, 0, NULL) != HS_USAGE || hs_exchange_first(NULL, 0, found) != HS_USAGE)
    return 1;
  check(hs_exchange_free(halo));
  free(other);
  free(third);
  return 0;
}

/* A part of an exchange: the second array alone, its lower side in x alone; then wrong ones. */
static int wrong_parts(const hs_grid* grid, hs_field field, double* u, size_t count) {
  const size_t at = (size_t)((double*)field.first[0] - u), row = (size_t)field.stride[1] / sizeof *u;
  const int32_t second = 1, none = 2, twice[2] = {1, 1};
  hs_field fields[2] = {field, field};
  hs_exchange* halo;
  hs_part part;
  size_t i;
  double* v = malloc(count * sizeof *v);
  void* first = v + at;
  fields[1].first = (void* const*)&first;
  check(hs_exchange_create(grid, fields, 2, NULL, &halo));
  for (i = 0; i < count; ++i) u[i] = v[i] = -1;
  u[at] = 5, v[at + row - 3] = 7; /* the last own cell in x of the first row: its neighbour's halo on the low side */
  hs_part_init(&part);
  part.only = &second;
  part.count = 1;
  part.depth = 0;
  part.low[0] = 1;
  check(hs_exchange_run_part(halo, &part, 0));
  if (v[at - 1] != 7 || v[at + row - 2] != -1 || v[at - row] != -1) return 1;
  for (i = 0; i < count; ++i)
    if (u[i] != (i == at ? 5 : -1)) return 1;
  check(hs_exchange_start_part(halo, NULL, 0));
  check(hs_exchange_finish(halo));
  if (u[at + row - 2] != 5) return 1;
  for (i = 0; i < count; ++i) u[i] = v[i] = 1;
  check(hs_exchange_accumulate_part(halo, &part, 0));
  if (v[at + row - 3] != 2 || v[at - 1] != 0 || v[at] != 1 || u[at] != 1) return 1;
  check(hs_exchange_start_accumulate_part(halo, &part, 0));
  check(hs_exchange_finish(halo));
  if (!refused_with(hs_exchange_start_part_on(halo, &part, 0, NULL), "device") ||
      !refused_with(hs_exchange_run_part_on(halo, &part, 0, NULL), "device") ||
      !refused_with(hs_exchange_start_accumulate_part_on(halo, &part, 0, NULL), "device") ||
      !refused_with(hs_exchange_accumulate_part_on(halo, &part, 0, NULL), "device") ||
      !refused_with(hs_exchange_share(halo, &part, 0), "pass fields only") ||
      !refused_with(hs_exchange_start_share_on(halo, NULL, 0, NULL), "device") ||
      !refused_with(hs_exchange_share_on(halo, NULL, 0, NULL), "device"))
    return 1;
  part.high[1] = 2;
  if (!refused_with(hs_exchange_run_part(halo, &part, 0), "2 layers")) return 1;
  part.high[1] = -1;
  part.only = &none;
  if (!refused_with(hs_exchange_run_part(halo, &part, 0), "field 2")) return 1;
  part.only = twice;
  part.count = 2;
  if (!refused_with(hs_exchange_run_part(halo, &part, 0), "twice")) return 1;
  part.count = 0;
  if (!refused_with(hs_exchange_run_part(halo, &part, 0), "0 fields")) return 1;
  part.only = NULL, part.count = 5;
  if (!refused_with(hs_exchange_run_part(halo, &part, 0), "no list 'only'")) return 1;
  part.struct_size = 4;
  if (!refused_with(hs_exchange_run_part(halo, &part, 0), "struct_size")) return 1;
  if (hs_exchange_run_part(NULL, NULL, 0) != HS_USAGE) return 1;
  check(hs_exchange_free(halo));
  free(v);
  return 0;
}

/* Sums of an array of ones, and of arguments that one rank lacks. */
static int wrong_sums(const hs_grid* grid, hs_field field, double* u, size_t count, int rank) {
  const double cells = 30 * 20;
  double found[3];
  size_t i;
  for (i = 0; i < count; ++i) u[i] = 1;
  check(hs_grid_sum(grid, &field, &found[0]));
  check(hs_grid_dot(grid, &field, &field, &found[1]));
  check(hs_grid_norm(grid, &field, &found[2]));
  if (found[0] != cells || found[1] != cells || found[2] * found[2] < cells - 1e-9) return 1;
  if (!refused_with(hs_grid_sum(grid, rank == 0 ? NULL : &field, found), "field")) return 1;
  if (!refused_with(hs_grid_dot(grid, &field, rank == 0 ? NULL : &field, found), "other")) return 1;
  if (!refused_with(hs_grid_norm(grid, &field, rank == 0 ? NULL : found), "result")) return 1;
  if (!refused_with(rank == 0 ? hs_grid_refuse_sum(grid, HS_USAGE, "no such array") : hs_grid_sum(grid, &field, found),
                    "no such array"))
    return 1;
  field.type = HS_TYPE_INTEGER;
  return !refused_with(hs_grid_sum(grid, &field, found), "reals");
}

/* Walls below and above x, an open boundary below y; two layers. */
static int wrong_edges(int size) {
  hs_grid_options split;
  hs_exchange_options how;
  hs_grid* grid = NULL;
  hs_exchange* halo = NULL;
  hs_field field;
  hs_box own;
  double u[9 * 24], *first = u + 2 * 9 + 2; /* blocks of 5 x 4, of 5 x 20 on one rank */
  void* address = first;
  char ranks[16];
  const int64_t ny = 20 / size < 4 ? 4 : 20 / size;
  int64_t i, j, d;
  int wrong = 0;
  if (size > 5) return 0;
  hs_grid_init(&split);
  split.dims = 2;
  split.cells[0] = 5;
  split.cells[1] = ny * size;
  snprintf(ranks, sizeof ranks, "1x%d", size);
  split.process_grid = ranks;
  check(hs_grid_create(MPI_COMM_WORLD, &split, &grid));
  check(hs_grid_owned(grid, &own));
  for (i = 0; i < 9 * 24; ++i) u[i] = -1;
  for (j = 0; j < ny; ++j)
    for (i = 0; i < 5; ++i) first[9 * j + i] = (double)(100 * (own.lo[1] + j) + i + 1);
  hs_field_init(&field);
  field.first = &address;
  field.stride[0] = sizeof *u;
  field.stride[1] = 9 * sizeof *u;
  for (d = 0; d < 2; ++d) field.low[d] = field.high[d] = 2;
  field.edges[0][0] = HS_EDGE_ODD;
  field.edges[0][1] = HS_EDGE_EVEN;
  field.edges[1][0] = HS_EDGE_NEAREST;
  hs_exchange_init(&how);
  how.strategy = "direct/p2p";
  check(hs_exchange_create(grid, &field, 1, &how, &halo));
  check(hs_exchange_run(halo, 0));
  for (j = -2; j < ny + 2; ++j)
    for (i = -2; i < 7; ++i) {
      const int64_t y = own.lo[1] + j < 0 ? 0 : own.lo[1] + j, x = i < 0 ? -1 - i : i > 4 ? 9 - i : i;
      const double value = (double)(100 * y + x + 1);
      wrong += first[9 * j + i] != (y >= split.cells[1] ? -1 : i < 0 ? -value : value);
    }
  check(hs_exchange_free(halo));
  field.edges[1][1] = 4;
  wrong += hs_exchange_create(grid, &field, 1, &how, &halo) != HS_USAGE;
  check(hs_grid_free(grid));
  return wrong;
}

/* Communicators that are not of one group of ranks: ranks that pass one get an error, and the program goes on. */
enum { edge = 3, sphere_row = edge + 2, sphere_points = sphere_row * sphere_row };

/* The value of a scalar (0) and of the components of a vector (1, 2) in a cell of a face. */
static double on_sphere(int what, int face, int i, int j) { return 1 + i + 10 * j + 100 * (face % 6) + 1000 * what; }

/* A scalar and a vector on the faces of a cubed sphere that this rank has. */
static int wrong_sphere(int rank, int size) {
  hs_box panels[6], own[6];
  hs_seam seams[12];
  hs_grid_options split;
  hs_grid* sphere;
  hs_exchange* halo;
  hs_field fields[18];
  void* first[18];
  int32_t at_edge[3][2];
  int face, i, j, n, blocks = 0, wrong = 0;
  double* values = calloc(18 * sphere_points, sizeof *values);
  check(hs_cubed_sphere(edge, 1, panels, seams));
  if (hs_cubed_sphere(0, 1, panels, seams) != HS_USAGE) return 1;
  for (face = rank; face < 6; face += size) own[blocks++] = panels[face];
  hs_grid_init(&split);
  split.dims = 2;
  split.split = HS_SPLIT_BOXES;
  split.cells[0] = 6 * edge;
  split.cells[1] = edge;
  split.block_count = blocks;
  split.blocks = own;
  split.panel_count = 6;
  if (hs_grid_create(MPI_COMM_WORLD, &split, &sphere) != HS_USAGE) return 1; /* panels that are nowhere */
  split.panels = panels;
  split.seams = seams;
  split.seam_count = 12;
  check(hs_grid_create(MPI_COMM_WORLD, &split, &sphere));
  check(hs_grid_edges(sphere, 0, at_edge));
  wrong += at_edge[0][0] + at_edge[0][1] + at_edge[1][0] + at_edge[1][1];
  for (n = 0; n < 18; ++n) {
    first[n] = values + n * sphere_points + sphere_row + 1;
    hs_field_init(&fields[n]);
    fields[n].first = &first[n];
    fields[n].stride[0] = sizeof(double);
    fields[n].stride[1] = sphere_row * sizeof(double);
    fields[n].low[0] = fields[n].low[1] = fields[n].high[0] = fields[n].high[1] = 1;
    fields[n].vector = n % 3 > 0;
    fields[n].along = n % 3 == 2;
    for (j = 0; j < edge; ++j)
      for (i = 0; i < edge; ++i) ((double*)first[n])[j * sphere_row + i] = on_sphere(n % 3, rank + n / 3 * size, i, j);
  }
  check(hs_exchange_create(sphere, fields, 3 * (blocks > 0 ? blocks : 1), NULL, &halo));
  check(hs_exchange_run(halo, 0));
  for (n = 0; n < 3 * blocks; ++n) {
    const double* u = first[n];
    const int across = (3 - n % 3) % 3; /* the component beyond a seam that turns */
    face = rank + n / 3 * size;
    for (i = 0; i < edge; ++i)
      if (face % 2 == 0) {
        wrong += u[i * sphere_row + edge] != on_sphere(n % 3, face + 1, 0, i);
        wrong += u[edge * sphere_row + i] != (n % 3 == 1 ? -1 : 1) * on_sphere(across, face + 2, 0, edge - 1 - i);
      } else {
        wrong += u[edge * sphere_row + i] != on_sphere(n % 3, face + 1, i, 0);
        wrong += u[i * sphere_row + edge] != (n % 3 == 2 ? -1 : 1) * on_sphere(across, face + 2, edge - 1 - i, 0);
      }
  }
  hs_exchange_free(halo);
  hs_grid_free(sphere);
  free(values);
  return wrong;
}

static int wrong_communicators(int rank, int size) {
  hs_grid_options split;
  hs_grid* grid = NULL;
  MPI_Comm some, half, inter;
  hs_grid_init(&split);
  split.cells[0] = split.cells[1] = split.cells[2] = 24;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, rank, &some);
  if (rank == 0 && !refused_with(hs_grid_create(some, &split, &grid), "MPI_COMM_NULL")) return 1;
  if (rank != 0) {
    check(hs_grid_create(some, &split, &grid));
    check(hs_grid_free(grid));
    MPI_Comm_free(&some);
  }
  if (size == 1) return 0;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &inter);
  if (!refused_with(hs_grid_create(inter, &split, &grid), "inter-communicator")) return 1;
  if (!refused_with(hs_doctor(inter, NULL, NULL), "inter-communicator")) return 1;
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
  return 0;
}

int main(int argc, char** argv) {
  int ranks[2] = {0, 0}, size, rank;
  const int wrap[2] = {1, 1};
  MPI_Comm cart;
  hs_grid_options split;
  hs_exchange_options how;
  hs_grid* grid = NULL;
  hs_exchange* halo = NULL;
  hs_box own;

  if (hs_grid_create(MPI_COMM_WORLD, NULL, &grid) != HS_USAGE) return 1; /* before MPI_Init */
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, ranks);
  MPI_Cart_create(MPI_COMM_WORLD, 2, ranks, wrap, 0, &cart);
  MPI_Comm_rank(cart, &rank);
  hs_grid_init(&split);
  split.dims = 2;
  split.split = HS_SPLIT_CARTESIAN;
  split.cells[0] = 30; /* x: the communicator's last dimension, the array's last axis */
  split.cells[1] = 20;
  split.axes[0] = 1;
  split.axes[1] = 0;
  check(hs_grid_create(cart, &split, &grid));
  check(hs_grid_owned(grid, &own));
  {
    const int64_t nx = own.hi[0] - own.lo[0], ny = own.hi[1] - own.lo[1], row = nx + 2;
    double* u = calloc((size_t)((ny + 2) * row), sizeof *u);
    void* first = u + row + 1;
    hs_field field;
    const char* report;
    int64_t i, j;
    int wrong = 0;
    hs_field_init(&field);
    field.first = &first;
    field.stride[0] = sizeof *u;
    field.stride[1] = row * (int64_t)sizeof *u;
    field.low[0] = field.low[1] = field.high[0] = field.high[1] = 1;
    hs_exchange_init(&how);
    how.strategy = "ordered/p2p";
    check(hs_exchange_create(grid, &field, 1, &how, &halo));
    for (j = 0; j < ny; ++j)
      for (i = 0; i < nx; ++i) u[(j + 1) * row + i + 1] = (double)(100 * (own.lo[1] + j) + own.lo[0] + i);
    check(hs_exchange_run(halo, 0));
    for (j = -1; j <= ny; ++j)
      for (i = -1; i <= nx; ++i)
        wrong += u[(j + 1) * row + i + 1] != (double)(100 * ((own.lo[1] + j + 20) % 20) + (own.lo[0] + i + 30) % 30);
    if (hs_exchange_start_on(halo, 0, NULL) != HS_USAGE) return 1; /* no device works on it */
    wrong += wrong_on_device(grid, field, &own);
    printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
    for (i = 0; i < (ny + 2) * row; ++i) u[i] = 1;
    check(hs_exchange_accumulate(halo, 0)); /* each point gets the values of the halos that hold it */
    if (u[row + 1] != (1 + 1) * (1 + 1) || u[2 * row + 2] != 1 || u[0] != 0) return 1;
    check(hs_exchange_start_accumulate(halo, 0));
    check(hs_exchange_finish(halo));
    if (u[row + 1] != 4) return 1; /* only zeros were added */
    check(hs_exchange_report(halo, &report));
    hs_exchange_free(halo);

    if (wrong_columns(cart, size) || wrong_handles(grid, &field, rank) || wrong_communicators(rank, size)) return 1;
    if (wrong_addresses(grid, field, u, (size_t)((ny + 2) * row) * sizeof *u)) return 1;
    if (wrong_sizes(grid, field) || wrong_edges(size) || wrong_sphere(rank, size)) return 1;
    if (wrong_parts(grid, field, u, (size_t)((ny + 2) * row))) return 1;
    if (wrong_sums(grid, field, u, (size_t)((ny + 2) * row), rank)) return 1;
    how.guard = 1;
    check(hs_exchange_create(grid, &field, 1, &how, &halo));
    check(hs_exchange_run(halo, 0));
    check(hs_exchange_require_fresh(halo, 1, 0));
    check(hs_exchange_changed(halo, 0, 0));
    if (u[0] == u[0] || hs_exchange_require_fresh(halo, 1, 0) != HS_USAGE) return 1; /* NaN */
    check(hs_exchange_check_clean(halo, 0));
    u[row + 1] += u[row];
    if (hs_exchange_check_clean(halo, 0) != HS_USAGE) return 1;
    hs_exchange_free(halo);
    how.guard = 0;

    field.number_bytes = 3; /* no number has this length */
    check(hs_exchange_create(grid, &field, 1, &how, &halo));
    if (hs_exchange_accumulate(halo, 0) != HS_USAGE) return 1;
    check(hs_exchange_run(halo, 0));
    hs_exchange_free(halo);
    field.number_bytes = 0;

    field.low[0] = -1; /* no number of layers */
    if (hs_exchange_create(grid, &field, 1, &how, &halo) != HS_USAGE || halo != NULL) return 1;
    field.low[0] = 1;
    how.strategy = "ordered/p2q";
    if (hs_exchange_create(grid, &field, 1, &how, &halo) != HS_USAGE || halo != NULL) return 1;
    if (hs_exchange_create(grid, NULL, 1, NULL, &halo) != HS_USAGE) return 1;
    if (hs_exchange_create(NULL, &field, 1, NULL, &halo) != HS_USAGE) return 1;
    if (hs_exchange_start(NULL, 0) != HS_USAGE) return 1;
    field.first = NULL;
    if (hs_exchange_create(grid, &field, 1, NULL, &halo) != HS_USAGE) return 1;
    split.struct_size = 4;
    {
      hs_grid* other = NULL;
      if (hs_grid_create(cart, &split, &other) != HS_USAGE || other != NULL) return 1;
    }
    field.first = &first;
    how.strategy = "ordered/p2p";
    check(hs_exchange_create(grid, &field, 1, &how, &halo));
    free(u);
  }
  MPI_Comm_free(&cart);
  MPI_Finalize();
  if (!refused_with(hs_exchange_run(halo, 0), "MPI_Finalize") ||
      !refused_with(hs_exchange_finish(halo), "MPI_Finalize") ||
      !refused_with(hs_exchange_accumulate(halo, 0), "MPI_Finalize") ||
      !refused_with(hs_grid_agree(grid, 0, ""), "MPI") || !refused_with(hs_end_job(""), "MPI"))
    return 1;
  check(hs_exchange_free(halo)); /* MPI's objects of it have ended with MPI */
  check(hs_grid_free(grid));
  return hs_grid_free(grid) == HS_USAGE ? 0 : 1;
}
