/* The openings of openings_without_memory_c, through the C interface. */
#include <haloscope/exchange.h>
#include <stdio.h>
#include <stdlib.h>

#include "points.h"

/* 1: right, 0: wrong, -1: refused. */
static int exchange_on(const hs_grid* grid, const char* strategy, double* memory, int64_t row, const hs_box* own,
                       hs_exchange** halo) {
  hs_exchange_options how;
  hs_field field;
  void* first = memory + row + 1;
  int step, right = 1;
  hs_field_init(&field);
  field.first = &first;
  field.stride[0] = sizeof *memory;
  field.stride[1] = row * (int64_t)sizeof *memory;
  field.low[0] = field.low[1] = field.high[0] = field.high[1] = 1;
  hs_exchange_init(&how);
  how.strategy = strategy;
  if (hs_exchange_create(grid, &field, 1, &how, halo) != HS_OK) return -1;
  for (step = 0; step < 3; ++step) {
    visit(first, row, own, 0, 1);
    if (hs_exchange_run(*halo, 0) != HS_OK) return -1;
    right = right && visit(first, row, own, 1, 0);
  }
  return hs_exchange_accumulate(*halo, 0) != HS_OK ? -1 : right;
}

void open_by_binding(int comm, const char* strategy, char* text) {
  hs_grid_options split;
  hs_grid* grid = NULL;
  hs_exchange* halo = NULL;
  hs_box own;
  double* memory = NULL;
  int64_t row;
  int found = -1;
  hs_grid_init(&split);
  split.dims = 2;
  split.cells[0] = 10, split.cells[1] = 12;
  split.periodic[0] = split.periodic[1] = 1;
  if (hs_grid_create_f(comm, &split, &grid) == HS_OK && hs_grid_owned(grid, &own) == HS_OK) {
    row = own.hi[0] - own.lo[0] + 2;
    memory = calloc((size_t)(row * (own.hi[1] - own.lo[1] + 2)), sizeof *memory);
    found = exchange_on(grid, strategy, memory, row, &own, &halo);
  }
  if (found < 0)
    snprintf(text, 1000, "refused: %s", hs_last_error());
  else
    snprintf(text, 1000, "%s", found ? "right" : "wrong");
  if (hs_exchange_free(halo) != HS_OK || hs_grid_free(grid) != HS_OK)
    snprintf(text, 1000, "cannot be freed: %s", hs_last_error());
  free(memory);
}
