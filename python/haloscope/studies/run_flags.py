"""Flags of the studies that `haloscope run` has: their options, their translation, and reports of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from haloscope.options.kinds import options_of
from haloscope.studies.schroeter2021 import partdiff
from haloscope.studies.valen2023 import flags as valen2023

OPTIONS = options_of(valen2023.OPTIONS, partdiff.OPTIONS)


def translated(app: str, options: Mapping[str, Any], given: Sequence[str]) -> dict[str, Any]:
    """Return a run's options with the studies' flags in the words of every run. given: options of the command line.

    Raises UsageError for contradictions, and for flags of another app.
    """
    return partdiff.translated(app, valen2023.translated(dict(options)), given)


def report(found: Sequence[dict], options: Mapping[str, Any], output: Path) -> str:
    """Return the report that these flags request instead of tables; "" where they request none."""
    measured = _measured(found)
    text = partdiff.own_report(measured[-1], dict(options)) if measured else ""
    return text if not text or options["find_precision"] else f"{text}\n\nrecords: {output}"


def tables(found: Sequence[dict], options: Mapping[str, Any]) -> list[str]:
    """Return the tables that these flags request besides the tables of every run."""
    return [f"\n{partdiff.slow_table(record)}" for record in _measured(found)[-1:] if options["work_blocks"]]


def _measured(found: Sequence[dict]) -> list[dict]:
    return [record for record in found if record["kind"] == "measurement"]
