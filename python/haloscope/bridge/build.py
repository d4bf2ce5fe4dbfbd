"""Locations of the compiled parts of Haloscope: a build directory, an installed tree, or the build of the checkout."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from haloscope import errors
from haloscope.errors import UnavailableError

LIBRARY = "libhaloscope_bridge.so"
EXCHANGE_LIBRARY = "libhaloscope_exchange.so"
EXCHANGE_ABI_LIBRARY = "libhaloscope_exchange_abi.so"  # for the standard ABI of MPI
RANK_PROGRAM = "haloscope-rank"
DELAY_LINE = "haloscope-delay-line"
HEADERS = ("include/haloscope", "share/haloscope", "src/bindings/python")  # folders, installed or of sources
ERROR_OUTPUT = 2  # file descriptor: sys.stderr need not be a file

_PACKAGE = Path(__file__).resolve().parents[1]
_CHECKOUT = _PACKAGE.parents[1]


@dataclass(frozen=True)
class Root:
    """A folder that may hold built files, and the file that points to it, whose writers control the files found there.

    A folder that the user names has no such file: all of its contents are trusted.
    """

    folder: Path
    leader: Path | None = None


def python(*words: str) -> list[str]:
    """Return the command of this interpreter with some words. It imports nothing from the current folder."""
    return [sys.executable, "-P", *words]


def roots() -> Iterator[Root]:
    """Yield the folders to search, best first: $HALOSCOPE_BUILD (only it, when set), the tree that this package is
    installed in, the tree of the program on PATH, the build of the checkout that this package is in."""
    if os.environ.get("HALOSCOPE_BUILD"):
        yield Root(Path(os.environ["HALOSCOPE_BUILD"]))
        return
    own = _PACKAGE / "__init__.py"
    yield from (Root(tree, own) for tree in _installed_trees() if (tree / HEADERS[0]).is_dir())
    on_path = shutil.which(RANK_PROGRAM)
    if on_path:
        program = Path(on_path).resolve()
        yield Root(program.parent.parent, program)
    if _PACKAGE.parent.name == "python" and (_CHECKOUT / "CMakeLists.txt").exists():
        yield Root(_CHECKOUT / "build" / "release", own)


def _installed_trees() -> list[Path]:
    """Return the trees that may hold this package: the package in a wheel, PREFIX of PREFIX/lib/python3/site-packages.

    Debian's Python puts packages into PREFIX/local/lib, and CMake installs into PREFIX.
    """
    site = _PACKAGE.parent
    if site.name not in ("site-packages", "dist-packages") or not site.parents[1].name.startswith("lib"):
        return [_PACKAGE]
    prefix = site.parents[2]
    return [_PACKAGE, prefix, *([prefix.parent] if prefix.name == "local" else [])]


def _find(patterns: tuple[str, ...], name: str, how: str = "'make build'") -> tuple[Path, Root]:
    """Return a file and its root. Raises UnavailableError without such a file, or where others can change it."""
    places = list(roots())
    for root in places:
        for pattern in patterns:
            found = sorted(root.folder.glob(pattern))
            if found:
                _refuse_of_others(found[0], root)
                return found[0], root
    looked_in = " or ".join(str(root.folder) for root in places) or _PACKAGE
    raise UnavailableError(
        f"{name} was not found in {looked_in}; "
        f"build it with {how}, or point HALOSCOPE_BUILD at a build directory or an installed tree"
    )


def _refuse_of_others(found: Path, root: Root) -> None:
    """Raise UnavailableError for a file that users can change who cannot change the file that points to it."""
    if not root.leader:
        return
    path, shared = found.resolve(), root.leader.resolve().parents
    for place in (path, *(folder for folder in path.parents if folder not in shared)):
        fault = _fault_of(place.stat(), root.leader.stat())
        if fault:
            raise UnavailableError(
                f"{found} is not used: {place} {fault}; give it to yourself alone (chown, chmod go-w), "
                f"or set HALOSCOPE_BUILD={root.folder} if you trust it"
            )


def _fault_of(state: os.stat_result, leader: os.stat_result) -> str:
    """Return the reason why users besides its leader's, this one and root can change a path; "" if none can."""
    if state.st_uid not in (os.geteuid(), 0, leader.st_uid):
        return f"belongs to another user ({state.st_uid})"
    if stat.S_ISDIR(state.st_mode) and state.st_mode & stat.S_ISVTX:
        return ""  # where nobody can rename files of others
    alike = leader.st_mode if state.st_gid == leader.st_gid else leader.st_mode & ~stat.S_IWGRP
    return "can be changed by other users" if state.st_mode & ~alike & (stat.S_IWGRP | stat.S_IWOTH) else ""


