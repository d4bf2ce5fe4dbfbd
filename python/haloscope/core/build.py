"""Where the compiled parts of Haloscope are: a build directory, an installed tree, or the checkout's own build."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from haloscope import errors
from haloscope.errors import NotAvailable

LIBRARY = "libhaloscope_c.so"
EXCHANGE_LIBRARY = "libhaloscope_exchange.so"
EXCHANGE_ABI_LIBRARY = "libhaloscope_exchange_abi.so"  # for the standard ABI of MPI
BUILT_WITH = {
    EXCHANGE_ABI_LIBRARY: "-DHALOSCOPE_MPI_ABI=ON, on an MPI that has mpicc_abi"
}  # what is not built by default
RANK_PROGRAM = "haloscope-rank"
DELAY_LINE = "haloscope-delay-line"
HEADER = Path("haloscope/haloscope.h")
ERROR_OUTPUT = 2  # file descriptor: sys.stderr need not be a file

_CHECKOUT = Path(__file__).resolve().parents[3]


def roots() -> Iterator[Path]:
    """Yield the places to look in, best first: $HALOSCOPE_BUILD (only it, when set), an install that holds this
    package or is on PATH, then the checkout's build directory."""
    if os.environ.get("HALOSCOPE_BUILD"):
        yield Path(os.environ["HALOSCOPE_BUILD"])
        return
    yield from (p for p in Path(__file__).resolve().parents if (p / "include" / HEADER).exists())
    on_path = shutil.which(RANK_PROGRAM)
    if on_path:
        yield Path(on_path).resolve().parent.parent
    yield _CHECKOUT / "build" / "release"


def _find(patterns: tuple[str, ...], what: str, how: str = "'make build'") -> Path:
    for root in roots():
        for pattern in patterns:
            found = sorted(root.glob(pattern))
            if found:
                return found[0]
    raise NotAvailable(
        f"{what} was not found in {' or '.join(map(str, roots()))}; "
        f"build it with {how}, or point HALOSCOPE_BUILD at a build directory or an installed tree"
    )


def library(name: str = LIBRARY) -> Path:
    """Return the path of a C library: that of plans, or EXCHANGE_LIBRARY, EXCHANGE_ABI_LIBRARY.

    Raises NotAvailable when it is not built.
    """
    how = ["-DHALOSCOPE_MPI_ABI=ON, on an MPI that has mpicc_abi"] if name == EXCHANGE_ABI_LIBRARY else []
    return _find((name, f"lib*/{name}", f"lib/*/{name}"), f"the C library {name}", *how)


_own_program: Path | None = None  # a program with its own apps


def use_rank_program(path: Path) -> None:
    """Have `rank_program` return a program that calls `haloscope::rank_main` with its own apps."""
    global _own_program  # noqa: PLW0603 (set once, before anything runs)
    _own_program = path


def rank_program() -> Path:
    """Return the path of the MPI program that ranks run: `haloscope-rank`, or the one of `use_rank_program`.

    Raises NotAvailable when nothing is built.
    """
    return _own_program or built_rank_program()


def built_rank_program() -> Path:
    """Return the path of `haloscope-rank`. Raises NotAvailable when nothing is built."""
    return _find((RANK_PROGRAM, f"bin/{RANK_PROGRAM}"), f"the MPI program {RANK_PROGRAM}")


def delay_line() -> Path:
    """Return the path of `haloscope-delay-line`, the network of emulated clusters. Raises NotAvailable when it is not built."""
    return _find((DELAY_LINE, f"bin/{DELAY_LINE}"), f"the program {DELAY_LINE}").resolve()


def header() -> Path:
    """Return the path of `haloscope.h`: of the installed tree that holds the library, else of the checkout."""
    places = [parent / "include" / HEADER for parent in library().resolve().parents][:4]
    for path in [*places, _CHECKOUT / "include" / HEADER]:
        if path.exists():
            return path
    raise NotAvailable(f"{HEADER} was not found near {library()}; install Haloscope again, or set HALOSCOPE_BUILD")


def mpi() -> str:
    """Return the MPI that the libraries were built for, as "MPICH 5.0.2"; "" where that is not known."""
    places = [header().with_name("which_mpi.h"), library().parent / "generated" / "haloscope" / "which_mpi.h"]
    text = next((path.read_text() for path in places if path.exists()), "")
    found = re.search(r'#define HS_BUILT_FOR_THIS "(.*)"', text)
    return found[1] if found else ""


def preset_folder(preset: str) -> Path:
    """Return the build folder of one of the checkout's CMake presets, built or not."""
    return _CHECKOUT / "build" / preset


def build_preset(preset: str, *targets: str) -> Path:
    """Fetch the libraries of one of the checkout's CMake presets, build targets there and return the build's folder.

    The first time takes minutes. Raises NotAvailable where the libraries cannot be had, or there is no checkout.
    """
    script = _CHECKOUT / "scripts" / "other_mpi.sh"
    if not script.exists():
        raise NotAvailable(f"there is no {script}, which fetches what '{preset}' needs; use a checkout of Haloscope")
    done = subprocess.run([script, preset, *targets], check=False, cwd=_CHECKOUT, stdout=ERROR_OUTPUT)
    if done.returncode == errors.UNAVAILABLE:
        raise NotAvailable(f"'scripts/other_mpi.sh {preset}' cannot get what it needs; its reason is above")
    if done.returncode:
        raise errors.HaloscopeError(f"'scripts/other_mpi.sh {preset} {' '.join(targets)}' did not build")
    return preset_folder(preset)
