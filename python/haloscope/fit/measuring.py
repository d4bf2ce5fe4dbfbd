"""The measurements of a calibration: a campaign over its points, which resumes after an interruption."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from haloscope import bridge, outputs, records
from haloscope.errors import UsageError
from haloscope.fit import points
from haloscope.measure import campaign, hosts, launch, lists, space


def refuse_output(output: Path) -> None:
    """Raise UsageError for a file to which no profile can be written: not .json, or not written by Haloscope."""
    if output.suffix != ".json":
        raise UsageError(f"--output {output} is not a .json file; write for example -o machine.json")
    outputs.refuse_foreign(output, outputs.PROFILE)


def effort_of(quick: bool, launches: int | None, apps: str | None) -> points.Effort:
    """Return the effort of a calibration. apps: a list of names and globs. launches, apps: None for the defaults."""
    usual = points.QUICK if quick else points.FULL
    measured = lists.names(apps, bridge.app_names(), "app") if apps else ()
    return dataclasses.replace(usual, apps=tuple(measured), launches=launches or usual.launches)


def measure(
    output: Path, sections: Sequence[str], ranks: int | None, effort: points.Effort, device: str
) -> tuple[list[dict], list[str]]:
    """Measure and return the records of the sections, and notes on them.

    The records are stored next to the profile `output`; the records of a complete calibration are renamed. ranks: max
    number of concurrent ranks, None: the number of cores. Raises UsageError if nothing can be measured.
    """
    ranks = ranks or launch.cores()
    planned = points.all_points(sections, ranks, launch.cores(), effort, device, hosts.count())
    alone = [s for s in sections if ranks < 2 and s in points.NEEDS_PEERS]
    notes = [f"section '{s}' needs 2 ranks or more, and there was 1" for s in alone]
    if not planned and not alone:
        raise UsageError("device: no device was found here to measure; pass --device host for an imitated one")
    if not planned:
        raise UsageError(f"{', '.join(alone)}: nothing can be measured with 1 rank; use --ranks 2 or more")
    file = output.with_suffix(".jsonl")
    records.refuse_foreign(file)
    records.prepare(file)
    if output.exists() and file.stat().st_size:  # complete: keep the old records, but do not mix the two
        outputs.refuse_foreign(output.with_suffix(".json~"), outputs.PROFILE)
        outputs.move(file, file.with_suffix(".jsonl~"), outputs.RECORDS)
        outputs.move(output, output.with_suffix(".json~"), outputs.PROFILE)
    run = campaign.Campaign(space.Space(planned), file, launches=effort.launches, resume=True, label="calibrating")
    return run.run(), notes
