"""The hosts of the ranks: from --hosts, of an emulated cluster, or this machine alone."""

from __future__ import annotations

import contextlib
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
_NAME = re.compile(r"(?!\d+$)[A-Za-z0-9][A-Za-z0-9._-]*")


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

    Text after a name in a file (slots=2, :2) and empty lines are ignored. Raises UsageError without a host, or for an
    invalid name: a bare number would be taken for an address (1 is 0.0.0.1).
    """
    path = Path(source)
    if path.is_file():
        text = files.text_of(path, "the hosts in", "give a file with one name on each line", MOST_BYTES)
        lines = [re.split(r"[\s:]", line.split("#")[0].strip())[0] for line in text.splitlines()]
        found = [line for line in lines if line]
    else:
        found = source.split(",")
    if not found or any(not _NAME.fullmatch(name) for name in found):
        remedy = "give node1,node2 or a file with one name on each line"
        raise UsageError(f"--hosts {shown(source)} names no hosts; {remedy}")
    return list(dict.fromkeys(found))


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
