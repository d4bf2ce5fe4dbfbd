"""The library of exchanges for the MPI that mpi4py runs on, and its collective calls.

The package makes collective calls only through the library, which checks them, see `comm/mpi_call.hpp`, and never
through mpi4py. Local calls of mpi4py are `checked`, in work that ranks agree on.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from haloscope.arguments import as_problem, shown
from haloscope.bridge import build, capi
from haloscope.bridge.once import once
from haloscope.errors import OK, HaloscopeError, UnavailableError, UsageError

if TYPE_CHECKING:
    from mpi4py import MPI

_LONGEST = 2000  # bytes of a text that all ranks get
_MPI_TYPES = "typedef void* MPI_Comm;\n"  # no call below passes an MPI_Comm


def library_name() -> str:
    """Return the name of the exchange library for mpi4py's MPI: for the standard ABI, or for one MPI."""
    from mpi4py import MPI

    version = getattr(MPI, "Get_abi_version", lambda: (-1, -1))()  # new in mpi4py 4.1
    return build.EXCHANGE_ABI_LIBRARY if version[0] > 0 else build.EXCHANGE_LIBRARY


@once
def library() -> tuple:
    """Load the exchange library once; return (ffi, library). Raises UnavailableError for a library of another MPI."""
    name = library_name()
    if name == build.EXCHANGE_LIBRARY:
        require_its_mpi(build.mpi())
    return capi.open_library(name, "exchange.h", _MPI_TYPES)


def require_its_mpi(built_for: str) -> None:
    """Raise UnavailableError where mpi4py runs on an MPI of another family than the library's. Local."""
    from mpi4py import MPI

    try:
        vendor, version = MPI.get_vendor()
    except MPI.Exception:  # the library repeats the test with checked calls
        return
    if not built_for or (vendor == "Open MPI") == built_for.startswith("Open MPI"):
        return
    raise UnavailableError(
        f"mpi4py ({MPI.__file__}) runs on {vendor} {'.'.join(map(str, version))}, but this Haloscope was built for "
        f"{built_for}: use an mpi4py for {built_for.rsplit(' ', 1)[0]}, or build Haloscope with mpicxx of {vendor}, "
        "or build it with HALOSCOPE_MPI_ABI=ON and mpi4py for the standard ABI (MPICC=mpicc_abi pip install "
        "--no-binary mpi4py mpi4py)"
    )


def call(function: str, *arguments: object) -> None:
    """Call a function of the library that returns a status; raise the error that it reports."""
    opened = library()
    capi.check(opened, getattr(opened[1], function)(*arguments))


def address(function: str) -> int:
    """Return the address of a function of the library, for compiled programs."""
    ffi, lib = library()
    return int(ffi.cast("intptr_t", ffi.addressof(lib, function)))


def refuse(function: str, handle: object, error: Exception) -> NoReturn:
    """Raise an error of this rank on all of them, by a function of the library that fails in place of another one."""
    problem = as_problem(error)
    with contextlib.suppress(HaloscopeError):
        call(function, handle, problem.exit_code, str(problem).encode("utf-8", "backslashreplace"))
    raise problem from (None if problem is error else error)


def handle_of(comm: MPI.Comm) -> int:
    """Return a communicator as an integer of Fortran, for calls of the library. Local.

    Raises UsageError after MPI_Finalize, where py2f() of Open MPI would end the job.
    """
    call("hs_require_mpi")
    return int(comm.py2f())


def member(comm: Any) -> tuple[int, int]:
    """Return this rank's number and the number of ranks. Local. Raises UsageError where no grid can be split."""
    from mpi4py import MPI

    if not isinstance(comm, MPI.Comm):
        raise UsageError(f"{shown(comm)} is not a communicator; pass one of mpi4py, as MPI.COMM_WORLD")
    found = library()[0].new("int32_t[2]")
    call("hs_member_f", handle_of(comm), found, found + 1)
    return found[0], found[1]


def agree(comm: MPI.Comm, name: str, work: Callable[[], Any], order: Callable[[], str] | None = None) -> Any:
    """Return the result of local work; where it raises on one rank, raise on all ranks, so that none waits.

    A rank whose work raises gets its error; the other ranks get its text. Cost: a reduction, with an order two.
    name: the object that all ranks make, "a grid" or "an exchange", for messages.
    order: called after the work; returns the order of axes of this rank's request, "C" or "F". Raises UsageError where
        ranks differ in it.
    """
    result, problem, axes = None, None, library()[0].NULL
    try:
        result = work()
        if order:
            axes = order().encode()
    except BaseException as error:
        problem = error
    ours = None if problem is None else as_problem(problem)
    status, message = (OK, "") if ours is None else (ours.exit_code, str(ours))
    try:
        call("hs_agree_f", handle_of(comm), name.encode(), status, message.encode("utf-8", "backslashreplace"), axes)
    except HaloscopeError:
        if ours is None:
            raise
    if problem is None or ours is None:
        return result
    if problem is ours or not isinstance(problem, Exception):  # an interrupt is raised unchanged
        raise problem
    raise ours from problem


def checked(function: Callable, *arguments: object) -> Any:
    """Return the result of a local call of mpi4py. Raises HaloscopeError with MPI's text where MPI refuses it.

    Call it in work that ranks agree on, since MPI may refuse it on some of them.
    """
    from mpi4py import MPI

    try:
        return function(*arguments)
    except MPI.Exception as refused:
        code, text = refused.Get_error_code(), refused.Get_error_string()
        raise HaloscopeError(f"mpi4py's {function.__qualname__} failed (MPI error {code}): {text}") from None


def gather(comm: MPI.Comm, name: str, numbers: Sequence[int]) -> np.ndarray:
    """Return the numbers of each rank, a row for each; all ranks pass the same count. Collective.

    name: as for agree().
    """
    ffi, _ = library()
    mine = np.array(numbers, "i8")
    found = np.empty((member(comm)[1], mine.size), "i8")
    here, all_of = (ffi.from_buffer("int64_t[]", array) for array in (mine, found))
    call("hs_gather_f", handle_of(comm), name.encode(), here, mine.size, all_of)
    return found


def mark(texts: Sequence[str]) -> int:
    """Return a 64-bit hash of texts, by which ranks compare them. Local."""
    digest = hashlib.blake2b("\n".join(texts).encode("utf-8", "backslashreplace"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def refuse_unlike_types(comm: MPI.Comm, types: Sequence[str], marks: np.ndarray, objects: str = "exchanges") -> None:
    """Raise UsageError on all ranks where two of them have fields of different types; C compares only bytes.

    types: of this rank's fields. marks: mark() of the types on each rank. objects: that the ranks make. Collective
    where types differ, else local.
    """
    if (marks == marks[0]).all():
        return
    encoded = ", ".join(types).encode("utf-8", "backslashreplace")[:_LONGEST]
    lengths = gather(comm, "an exchange", [len(encoded)])[:, 0]
    padded = encoded.ljust(-(-int(lengths.max()) // 8) * 8)
    texts = gather(comm, "an exchange", np.frombuffer(padded, "i8").tolist())
    other = int(np.argmax(marks != marks[0]))
    first, unlike = (texts[rank].tobytes()[: lengths[rank]].decode("utf-8", "replace") for rank in (0, other))
    raise UsageError(
        f"the ranks request different {objects}: types of the fields: {first} on rank 0, {unlike} on rank {other}; "
        "give all of them fields of the same types and components, in the same order"
    )


def end_job(text: str) -> None:
    """Print this rank's number and a text on standard error and end all ranks. Returns where MPI is not running."""
    library()[1].hs_end_job(text.encode())
