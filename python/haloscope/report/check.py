"""`haloscope check` for readers: a table of the runs, and the locations where the first deviating run differs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from haloscope.measure.check import Check, Run
from haloscope.records import differences
from haloscope.records.differences import Difference, Planes
from haloscope.records.text import count_of, listed
from haloscope.report import tables

ROUNDING = 1e-10  # relative differences up to here may come from sums in another order
LEAST = 2  # runs that can be compared
FEW = 3  # planes or groups of planes that are listed individually


def markdown(checked: Check) -> str:
    """Return a table of the runs, then the failures and differences with their locations."""
    rows = [
        [run.ranks, tables.number(run.seconds), _verdict(run, checked.base), "oversubscribed" * run.oversubscribed]
        for run in checked.runs
    ]
    parts = [tables.markdown(rows, ["ranks", "time (s)", "verdict", "notes"], right=("ranks", "time (s)"))]
    failed = [run for run in checked.runs if run.failure]
    for run in failed:
        lines = "\n".join(f"    {line}" for line in run.last_lines)
        parts.append(f"{count_of(run.ranks, 'rank')}: {run.failure}. The last lines:\n\n{lines}")
    for word in _files_here(checked) if failed else ():
        hint = f"add --input {word}, or write {{here}}/{word}"
        parts.append(f"Each run has a separate folder, without {word}: {hint}.")
    parts += _explanation(checked, checked.first) if checked.first else []
    well = [str(run.ranks) for run in checked.runs if not run.failure]
    if len(well) < LEAST:
        parts.append("Nothing was compared: fewer than two runs ended well.")
    elif not checked.first:
        parts.append(f"Equal on {listed(well)} ranks.")
    if any(run.repeated for run in checked.runs):
        parts.append(
            f"Every line was printed once per rank. If these were programs of one rank each, "
            f"{checked.mpiexec} does not belong to the program's MPI; pass that MPI's launcher with --mpiexec."
        )
    return "\n\n".join(parts)


def _verdict(run: Run, base: int) -> str:
    if run.failure or run.ranks == base:
        return run.failure or "base"
    return f"differs: {differences.summarize(run.differences)}" if run.differences else "equal"


def _files_here(checked: Check) -> list[str]:
    """Return the arguments that name a file in this folder; runs cannot access these files."""
    inputs = {path.resolve().name for path in checked.inputs}
    words = next(iter(checked.commands.values()))[1:]
    local = (word for word in words if word and not Path(word).is_absolute() and word not in inputs)
    return [word for word in local if Path(word).exists()]


def _explanation(checked: Check, first: Run) -> list[str]:
    """Return paragraphs on the first run that differs: each output, then possible causes."""
    base = count_of(checked.base, "rank")
    parts = [f"The first split that differs: {count_of(first.ranks, 'rank')}, compared with {base}."]
    parts += [_sentences(found, checked.base, first.ranks) for found in first.differences]
    if checked.unsteady:
        parts.append(
            f"A second run on {base} differs from the first as well ({checked.unsteady}): the number of ranks "
            "is not the only cause. Times and random numbers have this effect; --ignore leaves out lines."
        )
    numeric = [found for found in first.differences if found.values]
    if numeric and all(found.relative <= ROUNDING for found in numeric):
        parts.append(
            "The differences are as small as differences of sums in another order; "
            f"--relative {ROUNDING:g} ignores them."
        )
    return parts


def _sentences(found: Difference, base: int, ranks: int) -> str:
    if not found.values:
        return f"{found.where}: {found.what}{'; ' * bool(found.first)}{found.first}."
    one, two = found.values
    values = f"{one} on {count_of(base, 'rank')}, {two} on {count_of(ranks, 'rank')}"
    lines = [
        f"{found.where}: {found.what} differ, the first at {found.first}: {values}. "
        f"Largest difference: {found.relative:.3g} relative, {found.absolute:.3g} absolute."
    ]
    lines += filter(None, (_planes_in_words(planes, (ranks, base)) for planes in found.planes))
    if found.planes and all(planes.count == planes.extent for planes in found.planes):
        lines.append("They lie on all planes; with fewer time steps they would lie only where they begin.")
    return "\n".join(lines)


def _planes_in_words(planes: Planes, splits: Sequence[int]) -> str:
    """Return the planes of an axis on which differences lie, and the blocks that meet there; "" for all planes.

    splits: the numbers of ranks of the two runs; the first run whose blocks meet at the largest differences explains
    them.
    """
    if planes.count == planes.extent:
        return ""
    share = f"{100 * planes.share:.3g} % of the points there differ"
    if planes.count <= FEW:
        named = [str(plane) for first, last in planes.runs for plane in range(first, last + 1)]
        text = f"All differences lie on {planes.axis} = {listed(named)}; {share}."
    elif len(planes.runs) <= FEW:
        named = [f"{first}..{last}" if last > first else str(first) for first, last in planes.runs]
        largest = listed(planes.peaks)
        text = f"All differences lie on {planes.axis} = {listed(named)}, the largest on {largest}; {share}."
    else:
        text = f"They lie on {planes.count} of {planes.extent} planes {planes.axis} = const; {share}."
    found = (differences.find_cuts(planes, ranks) for ranks in splits)
    blocks, cuts = next((explained for explained in found if explained[0]), (0, ()))
    if blocks:
        places = listed([f"{planes.axis} = {cut}" for cut in cuts])
        return f"{text} The largest lie next to {places}, where even blocks of {blocks} ranks meet in {planes.axis}."
    if all(peak in (0, planes.extent - 1) for peak in planes.peaks):
        return f"{text} This is the edge of the array, where a periodic grid wraps around."
    return text


def document(checked: Check) -> dict:
    """Return the check as plain data; numbers that are not finite are null."""
    return {
        "schema": "haloscope.check",
        "schema_version": 1,
        "command": checked.commands[next(iter(checked.commands))],
        "base": checked.base,
        "passed": checked.passed,
        "first": checked.first.ranks if checked.first else None,
        "unsteady": checked.unsteady,
        "runs": [_finite(dataclasses.asdict(run)) for run in checked.runs],
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
