/* From an array of Fortran, as compilers describe it to C, to a field of an exchange. */
#include <ISO_Fortran_binding.h>
#include <stdio.h>

#include "haloscope/exchange.h"

/* Bytes of each number of a point; -1 where it is not made of numbers. */
static int32_t number_bytes(const CFI_cdesc_t* array) {
  switch (array->type & 0xff) {
    case CFI_type_Integer:
    case CFI_type_Real:
      return (int32_t)array->elem_len;
    case CFI_type_Complex:
      return (int32_t)(array->elem_len / 2);
    default:
      return -1;
  }
}

static const char* name_of_type(const CFI_cdesc_t* array) {
  switch (array->type & 0xff) {
    case CFI_type_Integer:
      return "integer";
    case CFI_type_Logical:
      return "logical";
    case CFI_type_Real:
      return "real";
    case CFI_type_Complex:
      return "complex";
    case CFI_type_Character:
      return "character";
    default:
      return "derived type";
  }
}

/* The type of an array's elements, for comparisons and messages, as "real of 8 bytes". Derived types differ by their
 * bytes alone.
 * text  out, of `size` characters. */
void hs_fortran_type(const CFI_cdesc_t* array, char* text, int32_t size) {
  snprintf(text, (size_t)size, "%s of %lld bytes", name_of_type(array), (long long)array->elem_len);
}

/* Describe `array`, whose last `dims` axes are those of the grid; axes before them are components of a point.
 * extent  out: points in x, y, z, halo included
 * first   out: address of the first owned point. `field` points to it.
 * text    out: what is wrong, of `size` characters. Returns HS_OK or HS_USAGE. */
hs_status hs_fortran_field(const CFI_cdesc_t* array, int32_t dims, const int32_t low[3], const int32_t high[3],
                           int32_t centring, void** first, hs_field* field, int64_t extent[3], char* text, int32_t size) {
  const int components = array->rank - dims;
  int64_t step = (int64_t)array->elem_len;
  int d;
  if (array->base_addr == NULL) { /* an array without elements has an address, too */
    snprintf(text, (size_t)size, "an array is not allocated, or a pointer points to nothing; allocate it first");
    return HS_USAGE;
  }
  if (dims < 1 || components < 0) {
    snprintf(text, (size_t)size, "an array of rank %d was added to an exchange on a grid of %d dimensions; its rank is %d, "
             "or more where its first axes are components of a point", (int)array->rank, (int)dims, (int)dims);
    return HS_USAGE;
  }
  for (d = 0; d < components; ++d) {
    if (array->dim[d].extent > 1 && array->dim[d].sm != step) {
      snprintf(text, (size_t)size, "axis %d of an array holds components of a point and is not contiguous; add each component "
               "as an array of its own", d + 1);
      return HS_USAGE;
    }
    step *= array->dim[d].extent;
  }
  if (step > INT32_MAX) {
    snprintf(text, (size_t)size, "a point of an array has %lld bytes, and at most %ld are possible; add its components as "
             "arrays of their own", (long long)step, (long)INT32_MAX);
    return HS_USAGE;
  }
  field->element_bytes = (int32_t)step;
  field->type = (array->type & 0xff) == CFI_type_Integer ? HS_TYPE_INTEGER : HS_TYPE_REAL;
  field->centring = centring;
  field->name = NULL;
  field->number_bytes = number_bytes(array);
  *first = array->base_addr;
  field->first = first;
  for (d = 0; d < 3; ++d) {
    const int used = d < dims;
    extent[d] = used ? array->dim[components + d].extent : 1;
    field->stride[d] = used ? array->dim[components + d].sm : step;
    field->low[d] = used ? low[d] : 0;
    field->high[d] = used ? high[d] : 0;
    *first = (char*)*first + field->low[d] * field->stride[d];
  }
  return HS_OK;
}
