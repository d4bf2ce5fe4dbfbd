/* A restart in HDF5 on any MPI and any number of ranks, with the serial library of HDF5: rank 0 creates the dataset,
 * all ranks write and read its bytes. usage: hdf5 FILE */
#include <haloscope/exchange.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

static int rank;

static void check(hs_status status) {
  if (status == HS_OK) return;
  printf("rank %d: %s\n", rank, hs_last_error());
  exit(1);
}

/* Returns the byte at which a dataset of doubles begins, which it creates where `create` is set. */
static int64_t offset_of(const char* path, const char* name, const hsize_t* shape, int create) {
  hid_t file = create ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)
                      : H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  hid_t set;
  int64_t offset;
  if (create) {
    hid_t space = H5Screate_simple(2, shape, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(how, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(how, H5D_FILL_TIME_NEVER);
    set = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    H5Pclose(how);
    H5Sclose(space);
  } else {
    set = H5Dopen2(file, name, H5P_DEFAULT);
  }
  offset = (int64_t)H5Dget_offset(set);
  H5Dclose(set);
  H5Fclose(file);
  return offset;
}

/* Reads a dataset with HDF5. Returns true if it holds the numbers of its points. */
static int right_for_hdf5(const char* path, const char* name, int points) {
  double* all = malloc(sizeof(double) * (size_t)points);
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), set = H5Dopen2(file, name, H5P_DEFAULT);
  int n, right = H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0;
  for (n = 0; n < points; ++n) right = right && all[n] == n;
  H5Dclose(set);
  H5Fclose(file);
  free(all);
  return right;
}

int main(int argc, char** argv) {
  const int nx = 7, ny = 11;
  const hsize_t shape[2] = {11, 7};
  hs_grid_options options;
  hs_grid* grid = NULL;
  hs_box own;
  hs_field field;
  void* first;
  int i, j, right = 1;
  int64_t offset = 0;
  double* u;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  hs_grid_init(&options);
  options.dims = 2;
  options.cells[0] = nx;
  options.cells[1] = ny;
  check(hs_grid_create(MPI_COMM_WORLD, &options, &grid));
  check(hs_grid_owned(grid, &own));
  const int mx = (int)(own.hi[0] - own.lo[0]), my = (int)(own.hi[1] - own.lo[1]);
  const int x0 = (int)own.lo[0], y0 = (int)own.lo[1];
  u = malloc(sizeof(double) * (size_t)(mx * my + 1));
  hs_field_init(&field);
  field.name = "u";
  field.element_bytes = sizeof(double);
  field.stride[0] = sizeof(double);
  field.stride[1] = (int64_t)sizeof(double) * mx;
  first = u;
  field.first = &first;
  for (j = 0; j < my; ++j)
    for (i = 0; i < mx; ++i) u[j * mx + i] = (y0 + j) * nx + x0 + i;

  if (rank == 0) offset = offset_of(argv[1], "u", shape, 1);
  MPI_Bcast(&offset, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  check(hs_grid_write_at(grid, &field, argv[1], offset));

  for (i = 0; i < mx * my; ++i) u[i] = -1;
  if (rank == 0) right = right_for_hdf5(argv[1], "u", nx * ny), offset = offset_of(argv[1], "u", shape, 0);
  MPI_Bcast(&offset, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  check(hs_grid_read_at(grid, &field, argv[1], offset));
  for (j = 0; j < my; ++j)
    for (i = 0; i < mx; ++i) right = right && u[j * mx + i] == (y0 + j) * nx + x0 + i;
  printf("rank %d: %s\n", rank, right ? "right" : "wrong");
  check(hs_grid_free(grid));
  free(u);
  MPI_Finalize();
  return !right;
}
