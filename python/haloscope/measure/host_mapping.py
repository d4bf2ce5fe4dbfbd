"""Mapping of the ranks of a launch to hosts and sockets, by a rule of the model's placements; sockets may be emulated.

A socket is a part of the cores that a host lets its processes use, in the order of the machine's sockets. So as many
sockets as the machine has are its own; more are emulated, and so are sockets of more cores than their part has.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from haloscope.errors import UsageError
from haloscope.model import placement
from haloscope.records.text import count_of

VARIABLE = "HALOSCOPE_MAPPING"  # the mapping as JSON, which haloscope-rank adds to the environment of its records
RULES = ("fill", "balanced", "by-socket")  # by which the ranks of a host have successive numbers

# Starts a rank: SCRIPT PROGRAM... The sockets of all ranks replace SOCKETS, their number on a host PER_HOST. The first
# part lists the allowed cores by their socket, the last one takes this rank's share, at least one core.
SCRIPT = """\
#!/bin/sh
set -- "${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-$PMIX_RANK}}" SOCKETS -- "$@"
shift "$1"
socket=$2
while [ "$1" != -- ]; do shift; done
shift
cores=$(taskset -cp $$ | sed 's/.*: *//' | tr , '\\n' | awk -F- '{
  for (core = $1; core <= $NF; core++) {
    package = 0
    getline package < ("/sys/devices/system/cpu/cpu" core "/topology/physical_package_id")
    print package, core
  } }' | sort -n -k 1,1 -k 2,2 | awk -v socket="$socket" -v of=PER_HOST '{ core[n++] = $2 } END {
    first = int(socket * n / of); last = int((socket + 1) * n / of) - 1
    printf "%s", core[first]
    for (i = first + 1; i <= last; i++) printf ",%s", core[i] }')
exec taskset -c "$cores" "$@"
"""


@dataclass(frozen=True)
class HostMapping:
    """A rule, the sockets of each host, and the most ranks of a socket."""

    rule: str
    sockets: int
    cores: int

    def places(self, ranks: int) -> placement.Placement:
        """Return the host and the socket of each rank, sockets numbered over all hosts."""
        return placement.place(self.rule, ranks, self.sockets, self.cores)

    def loads(self, ranks: int) -> dict[int, int]:
        """Return the number of sockets by their number of ranks, the fullest first."""
        counts = Counter(self.places(ranks).sockets())
        return dict(sorted(counts.items(), reverse=True))

    @property
    def text(self) -> str:
        """A description of the mapping."""
        return f"mapping {self.rule} to hosts of {count_of(self.sockets, 'socket')} for {count_of(self.cores, 'rank')}"

    def of_hosts(self, ranks: int, available: int) -> list[int]:
        """Return the number of ranks on each used host. Raises UsageError where they need more hosts than available."""
        node = self.places(ranks).node
        counts = [int((node == number).sum()) for number in range(int(node[-1]) + 1)]
        if len(counts) > available:
            raise UsageError(
                f"{ranks} ranks by '{self.rule}' need {len(counts)} hosts of {self.sockets} sockets with {self.cores} "
                f"ranks each, and there {'is' if available == 1 else 'are'} {available}; use more hosts or --sockets "
                f"{self.sockets}x{-(-ranks // (self.sockets * available))}"
            )
        return counts

    def start_words(self, ranks: int, folder: Path) -> list[str]:
        """Return the words before a program that start each rank on the cores of its socket; writes a script."""
        sockets = " ".join(map(str, (self.places(ranks).socket % self.sockets).tolist()))
        file = folder / "on_socket"
        file.write_text(SCRIPT.replace("SOCKETS", sockets).replace("PER_HOST", str(self.sockets)))
        return ["sh", str(file)]


def lines(found: Iterable[Mapping]) -> list[str]:
    """Return a line for each mapping and rank count of records, with the ranks of its sockets."""
    mapped = (r for r in found if "environment" in r and "mapping" in r["environment"])
    return list(dict.fromkeys(_line(record["environment"], record["request"]["ranks"]) for record in mapped))


def _line(environment: Mapping, ranks: int) -> str:
    mapping = HostMapping(**environment["mapping"])
    cores, sockets = environment["cores"], environment.get("sockets", 1)
    loads = ", ".join(f"{count_of(n, 'socket')} with {load}" for load, n in mapping.loads(ranks).items())
    own = f"a host has {count_of(cores, 'core')} in {count_of(sockets, 'socket')}"
    emulated = f"; sockets are emulated: {own}" * (mapping.sockets > sockets or mapping.sockets * mapping.cores > cores)
    return f"{mapping.text}: {count_of(ranks, 'rank')}, {loads}{emulated}"


def of_this_machine(rule: str) -> HostMapping:
    """Return a mapping to the sockets of this machine, and to the cores that this process may use on each."""
    packages = Counter(map(_package, os.sched_getaffinity(0)))
    return HostMapping(rule, len(packages), min(packages.values()))


def _package(core: int) -> str:
    file = Path(f"/sys/devices/system/cpu/cpu{core}/topology/physical_package_id")
    return file.read_text().strip() if file.exists() else ""


def current() -> HostMapping | None:
    """Return the mapping of the launches of this process, None without one."""
    text = os.environ.get(VARIABLE, "")
    return HostMapping(**json.loads(text)) if text else None


@contextlib.contextmanager
def applied(mapping: HostMapping | None) -> Iterator[None]:
    """Start ranks by a mapping while the context lasts; None: as before."""
    if mapping is None:
        yield
        return
    os.environ[VARIABLE] = json.dumps(asdict(mapping))
    try:
        yield
    finally:
        del os.environ[VARIABLE]
