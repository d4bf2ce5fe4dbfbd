"""One run of a user's MPI program in a separate folder, without a time limit by default."""

from __future__ import annotations

import contextlib
import math
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from haloscope import bridge, patience
from haloscope.errors import UnavailableError, UsageError
from haloscope.measure import launch
from haloscope.records.text import count_of

LAUNCHERS = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "srun", "aprun", "jsrun")
LAST_LINES = 6
_HYDRA_RULE = "=" * 20  # frames Hydra's own report of a rank that failed


@dataclass(frozen=True)
class Ended:
    """The end of one run of the program, and the folder of its files."""

    ranks: int
    folder: Path  # its working folder
    seconds: float
    returncode: int
    limit_s: float | None = None  # after which it was ended; None: it ended itself

    @property
    def failure(self) -> str:
        """The fault, "" without one."""
        if self.limit_s is not None:
            return f"not done after {self.limit_s:g} s, so it was ended"
        return f"failed, exit code {self.returncode}" if self.returncode else ""

    @property
    def printed(self) -> str:
        """Its standard output."""
        return self._read(".out")

    @property
    def last_lines(self) -> list[str]:
        """The last lines of its error output, or of its output if it printed no errors."""
        for text in (self._read(".err"), self.printed):
            lines = [line.rstrip() for line in text.partition(_HYDRA_RULE)[0].splitlines() if line.strip()]
            if lines:
                return lines[-LAST_LINES:]
        return ["it printed nothing"]

    def remove(self) -> None:
        """Delete its folder and its output."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for suffix in (".out", ".err"):
            _beside(self.folder, suffix).unlink(missing_ok=True)

    def _read(self, suffix: str) -> str:
        return _beside(self.folder, suffix).read_text(errors="replace")


def _beside(folder: Path, suffix: str) -> Path:
    return folder.with_name(folder.name + suffix)


def words_of(program: Sequence[str], ranks: int, process_grid: str, dims: int) -> list[str]:
    """Return the command line of a program on a number of ranks, its placeholders replaced.

    Raises UsageError if the program does not exist or the process grid has another number of ranks.
    """
    values = {"{ranks}": str(ranks), "{here}": str(Path.cwd())}
    if any(text in word for word in program for text in ("{grid}", "{px}", "{py}", "{pz}")):
        grid = bridge.process_grid(process_grid, ranks, [ranks] * dims)
        values["{grid}"] = "x".join(map(str, grid))
        values |= {f"{{p{axis}}}": str(blocks) for axis, blocks in zip("xyz", [*grid, 1, 1], strict=False)}
    placeholders = re.compile("|".join(map(re.escape, values)))
    first, *others = (placeholders.sub(lambda found: values[found[0]], word) for word in program)
    return [find_program(first), *others]


def mpiexec_of(path: str | None) -> Path:
    """Return the mpiexec at a path, or the one that Haloscope uses. Raises UnavailableError without one."""
    if path is None:
        return launch.mpiexec()
    if found := shutil.which(path):
        return Path(found).absolute()
    raise UnavailableError(f"--mpiexec '{path}' cannot be executed; give the path of an mpiexec")


def find_program(word: str) -> str:
    """Return the absolute path of a program, found as a shell finds it.

    Raises UsageError if it does not exist, and for a launcher, since the ranks are started here.
    """
    if Path(word).name in LAUNCHERS:
        raise UsageError(f"'{word}' starts ranks, and so does this command; write the program alone")
    if found := shutil.which(word):
        return str(Path(found).absolute())
    raise UsageError(f"cannot find the program '{word}', or it is not executable; give its path, as ./app")


def run(command: Sequence[str], ranks: int, folder: Path, mpiexec: Path, limit_s: float = math.inf) -> Ended:
    """Run a program on `ranks` ranks in `folder`, which exists; none of its processes is left running.

    Each rank has an equal share of the cores. The output goes to files next to the folder. limit_s: wall time after
    which all processes are ended. Until then `patience.ended` reports a run that takes long. Raises UnavailableError if
    mpiexec cannot be started.
    """
    words = [*launch.launcher_words(mpiexec, ranks, launch.cores()), *command]
    begin, limit = time.monotonic(), None
    with (
        launch.terminated_is_interrupted(),
        _beside(folder, ".out").open("wb") as out,
        _beside(folder, ".err").open("wb") as err,
    ):
        process = launch.start(words, "give another by --mpiexec", cwd=folder, stdout=out, stderr=err)
        try:
            name = f"{Path(command[0]).name} on {count_of(ranks, 'rank')}"
            if not patience.ended(process, name, limit_s, "--timeout ends runs that take longer"):
                limit = limit_s
        finally:
            seconds = time.monotonic() - begin
            _end(process)
    return Ended(ranks, folder, seconds, process.returncode, limit)


def _end(process: subprocess.Popen) -> None:
    """End mpiexec and all of its child processes: first by SIGTERM, then by force."""
    started: list[psutil.Process] = []
    if process.poll() is None:
        with contextlib.suppress(psutil.NoSuchProcess):
            started = psutil.Process(process.pid).children(recursive=True)
        launch.signal_group(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=launch.GRACE_S)
    launch.signal_group(process, signal.SIGKILL)
    for child in started:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    process.wait()
