/* Fields of an exchange from arrays of Fortran, as compilers describe them to C. */
#include <ISO_Fortran_binding.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "haloscope/exchange.h"

/* Bytes of each number of a point; -1 where a point does not consist of numbers. */
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

static const char derived[] = "derived type";

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
      return derived;
  }
}

/* The type of an array's elements, for comparisons and messages, as "real of 8 bytes". Derived types differ by their
 * bytes alone.
 * text  out, of `size` characters. */
void hs_fortran_type(const CFI_cdesc_t* array, char* text, int32_t size) {
  snprintf(text, (size_t)size, "%s of %lld bytes", name_of_type(array), (long long)array->elem_len);
}

/* Describes `array`, whose last `dims` axes are the grid's; axes before them are components of a point. The layers of
 * `field` stay.
 * room    layers of the array below its owned points
 * extent  out: points in x, y, z, halo included
 * first   out: address of the first owned point. `field` points to it.
 * text    out: the fault, of `size` characters. Returns HS_OK or HS_USAGE. */
hs_status hs_fortran_field(const CFI_cdesc_t* array, int32_t dims, const int32_t room[3], int32_t centring,
                           void** first, hs_field* field, int64_t extent[3], char* text, int32_t size) {
  const int components = array->rank - dims;
  int64_t step = (int64_t)array->elem_len;
  int d;
  if (array->base_addr == NULL) { /* an array without elements has an address, too */
    snprintf(text, (size_t)size, "an array is not allocated, or a pointer is not associated; allocate it first");
    return HS_USAGE;
  }
  if (array->rank > 0 && array->dim[array->rank - 1].extent < 0) {
    snprintf(text, (size_t)size,
             "an array of assumed size has no last extent; declare it with one, or name it by its bounds: u(:, 1:n)");
    return HS_USAGE;
  }
  if (dims < 1 || components < 0) {
    snprintf(text, (size_t)size,
             "an array of rank %d was added to an exchange on a grid of %d dimensions; its rank is %d, "
             "or more where its first axes are components of a point",
             (int)array->rank, (int)dims, (int)dims);
    return HS_USAGE;
  }
  if (components == 0 && name_of_type(array) == derived && step > 0 && array->dim[0].extent > 1 &&
      array->dim[0].sm % step != 0) {
    snprintf(text, (size_t)size,
             "points of a derived type have %lld bytes and lie %lld bytes apart, as in a class() array of an extended "
             "type, whose own components would stay; name the array within select type, or add each component",
             (long long)step, (long long)array->dim[0].sm);
    return HS_USAGE;
  }
  for (d = 0; d < components; ++d) {
    if (array->dim[d].extent > 1 && array->dim[d].sm != step) {
      snprintf(text, (size_t)size,
               "axis %d of an array holds components of a point and is not contiguous; add each component "
               "as a separate array",
               d + 1);
      return HS_USAGE;
    }
    step *= array->dim[d].extent;
  }
  if (step > INT32_MAX) {
    snprintf(text, (size_t)size,
             "a point of an array has %lld bytes, and at most %ld are possible; add its components as "
             "separate arrays",
             (long long)step, (long)INT32_MAX);
    return HS_USAGE;
  }
  field->struct_size = sizeof *field;
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
    if (!used) field->low[d] = field->high[d] = 0;
    if (used) *first = (char*)*first + room[d] * field->stride[d];
  }
  return HS_OK;
}

/* The memory of an array: `begin`, and its number of bytes. 0 bytes where its points are not contiguous. */
static int64_t bytes_of(const hs_field* field, const int32_t room[3], const int64_t extent[3], const void* first,
                        const char** begin) {
  int64_t bytes = field->element_bytes;
  int d;
  *begin = (const char*)first;
  for (d = 0; d < 3; ++d) {
    if (extent[d] > 1 && field->stride[d] != bytes) return 0;
    *begin -= room[d] * field->stride[d];
    bytes *= extent[d];
  }
  return bytes;
}

/* True if some of the memory is unmapped: large blocks return to the system when they are freed. */
static int is_unmapped(const char* begin, int64_t bytes) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)begin / page * page;
  return msync((void*)first, (size_t)((uintptr_t)begin + (uintptr_t)bytes - first), MS_ASYNC) != 0 && errno == ENOMEM;
}

/* True if the host can read an array, so that hs_fortran_is_freed() can check it: memory of a device may not be
 * mapped. */
int32_t hs_fortran_is_on_host(const CFI_cdesc_t* array) {
  return array->base_addr != NULL && !is_unmapped((const char*)array->base_addr, 1);
}

/* True if a described array has been freed since, as the copies are that compilers pass in place of some arrays: 1
 * where its memory is unmapped, or the allocator returns it again. 0 also for memory that has been reused since, and
 * for arrays whose points are not contiguous, which are not copies. Writes to no memory of the program. */
int32_t hs_fortran_is_freed(const hs_field* field, const int32_t room[3], const int64_t extent[3], const void* first) {
  enum { most = 256, few = 4, many_bytes = 1 << 26 };
  const char* begin;
  const int64_t bytes = bytes_of(field, room, extent, first, &begin);
  void* volatile blocks[most]; /* a compiler may remove blocks that are never written to */
  const char* block = begin;
  int found = 0, count = 0;
  if (bytes <= 0) return 0;
  if (is_unmapped(begin, bytes)) return 1;
  while (!found && block != NULL && count < most && (count < few || count * bytes < many_bytes)) {
    blocks[count] = malloc((size_t)bytes);
    block = blocks[count++];
    found = block != NULL && block < begin + bytes && begin < block + bytes;
  }
  while (count > 0) free(blocks[--count]);
  return found;
}
