"""The hosts of the ranks: from --hosts, of an emulated cluster, or this machine alone."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path

from haloscope import files
from haloscope.errors import UsageError
from haloscope.terminal import shown

VARIABLE = "HALOSCOPE_HOSTS"  # their names, separated by commas
MOST_BYTES = 16 << 20  # of a file of names
MOST_NAMES = 100_000  # of a list in brackets
_NAME = re.compile(r"(?!\d+$)[A-Za-z0-9][A-Za-z0-9._-]*")
_COMMA = re.compile(r",(?![^\[]*\])")  # outside brackets
_SLOTS = re.compile(r"[:*]\d+$")
_BRACKETS = re.compile(r"\[(\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*)\]")


def names() -> list[str]:
    """Return the names of the hosts; none if ranks run on this machine, or if a batch system chooses the hosts.

    Raises UsageError if the variable has other content.
    """
    listed = os.environ.get(VARIABLE, "")
    found = [name for name in listed.split(",") if name]
    if any(not _NAME.fullmatch(name) for name in found):
        raise UsageError(f"{VARIABLE}={shown(listed)} names no hosts; set it to node1,node2")
    return found


def count() -> int:
    """Return the number of hosts that ranks run on, 1 if they run on this machine."""
    return max(1, len(names()))


def read(source: str) -> list[str]:
    """Return the hosts of a list NAME,NAME,... or of a file with one on each line, like a host file of mpiexec.

    Names may have ranges, as in lists of Slurm: node[01-04,07]. Slots after a name (:2, *2, and slots=2 in a file) and
    empty lines are ignored: ranks are divided equally. Raises UsageError without a host, or for an invalid name: a bare
    number would be taken for an address (1 is 0.0.0.1).
    """
    path = Path(source)
    if path.is_file():
        text = files.text_of(path, "the hosts in", "give a file with one name on each line", MOST_BYTES)
        words = [line.split("#")[0].split() for line in text.splitlines()]
        listed = [line[0] for line in words if line]
    else:
        listed = _COMMA.split(source)
    found = [name for one in listed for name in _expanded(_SLOTS.sub("", one))]
    if not found or any(not _NAME.fullmatch(name) for name in found):
        remedy = "give node1,node2, node[1-2], or a file with one name on each line"
        raise UsageError(f"--hosts {shown(source)} names no hosts; {remedy}")
    return list(dict.fromkeys(found))


def _expanded(name: str) -> list[str]:
    """Return the names of a name with ranges in brackets; the name itself without ranges, or for too many."""
    texts = _BRACKETS.split(name)  # each second one is the inside of brackets
    ranges = [[_ends(part) for part in inside.split(",")] for inside in texts[1::2]]
    count = math.prod(sum(last + 1 - first for first, last, _ in one) for one in ranges)
    if count > MOST_NAMES or any(last < first for one in ranges for first, last, _ in one):
        return [name]
    numbers = [[f"{n:0{digits}d}" for first, last, digits in one for n in range(first, last + 1)] for one in ranges]
    chosen = itertools.product(*numbers)
    return ["".join(itertools.chain(*itertools.zip_longest(texts[::2], one, fillvalue=""))) for one in chosen]


def _ends(part: str) -> tuple[int, int, int]:
    """Return the first and the last number of a range, and the digits of the first."""
    first, _, last = part.partition("-")
    return int(first), int(last or first), len(first)


@contextlib.contextmanager
def host_list(source: str | None) -> Iterator[None]:
    """Run all ranks that this process starts in the block on the hosts of `read`; None: on its present hosts."""
    before = os.environ.get(VARIABLE)
    if source is not None:
        os.environ[VARIABLE] = ",".join(read(source))
    try:
        yield
    finally:
        if before is not None:
            os.environ[VARIABLE] = before
        elif source is not None:
            os.environ.pop(VARIABLE, None)


def ranks_on_one(ranks: int) -> int:
    """Return the number of `ranks` on the first host: blocks have equal size, the last ones may be smaller."""
    return math.ceil(ranks / count())
