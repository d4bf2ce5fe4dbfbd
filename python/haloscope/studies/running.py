"""One study, from the options of `haloscope study` to its report: measured here, from records, or recomputed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from haloscope import guests, outputs, records, studies
from haloscope.errors import HaloscopeError, UnavailableError, UsageError, unknown_name
from haloscope.measure import campaign, devices, launch, lists, slurm, space
from haloscope.report.page import Section, Table, write_requested
from haloscope.studies import findings, paper_panels, provenance
from haloscope.studies.checks import Replay
from haloscope.terminal import say, shown

MOST_OTHERS = 5  # configurations of other plans that are named


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


def options_and_records(
    study: ModuleType, name: str, quick: bool, changes: Mapping[str, Any], files: Sequence[Path]
) -> tuple[studies.Options, list[dict]]:
    """Return the options of a study, of the files of records if there are any, and the records that they plan.

    The other records are named on the error output. Raises HaloscopeError where no record is left, UsageError as
    `recorded_options` and `options_of` do.
    """
    read = [records.read_aloud(path) for path in files]
    found = [record for file in read for record in file.records]
    recorded = recorded_options(name, [plan for file in read for plan in file.studies])
    options = options_of(study, quick, changes, found, recorded)
    return options, planned_records(study, found, options) if files else []


def recorded_options(name: str, plans: Sequence[Mapping]) -> studies.Options | None:
    """Return the options by which records of a study were planned; None where they do not hold them.

    Raises UsageError for records of another study, and of several plans of this one.
    """
    if others := [plan["id"] for plan in plans if plan["id"] != name]:
        raise UsageError(f"these are records of study {others[0]}, not of {name}; run `haloscope study {others[0]}`")
    if not plans:
        return None
    known = {field.name for field in dataclasses.fields(studies.Options)}
    first, *more = (
        studies.Options(**{key: _as_tuple(value) for key, value in plan["options"].items() if key in known})
        for plan in plans
    )
    for other in more:
        if difference := _difference(first, other):
            raise UsageError(f"these are records of {name} with different options, {difference}; report each alone")
    return first


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _difference(one: studies.Options, other: studies.Options) -> str:
    """Return the first option in which two plans of a study differ, with both values; "" where none counts."""
    for key, value in dataclasses.asdict(dataclasses.replace(one, launches=other.launches)).items():
        if value != getattr(other, key):
            return f"{key} {_as_text(value)} and {_as_text(getattr(other, key))}"
    return ""


def _as_text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def options_of(
    study: ModuleType,
    quick: bool,
    changes: Mapping[str, Any],
    found: Sequence[Mapping] = (),
    recorded: studies.Options | None = None,
) -> studies.Options:
    """Return the options of a study: of its records, else of this call and machine, with changes where specified.

    found: existing records, whose device counts where none is named. recorded: the options by which they were planned,
    if known. Raises UsageError for lists that cannot be read, for options of records without sizes or depths that the
    study needs, and for a device where the study has no versions for one.
    """
    base: studies.Options = recorded or study.DEFAULTS["quick" if quick else "full"]
    wanted = {"sizes": "", "depths": "", "device": "", **changes}
    if recorded is None:
        wanted["cores"] = launch.cores()
    if recorded is None or wanted["device"]:
        wanted["device"] = _device_of(study, wanted["device"], found)
    for key in ("sizes", "depths"):
        wanted[key] = tuple(lists.numbers(wanted[key], f"--{key}")) if wanted[key] else None
    made = dataclasses.replace(base, **{key: value for key, value in wanted.items() if value})
    for key in ("sizes", "depths"):
        if getattr(study.DEFAULTS["full"], key) and not getattr(made, key):
            raise UsageError(f"these records hold no {key} of the study; pass the ones that were measured by --{key}")
    return made


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


def planned_records(study: ModuleType, found: Sequence[dict], options: studies.Options) -> list[dict]:
    """Return the records that a study plans with some options; the others are named on the error output.

    A study with ANY_PLAN takes all records. Raises HaloscopeError where none is left.
    """
    if found and hasattr(study, "ANY_PLAN"):
        return list(found)
    planned = {request.id: request.request() for request in study.plan(options).all()}
    kept: list[dict] = []
    left_out: list[str] = []
    for record in found:
        if _is_planned(record, planned.get(record["id"])):
            kept.append(record)
        else:
            left_out.append(record["id"])
    others = list(dict.fromkeys(left_out))
    if not kept:
        such = f", such as {shown(others[0])}" if others else ""
        raise HaloscopeError(
            f"none of {len(found)} records is of this plan{such}; pass --quick, --sizes and the other options with "
            "which they were measured"
        )
    if others:
        more = f" and {len(others) - MOST_OTHERS} more" * (len(others) > MOST_OTHERS)
        say(
            f"{len(left_out)} of {len(found)} records are not of this plan and left out: "
            f"{'; '.join(map(shown, others[:MOST_OTHERS]))}{more}"
        )
    return kept


def _is_planned(record: Mapping, request: Mapping | None) -> bool:
    """Return whether a record is of a planned request: by its id and, where it was measured, its own request."""
    if request is None or record["kind"] not in records.MEASURED:
        return request is not None
    own = record["request"]
    same = all(own.get(name) == request.get(name, own.get(name)) for name in ("app", "cells", "ranks"))
    return same and len(own.get("process_grid", own["cells"])) == len(own["cells"])


def replay(study: ModuleType, name: str) -> Replay:
    """Return the paper's results, recomputed, with its findings judged by the printed numbers.

    Raises UsageError for a study without data to recompute.
    """
    if not hasattr(study, "replay"):
        raise UsageError(f"{name} has nothing to recompute; --replay works with {_with('replay')}")
    replayed: Replay = study.replay()
    if not hasattr(study, "findings"):
        return replayed
    judged = findings_of(study, (), study.DEFAULTS["full"])
    return dataclasses.replace(replayed, text=f"{replayed.text}\n\n{judged}")


def write_files(
    study: ModuleType,
    name: str,
    options: studies.Options,
    found: Sequence[dict],
    recorded: Sequence[Path],
    jobs: Path | None = None,
    figures: Path | None = None,
) -> str:
    """Write job scripts, the figures of the paper or both into folders; return the lines that name them.

    found: the records of the files `recorded`. Raises UsageError for a study without any.
    """
    texts = [write_jobs(study, name, options, jobs)] if jobs else []
    if figures:
        texts += [draw_paper(study, name, options, found, recorded, figures)]
    return "\n".join(texts)


def draw_paper(
    study: ModuleType,
    name: str,
    options: studies.Options,
    found: Sequence[dict],
    recorded: Sequence[Path],
    folder: Path,
) -> str:
    """Draw the figures of a study's paper, as SVG and PNG; return a line for each file of panels.

    found: the records of the files `recorded`. Raises UsageError for a study without any. Cost: ten seconds.
    """
    paper = paper_panels.load(name)
    if paper is None:
        raise UsageError(f"{name} lists no figures of its paper; give its package `data` a file {paper_panels.FILE}")
    from haloscope.studies import paper_figures  # slow to import

    stem = outputs.stem_of(recorded[0]) if recorded else None
    others = study.paper_lines(found, options, stem) if hasattr(study, "paper_lines") else {}
    drawn = paper_figures.draw(paper, others, provenance.sentence(found), folder)
    return "\n".join(
        f"{file}: {len(sheet.panels)} panels" for file, sheet in zip(drawn[::2], paper.sheets, strict=True)
    )


def write_jobs(study: ModuleType, name: str, options: studies.Options, folder: Path) -> str:
    """Write job scripts for Slurm; return the line that names them. Raises UsageError for a study without any."""
    if not hasattr(study, "slurm_jobs"):
        raise UsageError(f"this study has no job scripts; --slurm works with {_with('slurm_jobs')}")
    files = slurm.write(study.slurm_jobs(options), folder, records.of_study(name, dataclasses.asdict(options)))
    return (
        f"{len(files)} files in {folder}; set HALOSCOPE_RANK and start {folder / 'submit.sh'}, then report on "
        f"{folder / slurm.HEADING} and all files of records, each by --from"
    )


def measure(study: ModuleType, name: str, options: studies.Options, file: Path, resume: bool) -> list[dict]:
    """Measure a study and return its records, which go to a file behind the options of the study.

    Raises UsageError where nothing can run, and for a file with records of another study or of other options.
    """
    planned = study.plan(options)
    space.refuse_if_none_can_run(planned)
    before = records.read(file).studies if file.is_file() else []
    if (held := recorded_options(name, before)) and (difference := _difference(held, options)):
        raise UsageError(f"{file} holds records of {name} with {difference} here; give --output another file")
    if hasattr(study, "figures"):
        outputs.refuse_foreign_figure(outputs.stem_of(file))
    heading = None if before else records.of_study(name, dataclasses.asdict(options))
    return campaign.Campaign(planned, file, options.launches, resume=resume, label=name, heading=heading).run()


def report(
    study: ModuleType,
    found: Sequence[dict],
    options: studies.Options,
    file: Path,
    measured: bool,
    page: Path | None = None,
) -> Iterator[str]:
    """Yield the report of a study, the results of other programs next to it, and the findings of the paper.

    measured: the records are new, so that the other programs are measured too. The files go to the error output, so
    that the report depends on the records alone. page: file of the page of figures; None: no page.
    """
    origin = provenance.sentence(found)
    yield "\n\n".join(filter(None, [f"# {study.SUMMARY}", origin, study.report(found, options)]))
    if hasattr(study, "other_programs") and (text := study.other_programs(file, options, measured)):
        yield f"\n{text}"
    if hasattr(study, "findings"):
        yield f"\n{findings_of(study, found, options)}"
    say(f"records: {file}")
    if hasattr(study, "figures") and (drawn := _draw(study, found, options, outputs.stem_of(file), origin)):
        say(f"figure:  {', '.join(map(str, drawn))}")
    write_requested(page, found, first=[_judged(study, found, options)] if page else (), err=True)


def _draw(
    study: ModuleType, found: Sequence[dict], options: studies.Options, stem: Path, description: str
) -> list[Path]:
    """Draw the figures of a study, with a description in their files. Returns the files."""
    from haloscope.report import figures  # slow to import

    with figures.described(description):
        return list(study.figures(found, options, stem))


def _judged(study: ModuleType, found: Sequence[dict], options: studies.Options) -> Section:
    """Return the findings of a study's paper as a section of a page."""
    judged = study.findings(found, options) if hasattr(study, "findings") else []
    if not judged:
        return Section("Findings of the paper")
    made = Table(findings.HEADERS, findings.lines_of(judged))
    return Section("Findings of the paper", [findings.summary(judged)], tables=[made])


def findings_of(study: ModuleType, found: Sequence[dict], options: studies.Options) -> str:
    """Return the findings of a study's paper as a table, judged by some records."""
    return f"### Findings of the paper\n\n{findings.table(study.findings(found, options))}"
