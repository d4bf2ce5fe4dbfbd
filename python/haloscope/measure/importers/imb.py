"""Intel MPI Benchmarks, MPI-1 part (IMB 3 to 2021): tables of microseconds by message size.

A table begins with `# Benchmarking NAME`, then the processes or groups, then a line of column names. Of several times,
the time of the slowest process counts, as in the bandwidths that IMB prints. Benchmarks of concurrent groups are called
Multi-NAME.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from haloscope.measure.importers.text import Output, Sample, number, seconds_of, whole

NAME = "IMB"
KEYS = {
    "PingPong": "latency_s",
    "PingPing": "exchange_s",
    "Exchange": "ring_s",
    "Allreduce": "allreduce_s",
    "Allgather": "allgather_s",
}
HOLDS = "PingPong, PingPing, Exchange, Allreduce, Allgather, each also as Multi-..."

_TITLE = re.compile(r"^#\s*+Benchmarking\s++(?P<multi>Multi-)?(?P<name>\w+)")
_PROCESSES = re.compile(r"#\s*+(?:\(\s*+)?#processes = (\d+)")
_GROUPS = re.compile(r"#\s*+\(\s*+(\d+) groups of (\d+) processes")
_VERSION = re.compile(r"Intel ?\(R\) MPI Benchmark(?:s| Suite) V?([^,\n]+)")
_TIMES = ("t[usec]", "t_max[usec]")  # names of the column that counts


@dataclass
class _Table:
    """The table that is being read."""

    name: str
    ranks: int = 0
    groups: int = 1
    columns: list[str] = field(default_factory=list)
    slowest: dict[int, float] = field(default_factory=dict)  # of the groups, microseconds by bytes


def recognise(text: str) -> bool:
    """Return whether a text is the output of IMB, or a part of it that has a table."""
    return any(_TITLE.match(line) for line in text.splitlines()) and "#repetitions" in text


def parse(text: str) -> Output:
    """Return the times of all benchmarks in KEYS. Raises ValueError for a damaged table."""
    version = _VERSION.search(text)
    output = Output(f"IMB {version[1].strip()}" if version else "IMB")
    table: _Table | None = None
    left_out: dict[str, None] = {}
    failed = 0
    for count, line in enumerate(text.splitlines(), start=1):
        if title := _TITLE.match(line):
            output.samples += _samples(table)
            table = _Table(title["name"]) if title["name"] in KEYS else None
            left_out |= {} if table else {title["name"]: None}
        elif table:
            failed += _take(table, line, count)
    output.samples += _samples(table)
    output.notes = (f"left out: {', '.join(left_out)}",) if left_out else ()
    output.notes += (f"{failed} sizes without a time (out of memory, out of time)",) if failed else ()
    return output


def _take(table: _Table, line: str, count: int) -> bool:
    """Read one line of a table; return True for a size without a time."""
    words = line.split()
    if groups := _GROUPS.search(line):
        table.groups, table.ranks = whole(groups[1], count), whole(groups[1], count) * whole(groups[2], count)
    elif processes := _PROCESSES.search(line):
        table.ranks = whole(processes[1], count)
    elif "#repetitions" in words:
        table.columns = words
    elif table.columns and words and words[0].isdigit():
        return _take_row(table, words, count)
    return False


def _take_row(table: _Table, words: list[str], count: int) -> bool:
    at = next((table.columns.index(name) for name in _TIMES if name in table.columns), None)
    if at is None or "#bytes" not in table.columns or table.ranks < 1:
        raise ValueError(f"line {count} belongs to a table without sizes, times or processes")
    if any(word.startswith(("out-of-mem", "int-overflow", "time-out")) for word in words):
        return True
    if len(words) < len(table.columns):
        raise ValueError(f"line {count} is cut off")
    size = whole(words[table.columns.index("#bytes")], count)
    table.slowest[size] = max(table.slowest.get(size, 0.0), number(words[at], count))
    return False


def _samples(table: _Table | None) -> list[Sample]:
    if table is None:
        return []
    key = KEYS[table.name]
    return [Sample(key, size, seconds_of(us), table.ranks, table.groups) for size, us in table.slowest.items()]
