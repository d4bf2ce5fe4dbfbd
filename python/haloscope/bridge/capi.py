"""Calls into the C libraries, by the declarations of their headers."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cffi

from haloscope.bridge import build
from haloscope.bridge.json_values import encoded
from haloscope.bridge.once import once
from haloscope.errors import HaloscopeError, UnavailableError, UsageError

if TYPE_CHECKING:  # importing NumPy takes long
    import numpy as np

_ERRORS = {2: UsageError, 3: UnavailableError}

CData = Any  # a handle, struct, array or pointer: objects of cffi have no static types


def declarations(header: str) -> str:
    """Return the text of the C header as cffi reads it: without preprocessor lines and C++ parts."""
    header = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", header, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^#.*\n", "", header, flags=re.MULTILINE)


def open_library(name: str, header: str, types: str = "") -> tuple:
    """Return (ffi, library) of a shared library with the functions of status.h and of another header. Raises
    UnavailableError when it cannot be loaded or is of another version.

    types: further declarations that the header needs.
    """
    path, status_header = build.library(name), build.header("status.h")
    texts = [text.read_text() for text in (status_header, build.header(header))]
    ffi = cffi.FFI()
    ffi.cdef(types + "\n".join(map(declarations, texts)))
    try:
        lib = ffi.dlopen(str(path))
    except OSError as error:
        remedy = "build it again with 'make build'"
        if "libmpi" in str(error):  # which the library needs, and the loader does not find
            remedy = f"it was built for {build.mpi()}: install that, or add the folder of its libmpi to LD_LIBRARY_PATH"
        raise UnavailableError(f"{path} cannot be loaded ({error}); {remedy}") from None
    wanted, found = int(re.findall(r"#define HS_ABI (\d+)", texts[0])[0]), lib.hs_abi()
    if wanted != found:
        raise UnavailableError(f"{path} has interface version {found}, {status_header} {wanted}; build it again")
    return ffi, lib


@once
def load() -> tuple:
    """Load the library once; return (ffi, library). Raises as `open_library` does."""
    return open_library(build.LIBRARY, "bridge.h")


def check(library: tuple, status: int) -> None:
    """Raise the error that the last call into a library reported."""
    ffi, lib = library
    if status != lib.HS_OK:
        raise _ERRORS.get(status, HaloscopeError)(ffi.string(lib.hs_last_error()).decode(errors="replace"))


@contextlib.contextmanager
def numbers_that_fit() -> Iterator[None]:
    """Raise UsageError where a number is too large for its C type, in arguments, structs or arrays."""
    try:
        yield
    except OverflowError as error:
        raise UsageError(f"{error}; give a smaller number") from None


@numbers_that_fit()
def call(function: str, *arguments: object) -> None:
    """Call a C function that returns a status. Raises the error that it reports, UsageError for too large a number."""
    library = load()
    check(library, getattr(library[1], function)(*arguments))


def text(pointer: CData) -> str:
    """Return a C string as text."""
    found: bytes = load()[0].string(pointer)
    return found.decode()


def result_text(function: str, *arguments: object) -> str:
    """Call a C function whose last argument is `const char** result`; return the result."""
    result = load()[0].new("const char**")
    call(function, *arguments, result)
    return text(result[0])


def answer(function: str, request: object, *arguments: object) -> Any:
    """Call a function of the bridge with a request, which becomes JSON, and more arguments; return its result.

    request: bytes are passed as they are.
    """
    text = request if isinstance(request, bytes) else encoded(request)
    return json.loads(result_text(function, text, *arguments))


@functools.cache
def names(kind: str) -> tuple[str, ...]:
    """Return the names of one kind: hs_describe."""
    return tuple(answer("hs_describe", kind.encode()))


def numbers(count: int) -> tuple[np.ndarray, CData]:
    """Return a NumPy array of `count` 0s, and a C pointer to it."""
    import numpy as np

    array = np.zeros(count, np.int32)
    return array, load()[0].from_buffer("int32_t[]", array)
