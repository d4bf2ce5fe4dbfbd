/* Outcomes of calls of Haloscope's C interfaces.
 *
 *  - A call that can fail returns an hs_status; hs_last_error() then holds the text, for the calling thread.
 *  - `..._create` returns a handle that the caller frees with `..._free` (which accepts NULL).
 *  - A handle is a number, not an address. Every call recognises a handle that was freed, freed twice or never returned
 *    by a call, and fails with HS_USAGE; all copies of a handle end when one of them is freed.
 *  - Structs start with `struct_size`; `..._init` sets it and every default. So a program that was built with an older
 *    header runs with a newer library, which has members that the program lacks. Only hs_box and hs_seam have no size:
 *    they are elements of lists, and stay as they are.
 *    `..._init` is a macro, so that the size is the caller's; bindings call `..._init_sized` with the size of theirs.
 */
#ifndef HALOSCOPE_STATUS_H
#define HALOSCOPE_STATUS_H

#include <stdint.h>

/* The version of these interfaces; a library with another hs_abi() must not be called through this header. */
#define HS_ABI 10

#ifdef __cplusplus
extern "C" {
#endif

/* Outcome of a call; equal to the exit codes of Haloscope's programs. */
typedef int32_t hs_status;
enum {
  HS_OK = 0,
  HS_FAILED = 1,     /* a failure: out of memory, an internal fault */
  HS_USAGE = 2,      /* the request can never work: wrong value, unknown name, illegal combination */
  HS_UNAVAILABLE = 3 /* a legal request that this build does not support */
};

/* Returns the version of the library, "major.minor.patch". */
const char* hs_version(void);
/* Returns the HS_ABI that the library was built with. */
int32_t hs_abi(void);
/* Returns request, fault and remedy of this thread's last call that did not return HS_OK; else "". */
const char* hs_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