def library(name: str = LIBRARY) -> Path:
    """Return the path of a C library: the library of this package, or EXCHANGE_LIBRARY, EXCHANGE_ABI_LIBRARY.

    Raises UnavailableError when it is not built.
    """
    return _find_library(name)[0]


def _find_library(name: str) -> tuple[Path, Root]:
    how = ["-DHALOSCOPE_MPI_ABI=ON, on an MPI that has mpicc_abi"] if name == EXCHANGE_ABI_LIBRARY else []
    return _find((name, f"lib*/{name}", f"lib/*/{name}"), f"the C library {name}", *how)


_own_program: Path | None = None  # a program with its own apps


def use_rank_program(path: Path) -> None:
    """Make `rank_program` return a program that calls `haloscope::rank_main` with its own apps."""
    global _own_program  # noqa: PLW0603 (set once, before anything runs)
    _own_program = path


def rank_program() -> Path:
    """Return the path of the MPI program that ranks run: `haloscope-rank`, or the one of `use_rank_program`.

    Raises UnavailableError when nothing is built.
    """
    return _own_program or built_rank_program()


def built_rank_program() -> Path:
    """Return the path of `haloscope-rank`. Raises UnavailableError when nothing is built."""
    return _find((RANK_PROGRAM, f"bin/{RANK_PROGRAM}"), f"the MPI program {RANK_PROGRAM}")[0]


def delay_line() -> Path:
    """Return the path of `haloscope-delay-line`, for emulated clusters. Raises UnavailableError without it."""
    return _find((DELAY_LINE, f"bin/{DELAY_LINE}"), f"the program {DELAY_LINE}")[0].resolve()


def header(name: str) -> Path:
    """Return the path of a C header: in the library's installed tree, else in the sources that it is built from.

    name: status.h, exchange.h, bridge.h. Raises UnavailableError where it is in neither.
    """
    library, root = _find_library(LIBRARY)
    for place in (root.folder, _sources_of(root.folder), _CHECKOUT):
        for folder in HEADERS:
            if (path := place / folder / name).exists():
                return path
    raise UnavailableError(f"{name} was not found near {library}; install Haloscope again, or set HALOSCOPE_BUILD")


def _sources_of(build: Path) -> Path:
    """Return the checkout that a build folder was made from, as recorded there by CMake; by default this one."""
    cache = build / "CMakeCache.txt"
    text = cache.read_text() if cache.exists() else ""
    found = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.+)$", text, re.MULTILINE)
    return Path(found[1]) if found else _CHECKOUT


def mpi() -> str:
    """Return the MPI that the libraries were built for, as "MPICH 5.0.2"; "" where that is unknown."""
    places = [header("status.h").with_name("which_mpi.h"), library().parent / "generated" / "haloscope" / "which_mpi.h"]
    text = next((path.read_text() for path in places if path.exists()), "")
    found = re.search(r'#define HS_BUILT_FOR_THIS "(.*)"', text)
    return found[1] if found else ""


def preset_folder(preset: str) -> Path:
    """Return the build folder of one of the checkout's CMake presets, built or not."""
    return _CHECKOUT / "build" / preset


def build_preset(preset: str, *targets: str) -> Path:
    """Fetch the libraries of one of the checkout's CMake presets, build targets there and return the build's folder.

    The first call takes minutes. Raises UnavailableError where the libraries are unavailable, or without a checkout.
    """
    script = _CHECKOUT / "scripts" / "other_mpi.sh"
    if not script.exists():
        raise UnavailableError(
            f"{script}, which fetches the libraries of '{preset}', does not exist; use a checkout of Haloscope"
        )
    done = subprocess.run([script, preset, *targets], check=False, cwd=_CHECKOUT, stdout=ERROR_OUTPUT)
    if done.returncode == errors.UNAVAILABLE:
        raise UnavailableError(f"'scripts/other_mpi.sh {preset}' lacks a requirement; the reason is printed above")
    if done.returncode:
        raise errors.HaloscopeError(f"'scripts/other_mpi.sh {preset} {' '.join(targets)}' did not build")
    return preset_folder(preset)
