/* The points of a periodic grid of 10 by 12 cells, which the programs under faults exchange, in an array with halos. */
#ifndef HALOSCOPE_TEST_POINTS_H
#define HALOSCOPE_TEST_POINTS_H

#include <haloscope/exchange.h>
#include <stdint.h>

static double value_of(int64_t x, int64_t y) { return (double)(100 * ((y + 12) % 12) + (x + 10) % 10); }

/* True if all points up to `margin` layers beyond the owned ones are right; sets them first on request. */
static int visit(double* first, int64_t row, const hs_box* own, int64_t margin, int set) {
  int64_t x, y;
  int right = 1;
  for (y = own->lo[1] - margin; y < own->hi[1] + margin; ++y)
    for (x = own->lo[0] - margin; x < own->hi[0] + margin; ++x) {
      double* const at = first + (y - own->lo[1]) * row + x - own->lo[0];
      if (set) *at = value_of(x, y);
      right = right && *at == value_of(x, y);
    }
  return right;
}

#endif
