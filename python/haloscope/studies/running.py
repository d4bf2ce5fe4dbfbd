"""One study, from the options of `haloscope study` to its report: measured here, from records, or recomputed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from haloscope import guests, outputs, records, studies
from haloscope.errors import UnavailableError, UsageError, unknown_name
from haloscope.measure import campaign, devices, launch, lists, slurm, space
from haloscope.studies.checks import Replay


def listing() -> str:
    """Return a line for each study. Raises UnavailableError where none is installed."""
    return "\n".join(f"{name:12} {studies.load(name).SUMMARY}" for name in _names())


def find_study(name: str) -> ModuleType:
    """Return the module of a study. Raises UsageError for an unknown one, UnavailableError where none is installed."""
    if name not in _names():
        raise UsageError(unknown_name("study", name, _names()))
    return studies.load(name)


def _names() -> tuple[str, ...]:
    if found := studies.names():
        return found
    raise UnavailableError(f"no study is installed: {guests.ABSENT}")


def _with(attribute: str) -> str:
    """Return the names of the studies that have an optional attribute."""
    return ", ".join(name for name in studies.names() if hasattr(studies.load(name), attribute))


def options_of(study: ModuleType, quick: bool, changes: Mapping[str, Any], found: Sequence[Mapping]) -> studies.Options:
    """Return the options of a study: its defaults, with changes where specified.

    found: existing records, whose device counts where none is named. Raises UsageError for lists that cannot be read,
    and for a device where the study has no versions for one.
    """
    wanted = {**changes, "device": _device_of(study, changes["device"], found), "cores": launch.cores()}
    for key in ("sizes", "depths"):
        wanted[key] = tuple(lists.numbers(wanted[key], f"--{key}")) if wanted[key] else None
    defaults: studies.Options = study.DEFAULTS["quick" if quick else "full"]
    return dataclasses.replace(defaults, **{key: value for key, value in wanted.items() if value})


def _device_of(study: ModuleType, named: str | None, found: Sequence[Mapping]) -> str:
    """Return the back end of a study with devices: the named one, else that of records, else a GPU found here."""
    if not hasattr(study, "ON_DEVICE"):
        if named:
            raise UsageError(f"this study has no versions for devices; --device works with {_with('ON_DEVICE')}")
        return ""
    if found and not named:
        used = {r["request"].get("device", "") for r in found if r["kind"] in records.MEASURED}
        return used.pop() if len(used) == 1 else ""
    return devices.default_device(named or "")


def replay(study: ModuleType, name: str) -> Replay:
    """Return the paper's results, recomputed. Raises UsageError for a study without data to recompute."""
    if not hasattr(study, "replay"):
        raise UsageError(f"{name} has nothing to recompute; --replay works with {_with('replay')}")
    replayed: Replay = study.replay()
    return replayed


def write_jobs(study: ModuleType, options: studies.Options, folder: Path) -> str:
    """Write job scripts for Slurm; return the line that names them. Raises UsageError for a study without any."""
    if not hasattr(study, "slurm_jobs"):
        raise UsageError(f"this study has no job scripts; --slurm works with {_with('slurm_jobs')}")
    files = slurm.write(study.slurm_jobs(options), folder)
    return f"{len(files)} files in {folder}; set HALOSCOPE_RANK and start {folder / 'submit.sh'}"


def measure(study: ModuleType, name: str, options: studies.Options, file: Path, resume: bool) -> list[dict]:
    """Measure a study and return its records, which go to a file. Raises UsageError where nothing can run."""
    planned = study.plan(options)
    space.refuse_if_none_can_run(planned)
    if hasattr(study, "figures"):
        outputs.refuse_foreign_figure(outputs.stem_of(file))
    return campaign.Campaign(planned, file, launches=options.launches, resume=resume, label=name).run()


def report(
    study: ModuleType, found: Sequence[dict], options: studies.Options, file: Path, measured: bool
) -> Iterator[str]:
    """Yield the report of a study, the results of other programs next to it, and the line that names its figures.

    measured: the records are new, so that the other programs are measured too.
    """
    yield f"# {study.SUMMARY}\n\n{study.report(found, options)}\n\nrecords: {file}"
    if hasattr(study, "other_programs") and (text := study.other_programs(file, options, measured)):
        yield f"\n{text}"
    if hasattr(study, "figures") and (drawn := study.figures(found, options, outputs.stem_of(file))):
        yield f"figure:  {', '.join(map(str, drawn))}"
