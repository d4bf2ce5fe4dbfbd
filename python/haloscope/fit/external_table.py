"""Exchanges timed by any program, in a CSV file; docs/understand/external.md specifies its format."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from haloscope import bridge, files
from haloscope.errors import HaloscopeError, UsageError, unknown_name
from haloscope.fit import ghexbench

PAGE = "docs/understand/external.md"
REQUIRED = ("node_grid", "core_grid", "cells", "halo", "fields", "element_bytes", "strategy", "median_s")
CENTILES = ("p5_s", "p25_s", "p75_s", "p95_s")
OPTIONAL = (
    "socket_grid",
    "threads",
    "program",
    "packs_all",
    "one_buffer",
    "cache_bytes",
    "machine",
    *CENTILES,
    "repetitions",
)


@dataclass(frozen=True)
class Measured:
    """One timed exchange.

    line: of the file. node_grid, socket_grid, core_grid: nodes, sockets of a node and blocks of a socket per dimension,
    each with one block of `cells` cells. threads: blocks that one rank exchanges, each by a separate thread. packs_all:
    `program` packs contiguous messages too. one_buffer: its sequential fields use the same buffers. cache_bytes: of a
    socket, 0 = unknown. centiles_s: by their names in the table.
    """

    line: int
    node_grid: tuple[int, ...]
    socket_grid: tuple[int, ...]
    core_grid: tuple[int, ...]
    threads: int
    cells: tuple[int, ...]
    halo: int
    fields: int
    element_bytes: int
    strategy: str
    program: str
    packs_all: bool
    one_buffer: bool
    cache_bytes: float
    machine: str
    median_s: float
    centiles_s: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return math.prod(self.node_grid)

    @property
    def sockets(self) -> int:
        """Sockets of a node."""
        return math.prod(self.socket_grid)

    @property
    def cores(self) -> int:
        """Cores of a socket, one per block."""
        return math.prod(self.core_grid)

    @property
    def process_grid(self) -> tuple[int, ...]:
        """Blocks per dimension, of all nodes."""
        return tuple(map(math.prod, zip(self.node_grid, self.socket_grid, self.core_grid, strict=True)))

    @property
    def case(self) -> tuple:
        """The case: the conditions under which a program and strategy are chosen."""
        return (
            self.machine,
            self.node_grid,
            self.socket_grid,
            self.core_grid,
            self.threads,
            self.cells,
            self.halo,
            self.fields,
            self.element_bytes,
        )

    @property
    def way(self) -> tuple[str, str]:
        """The choice: the program and its strategy."""
        return self.program, self.strategy

    @property
    def key(self) -> tuple:
        """The identity of the exchange, equal for a second measurement of it."""
        return (*self.case, *self.way)


@dataclass(frozen=True)
class Table:
    """The rows of a file. notes: values that were read differently from the file, with the reason."""

    path: str
    rows: tuple[Measured, ...]
    notes: tuple[str, ...]


def read(path: str | Path) -> Table:
    """Return the rows of a CSV file in the format of PAGE, or with the columns of ghexbench's results.

    Raises UsageError, with the line and the column, for a file that cannot be read, a missing or unknown column, a
    value that does not fit its column, an impossible exchange (a halo wider than the block), and a repeated exchange.
    """
    text = files.text_of(path, "the table", f"give a CSV file, see {PAGE}", strict=True)
    try:
        return _table(str(path), csv.DictReader(text.splitlines()))
    except csv.Error as error:
        raise UsageError(f"{path} is not a readable CSV file: {error}; see {PAGE}") from None


def _table(path: str, reader: csv.DictReader) -> Table:
    columns = [name.strip() for name in reader.fieldnames or ()]
    notes: list[str] = []
    if set(ghexbench.COLUMNS) <= set(columns):
        convert: Callable[[Mapping[str, str]], dict[str, str]] = ghexbench.Converter(notes)
    else:
        convert = dict
        _check_columns(path, columns)
    rows = list(_rows(path, reader, columns, convert))
    if not rows:
        raise UsageError(f"{path} holds no exchanges; every line after the header is one, see {PAGE}")
    _refuse_twice(path, rows)
    return Table(path, tuple(rows), tuple(notes))


def _check_columns(path: str, columns: list[str]) -> None:
    """Refuse a wrong header, with all of its faults: the table of another program needs one change."""
    faults = []
    unknown = [name for name in columns if name not in REQUIRED + OPTIONAL]
    if len(unknown) == 1:
        faults.append(unknown_name("column", unknown[0], REQUIRED + OPTIONAL))
    elif unknown:
        faults.append(f"unknown columns {', '.join(unknown)}")
    if missing := [name for name in REQUIRED if name not in columns]:
        faults.append(f"it lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}")
    if faults:
        raise UsageError(f"{path}: {'; '.join(faults)}; see {PAGE}")


def _rows(path: str, reader: csv.DictReader, columns: list[str], convert: Callable) -> Iterator[Measured]:
    for row in reader:
        where = f"{path}, line {reader.line_num}"
        if None in row or None in row.values():
            raise UsageError(f"{where}: it has another number of columns than the header ({len(columns)}); correct it")
        try:
            yield _row(reader.line_num, convert({name.strip(): value.strip() for name, value in row.items()}))
        except HaloscopeError as error:
            raise UsageError(f"{where}: {error}") from None


def _most(name: str) -> int:
    """Return the largest value of a whole number, by its name in the table of bounds."""
    return int(bridge.bounds()[name].most)


def _row(line: int, row: Mapping[str, str]) -> Measured:
    cell = _Cells(row)
    node_grid = cell.grid("node_grid")
    made = Measured(
        line=line,
        node_grid=node_grid,
        socket_grid=cell.grid("socket_grid", (1,) * len(node_grid)),
        core_grid=cell.grid("core_grid"),
        threads=cell.count("threads", _most("external_blocks"), 1),
        cells=cell.grid("cells"),
        halo=cell.count("halo", _most("external_halo")),
        fields=cell.count("fields", _most("external_fields")),
        element_bytes=cell.count("element_bytes", 8),
        strategy=bridge.canonical_strategy(cell.text("strategy")),
        program=cell.text("program", "program"),
        packs_all=cell.flag("packs_all"),
        one_buffer=cell.flag("one_buffer"),
        cache_bytes=cell.number("cache_bytes", 0.0),
        machine=cell.text("machine", "machine"),
        median_s=cell.number("median_s"),
        centiles_s={name: cell.number(name) for name in CENTILES if row.get(name, "")},
    )
    return _possible(made)


def _possible(row: Measured) -> Measured:
    for name in ("socket_grid", "core_grid", "cells"):
        if len(getattr(row, name)) != len(row.node_grid):
            raise UsageError(
                f"{name} has {len(getattr(row, name))} dimensions, node_grid {len(row.node_grid)}; correct one"
            )
    if len(row.node_grid) not in (2, 3):
        raise UsageError("node_grid has one number per dimension, of which there are 2 or 3, such as 3x3x3")
    if row.element_bytes not in (4, 8):
        raise UsageError(f"element_bytes is {row.element_bytes}; values have 4 or 8")
    if row.halo > min(row.cells):
        raise UsageError(f"a halo of {row.halo} layers is wider than a block of {min(row.cells)} cells")
    most, blocks = _most("external_blocks"), math.prod(row.process_grid)
    if blocks > most:
        raise UsageError(f"it has {blocks} blocks; at most {most} are predicted")
    if row.cores % row.threads and row.threads > 1:
        raise UsageError(f"{row.threads} threads do not divide the {row.cores} blocks of a socket; correct one")
    return row


@dataclass(frozen=True)
class _Cells:
    """The values of one row by column; each getter refuses a value that does not fit the column."""

    row: Mapping[str, str]

    def text(self, name: str, usual: str = "") -> str:
        value = self.row.get(name, "") or usual
        if not value:
            raise UsageError(f"column {name} is empty; give a value")
        return value

    def number(self, name: str, usual: float | None = None) -> float:
        text = self.row.get(name, "")
        if not text and usual is not None:
            return usual
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        most = bridge.bounds()["seconds" if name.endswith("_s") else "count"].most
        if not 0 < value <= most:
            raise UsageError(f"column {name} holds '{text}', which is not a number above 0 and up to {most:g}")
        return value

    def count(self, name: str, most: int, usual: int | None = None) -> int:
        text = self.row.get(name, "")
        if not text and usual is not None:
            return usual
        if not re.fullmatch(r"\d{1,9}", text) or not 1 <= int(text) <= most:
            raise UsageError(f"column {name} holds '{text}', which is not a whole number from 1 to {most}")
        return int(text)

    def grid(self, name: str, usual: tuple[int, ...] = ()) -> tuple[int, ...]:
        text = self.row.get(name, "")
        if not text and usual:
            return usual
        if not re.fullmatch(r"[1-9]\d{0,6}(x[1-9]\d{0,6}){0,2}", text):
            raise UsageError(f"column {name} holds '{text}', not numbers above 0 such as 3x3x2")
        return tuple(map(int, text.split("x")))

    def flag(self, name: str) -> bool:
        text = self.row.get(name, "").lower()
        if text not in ("", "yes", "no"):
            raise UsageError(f"column {name} holds '{text}'; it is yes or no")
        return text == "yes"


def _refuse_twice(path: str, rows: list[Measured]) -> None:
    lines: dict[tuple, int] = {}
    for row in rows:
        first = lines.setdefault(row.key, row.line)
        if first != row.line:
            raise UsageError(f"{path}: lines {first} and {row.line} are the same exchange; remove one")
