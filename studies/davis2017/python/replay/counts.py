"""Counts of hydro3d's kernels in a model of two caches, against the counters that the study prints for its kernels.

`bench_counts` runs the kernels' sources with vectors that count; data/counts.json has its output. Kernels of the study
have other numerics: only changes from variant to variant, and shares, are held against a bar. Source: tables 6.4, A.27
to A.50 and A.53 to A.59; digest of the study, sections 4.9 and 8.2.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping

from haloscope.report import tables
from haloscope.studies import checks, published
from haloscope.studies.checks import Check
from haloscope_studies.davis2017.data import DATA
from haloscope_studies.davis2017.replay import variants

SIDE = 150  # cells per side at which the study judges its variants
# Kernels here, and the study's kernels with the same task.
REMAPS = {f"remap-{kind}-{d}": f"Mad{v}{d}{n}" for kind, v, n in (("cells", "v", 2), ("nodes", "vm", 1)) for d in "xyz"}
LARGE = {"remap-cells-x": ("Madvx2", 0.08), "remap-nodes-x": ("Madvmx1", 0.60), "viscosity": ("Lartvis1", 1.13)}
COUNTERS = ("operations", "accesses", "l1_misses", "l2_misses")
PRINTED = dict(zip(COUNTERS, ("dp_operations", "l1_accesses", "l1_misses", "l2_misses"), strict=True))
MISS = "operations per access"  # how the documented misses of this module begin

Counts = Mapping[tuple[str, str, int], Mapping[str, float]]


@functools.cache
def counts() -> Counts:
    """Return counts per cell, by kernel, variant and cells per side. D has the remap of B."""
    found = {}
    for row in json.loads((DATA / "counts.json").read_text()):
        per_cell = {name: row[name] / row["cells"] for name in row if isinstance(row[name], int)}
        per_cell["accesses"] = per_cell["loads"] + per_cell["stores"]
        found[row["kernel"], row["variant"], row["cells_per_side"]] = per_cell
    return found


@functools.cache
def printed() -> Counts:
    """Return the study's counters per cell, by its kernel, variant and cells per side."""
    return {
        (r["kernel"], r["variant"], int(r["cells_per_side"])): {
            name: float(r[column]) / int(r["cells_per_side"]) ** 3 for name, column in PRINTED.items()
        }
        for r in published("davis2017", "kernels_papi")
    }


def all_checks() -> list[Check]:
    """Return every check of this module, in order of the rows."""
    return [*operations_per_access(), same_operations(), vector_share(), misses_of_lines()]


def operations_per_access() -> list[Check]:
    """A12: operations per access to memory of dominant kernels, variant A."""
    made = []
    for kernel, (theirs, share) in LARGE.items():
        variant = "D" if kernel == "viscosity" else "A"
        here = counts()[kernel, variant, SIDE]
        ours = here["operations"] / here["accesses"]
        good = checks.state(abs(ours / share - 1) <= 0.1)
        why = "sources are counted: the studied code's accesses have lists and spilled registers too"
        made.append(
            Check("A12", f"{MISS}, {kernel}", f"{share:.2f} ({theirs})", f"{ours:.2f}", "within 10 %", good, why)
        )
    return made


def same_operations() -> Check:
    """B3: variants A, B and C make the same operations."""
    here, theirs = (worst_spread(found, names) for found, names in ((counts(), REMAPS), (printed(), REMAPS.values())))
    return Check(
        "B3",
        f"operations of A, B and C, six kernels, {SIDE}^3",
        f"{theirs:.1%} apart",
        f"{here:.1%} apart",
        "within 12 %",
        checks.state(here <= 0.12),
    )


def worst_spread(found: Counts, kernels: Iterable[str]) -> float:
    """Return the largest difference of operations between A, B and C, relative to the fewest."""
    per_kernel = ([found[kernel, variant, SIDE]["operations"] for variant in "ABC"] for kernel in kernels)
    return max(max(of_variants) / min(of_variants) - 1 for of_variants in per_kernel)


def vector_share() -> Check:
    """B3: all operations of E are in vectors of two doubles."""
    shares = [
        c["vector_operations"] / c["operations"]
        for (_, variant, side), c in counts().items()
        if (variant, side) == ("E", SIDE)
    ]
    theirs = [end for ends in variants.vector_share().values() for end in ends]
    return Check(
        "B3",
        f"vector operations per operation, E, {len(shares)} kernels",
        f"{min(theirs):.2f} to {max(theirs):.2f}",
        f"{min(shares):.3f} to {max(shares):.3f}",
        "0.50, to 0.02",
        checks.state(all(abs(share - 0.5) <= 0.02 for share in shares)),
    )


def misses_of_lines() -> Check:
    """E1: rows in place of lines along z save misses of the second cache."""
    ours, theirs = (
        found[kernel, "A", SIDE]["l2_misses"] / found[kernel, "B", SIDE]["l2_misses"]
        for found, kernel in ((counts(), "remap-nodes-z"), (printed(), "Madvmz1"))
    )
    note = "caches of one core of the study's machine, without prefetching"
    texts = (f"{theirs:.1f} times fewer", f"{ours:.1f} times fewer", "> 5")
    return Check("E1", f"L2 misses, nodes along z, A to B, {SIDE}^3", *texts, checks.state(ours > 5), note)


def markdown() -> str:
    """Return counts per cell of the remap in variants A, B and C, next to the study's kernels of the same size."""
    lines = []
    for kernel, twin in REMAPS.items():
        for variant in "ABC":
            pairs = (counts()[kernel, variant, SIDE], printed()[twin, variant, SIDE])
            cells = [tables.number(found[name]) for name in COUNTERS for found in pairs]
            lines.append([f"{kernel} ({twin})", variant, *cells])
    titles = [f"{name.replace('_', ' ').replace('l1', 'L1').replace('l2', 'L2')}" for name in COUNTERS]
    headers = ["kernel (the study's)", "variant", *(f"{title}{of}" for title in titles for of in ("", ", the study's"))]
    table = tables.markdown(lines, headers, right=headers[2:])
    return (
        f"{table}\n\nPer cell, {SIDE}^3. Counted in the sources of hydro3d, with 32 KiB and 256 KiB of cache of 8 ways "
        "and no prefetching; measured by PAPI in the study, whose kernels have other numerics."
    )
