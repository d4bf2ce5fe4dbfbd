"""Results of ghexbench (github.com/ghex-org/ghexbench), converted to the columns of docs/understand/external.md."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from haloscope.errors import UsageError, unknown_name

COLUMNS = ("nodes", "cells_per_rank_edge", "real", "mode", "halo", "fields", "executable", "median_s")
MACHINE = {"machine": "Piz Daint multicore", "socket_grid": "1x1x2", "core_grid": "3x3x2", "cache_bytes": "47185920"}
REALS = {"float": 4, "double": 8}
THREADS = {"ranks": 1, "threads": 18}
SIDES = {1: 1, 8: 2, 27: 3, 64: 4, 125: 5, 216: 6, 343: 7, 512: 8}  # of a cube of nodes

_PATTERNS = {"nostage": "direct", "stage": "ordered"}
_FIELDS = {"allfield": "", "onefield": ":fields=serial"}
_TRANSPORTS = {"none": "p2p", "xpmem": "shared+p2p"}
GHEX = {"program": "ghex", "packs_all": "yes", "one_buffer": "no"}
# Programs and strategies by executable: GHEX packs every message and has buffers for every field; mpi_comm sends planes
# in z without packing.
EXECUTABLES: dict[str, dict[str, str]] = {
    f"{transport}_{stage}_{fields}": GHEX | {"strategy": f"{pattern}{merged}/{name}"}
    for transport, name in _TRANSPORTS.items()
    for stage, pattern in _PATTERNS.items()
    for fields, merged in _FIELDS.items()
}
EXECUTABLES["mpi_comm"] = {
    "program": "mpi_comm",
    "packs_all": "no",
    "one_buffer": "yes",
    "strategy": "ordered:fields=serial/p2p",
}
_KEPT = ("halo", "fields", "median_s", "p5_s", "p25_s", "p75_s", "p95_s", "repetitions")


class Converter:
    """Turns a row of ghexbench's columns into one of the documented format; remarks go to `notes`, each once."""

    def __init__(self, notes: list[str]):
        """Append remarks to `notes`."""
        self._notes = notes

    def __call__(self, row: Mapping[str, str]) -> dict[str, str]:
        """Return the row. Raises UsageError for a word or a number that ghexbench does not use."""
        known: dict[str, Collection[str]] = {"executable": EXECUTABLES, "real": REALS, "mode": THREADS}
        for column, words in known.items():
            if row[column] not in words:
                raise UsageError(unknown_name(column, row[column], words))
        cells, nodes = (_whole(row, column) for column in ("cells_per_rank_edge", "nodes"))
        if nodes not in SIDES:
            raise UsageError(
                f"{nodes} nodes are not a cube of nodes; use the columns of docs/understand/external.md for other grids"
            )
        kept = {name: row[name] for name in _KEPT if name in row}
        return (
            kept
            | MACHINE
            | EXECUTABLES[row["executable"]]
            | {
                "node_grid": "x".join([str(SIDES[nodes])] * 3),
                "cells": "x".join([str(cells)] * 3),
                "threads": str(THREADS[row["mode"]]),
                "element_bytes": str(self._element_bytes(row, cells, nodes)),
            }
        )

    def _element_bytes(self, row: Mapping[str, str], cells: int, nodes: int) -> int:
        """Return the bytes of `real`, or of the other type if the row's count of bytes matches that type."""
        nominal = REALS[row["real"]]
        text = row.get("bytes_both_ways_all_ranks", "")
        if not text:
            return nominal
        halo, fields = _whole(row, "halo"), _whole(row, "fields")
        values = 2 * 36 * nodes * fields * ((cells + 2 * halo) ** 3 - cells**3)
        counted = float(text) / values
        found = min(REALS.values(), key=lambda size: abs(size - counted))
        if abs(found - counted) > 0.01 * found:
            raise UsageError(f"bytes_both_ways_all_ranks are {counted:.3g} B a value; values have 4 or 8")
        if found != nominal:
            note = (
                f"rows with real={row['real']}, mode={row['mode']} count {found} B a value, not {nominal}, and are "
                f"taken to be of {found}"
            )
            if note not in self._notes:
                self._notes.append(note)
        return found


def _whole(row: Mapping[str, str], column: str) -> int:
    if not row[column].isdigit() or len(row[column]) > 9 or int(row[column]) < 1:
        raise UsageError(f"column {column} holds '{row[column]}', which is not a whole number above 0")
    return int(row[column])
