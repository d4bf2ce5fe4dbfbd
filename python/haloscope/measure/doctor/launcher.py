"""The launcher and the MPI libraries: ranks, with and without mpi4py, must form one world of the requested size."""

from __future__ import annotations

import importlib.util
import re

from haloscope.bridge import build
from haloscope.errors import UNAVAILABLE, HaloscopeError
from haloscope.measure import answers, launch, probes
from haloscope.measure.doctor import check
from haloscope.measure.doctor.check import BROKEN, LAUNCHER_FIRST, NOT_HERE, OK, Check
from haloscope.records.text import count_of


def ask_launcher(ranks: int) -> tuple[int | None, str, str]:
    """Start the ranks and nothing more; return exit code (None: ended after LIMIT_S), output, error output."""
    words = [*launch.launcher_words(launch.mpiexec(), ranks, 1), str(build.rank_program())]
    return answers.ended_after(check.LIMIT_S, [*words, "--expect-ranks", str(ranks), "--probe", "start"])


def judge_launcher(ranks: int, code: int | None, printed: str, complaint: str) -> Check:
    """Judge whether mpiexec made one MPI_COMM_WORLD of the ranks. Names both MPI libraries."""
    starter = f"{launch.mpiexec()} ({mpiexec_version()})"
    library = f"haloscope-rank is built with {library_name()}"
    remedy = "use the mpiexec of the MPI that Haloscope was built with: set HALOSCOPE_MPIEXEC to its path"
    if code == 0 and answers.objects_of(printed):
        return Check("launcher", OK, f"{starter} starts one world of {count_of(ranks, 'rank')}; {library}")
    if worlds := re.findall(r"started with (\d+) rank\(s\) instead of", printed + complaint):
        text = f"{starter} starts {count_of(len(worlds), 'world')} of {count_of(int(worlds[0]), 'rank')}"
        return Check("launcher", BROKEN, f"{text} instead of one of {ranks}; {library}", remedy)
    how = f"gave no answer within {check.LIMIT_S:g} s" if code is None else f"ended with code {code}"
    last = " / ".join((printed + complaint).strip().splitlines()[-2:]) or "it printed nothing"
    return Check("launcher", BROKEN, f"{starter} {how}: {last}; {library}", remedy)


def mpiexec_version() -> str:
    """Return the name and version of mpiexec: "Hydra 5.0.2", "mpirun (Open MPI) 5.0.3"."""
    text = launch.output_of(launch.mpiexec(), "--version")
    if "hydra" in text.lower() and (version := re.search(r"Version:\s*(\S+)", text)):
        return f"Hydra {version[1]}"
    return next(filter(None, text.splitlines()), "of unknown make")


def library_name() -> str:
    """Return the MPI library that the ranks are linked to; its file if its name is unknown."""
    try:
        return _short(answers.information()["mpi_library"])
    except (HaloscopeError, ValueError):  # several worlds may have answered
        return str(probes.mpi_library())


def _short(library: str) -> str:
    """Return the name of an MPI library without the details of its build."""
    return " ".join(library.partition(",")[0].split())


# Rank 0 of each world prints the answer.
_MPI4PY = """
import json
import sys
from mpi4py import MPI
world = MPI.COMM_WORLD
answer = {"size": world.size, "library": MPI.Get_library_version().splitlines()[0]}
try:
    from haloscope import Grid
    Grid(world, (8 * world.size,))
except Exception as error:
    answer |= {"problem": str(error), "exit_code": getattr(error, "exit_code", 1)}
if world.rank == 0:
    sys.stdout.write(json.dumps(answer) + "\\n")  # print makes two writes of it where nothing is buffered
    sys.stdout.flush()
"""


def examine_mpi4py(ranks: int) -> Check:
    """Judge mpi4py if it is installed."""
    if not has_mpi4py():
        remedy = "only haloscope.Exchange needs it: pip install mpi4py"
        return Check("mpi4py", NOT_HERE, "mpi4py is not installed", remedy)
    return judge_mpi4py(ranks, *ask_mpi4py(ranks))


def has_mpi4py() -> bool:
    """Return whether mpi4py is installed for Haloscope's Python."""
    return importlib.util.find_spec("mpi4py") is not None


def ask_mpi4py(ranks: int) -> tuple[int | None, str, str]:
    """Start ranks of Python that make a grid of the library from mpi4py's communicator."""
    words = launch.launcher_words(launch.mpiexec(), ranks, 1)
    return answers.ended_after(check.LIMIT_S, [*words, *build.python("-c", _MPI4PY)])


def judge_mpi4py(ranks: int, code: int | None, printed: str, complaint: str) -> Check:
    """Judge whether mpi4py makes one world under this mpiexec and runs on the library's MPI."""
    remedy = (
        "build mpi4py with the MPI of Haloscope: MPICC=mpicc pip install --no-binary mpi4py --force-reinstall mpi4py"
    )
    worlds = answers.objects_of(printed)
    if not worlds:
        how = f"gave no answer within {check.LIMIT_S:g} s" if code is None else f"ended with code {code}"
        last = next(filter(None, reversed(complaint.splitlines())), "it printed nothing")
        return Check("mpi4py", BROKEN, f"python with mpi4py {how}: {last}", remedy)
    library = _short(worlds[0]["library"])
    if worlds[0]["size"] != ranks:
        found = f"{count_of(len(worlds), 'world')} of {count_of(worlds[0]['size'], 'rank')} instead of one of {ranks}"
        text = f"{found}: mpi4py runs on {library}"
        return Check("mpi4py", BROKEN, text, f"{LAUNCHER_FIRST}; if it is in order, {remedy}")
    if problem := worlds[0].get("problem"):
        if worlds[0].get("exit_code") == UNAVAILABLE:
            return Check("mpi4py", NOT_HERE, problem)
        return Check("mpi4py", BROKEN, f"mpi4py runs on {library}: {problem}", remedy)
    return Check("mpi4py", OK, f"runs on the library's MPI, {library}")
