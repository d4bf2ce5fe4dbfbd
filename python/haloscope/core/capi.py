"""Calls into the C library. The declarations are those of `haloscope.h` itself, so they exist once."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cffi

from haloscope.core import build
from haloscope.core.once import once
from haloscope.errors import HaloscopeError, NotAvailable, UsageProblem

_ERRORS = {2: UsageProblem, 3: NotAvailable}

CData = Any  # a handle, struct, array or pointer: what cffi makes of the header has no types of its own


def declarations(header: str) -> str:
    """Return the text of the C header as cffi reads it: without preprocessor lines and C++ parts."""
    header = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", header, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^#.*\n", "", header, flags=re.MULTILINE)


def open_library(path: Path, cdef: str, header: Path) -> tuple:
    """Return (ffi, library) of a shared library. Raises NotAvailable when it cannot be loaded or is of another
    version.
    """
    ffi = cffi.FFI()
    ffi.cdef(cdef)
    try:
        lib = ffi.dlopen(str(path))
    except OSError as error:
        remedy = "build it again with 'make build'"
        if "libmpi" in str(error):  # which the library needs, and the loader does not find
            remedy = f"it was built for {build.mpi()}: install that, or add the folder of its libmpi to LD_LIBRARY_PATH"
        raise NotAvailable(f"{path} cannot be loaded ({error}); {remedy}") from None
    wanted, found = int(re.findall(r"#define HS_ABI (\d+)", header.read_text())[0]), lib.hs_abi()
    if wanted != found:
        raise NotAvailable(f"{path} has interface version {found}, {header} {wanted}; build it again")
    return ffi, lib


@once
def load() -> tuple:
    """Load the library once; return (ffi, library). Raises NotAvailable when it is missing or of another version."""
    header = build.header()
    return open_library(build.library(), declarations(header.read_text()), header)


def check(library: tuple, status: int) -> None:
    """Raise the error that the last call into a library reports."""
    ffi, lib = library
    if status != lib.HS_OK:
        raise _ERRORS.get(status, HaloscopeError)(ffi.string(lib.hs_last_error()).decode(errors="replace"))


@contextlib.contextmanager
def numbers_that_fit() -> Iterator[None]:
    """Raise UsageProblem where a number is too large for the C type that it is to become: in arguments, structs,
    arrays.
    """
    try:
        yield
    except OverflowError as error:
        raise UsageProblem(f"{error}; give a smaller number") from None


@numbers_that_fit()
def call(function: str, *arguments: object) -> None:
    """Call a C function that returns a status; raise the error it reports, UsageProblem for a number too large for
    it.
    """
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


def list_text(kind: str) -> str:
    """Return everything of one kind as JSON text: hs_list."""
    return result_text("hs_list", kind.encode())


def handle(function: str, kind: str, *arguments: object) -> CData:
    """Call `hs_..._create...`, whose last argument receives a handle; return it, freed when it is collected."""
    ffi, lib = load()
    result = ffi.new(f"{kind}**")
    call(function, *arguments, result)
    return ffi.gc(result[0], getattr(lib, f"{kind}_free"))


def filled(function: str, struct: str, *arguments: object) -> CData:
    """Call a function whose last argument is a struct to fill; return the struct."""
    result = load()[0].new(f"{struct}*")
    call(function, *arguments, result)
    return result


@functools.cache
def enumeration(prefix: str) -> tuple[str, ...]:
    """Return the names of a C enumeration in order of value: `HS_OP_` gives ("barrier", "post", ...)."""
    lib = load()[1]
    names = sorted((name for name in dir(lib) if name.startswith(prefix)), key=lambda name: getattr(lib, name))
    return tuple(name.removeprefix(prefix).lower() for name in names)


def value(prefix: str, name: str) -> int:
    """Return the number of one name of a C enumeration. Raises UsageProblem for an unknown name."""
    names = enumeration(prefix)
    if name not in names:
        raise UsageProblem(f"'{name}' is none of {', '.join(names)}")
    return names.index(name)
