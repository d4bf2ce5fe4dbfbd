"""`haloscope study`: run one published experiment and show its published figures beside ours."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from haloscope import errors, outputs, studies, terminal
from haloscope.options.kinds import option
from haloscope.options.study import CHANGES, RECORDS


@click.command(short_help="One published experiment, its published figures beside ours.")
@click.argument("name", required=False)
@option("--quick", is_flag=True, help="A minute or two on this machine instead of the study's own sizes.")
@CHANGES
@RECORDS
def command(name, quick, output, resume, recorded, slurm, replay, **changes):
    """Run the study NAME (white2011, valen2023, schroeter2021, davis2017, vanecek2020): measure, verify, and print its
    tables.

    Without --quick the study's own sizes and repetitions are used, which takes hours. --replay needs neither a cluster
    nor MPI; it ends with code 1 when a result misses the bar set for it.
    """
    from haloscope import records
    from haloscope.measure import campaign, space

    if name is None:
        for known in studies.NAMES:
            terminal.echo(f"{known:12} {studies.load(known).SUMMARY}")
        return errors.OK
    if name not in studies.NAMES:
        raise errors.UsageProblem(errors.unknown_name("study", name, studies.NAMES))
    study = studies.load(name)
    if replay:
        return _replay(study, name)
    kept = [r for path in recorded for r in records.read_aloud(path).records]
    changes["device"] = _device(study, changes["device"], kept)
    options = _options(study.DEFAULTS["quick" if quick else "full"], changes)
    if slurm:
        return _write_jobs(study, options, slurm)
    if recorded:
        return _report(study, kept, options, recorded[0])
    planned = study.plan(options)
    space.refuse_if_none_can_run(planned)
    file = output or records.scratch(name)
    if hasattr(study, "figures"):
        outputs.refuse_foreign_figure(outputs.stem_of(file))
    run = campaign.Campaign(planned, file, launches=options.launches, resume=resume, what=name)
    return _report(study, run.run(), options, file, measured=True)


def _device(study, asked: str | None, kept: list[dict]) -> str:
    """Return the back end of a study that knows devices: as requested, or that of existing records, or a card here."""
    from haloscope import records
    from haloscope.measure import devices

    if not hasattr(study, "ON_DEVICE"):
        if asked:
            raise errors.UsageProblem(
                "this study has no versions for devices; --device works with white2011, valen2023, vanecek2020"
            )
        return ""
    if kept and not asked:
        used = {r["request"].get("device", "") for r in kept if r["kind"] in records.MEASURED}
        return used.pop() if len(used) == 1 else ""
    return devices.pick(asked or "")


def _replay(study, name: str) -> int:
    if not hasattr(study, "replay"):
        able = [known for known in studies.NAMES if hasattr(studies.load(known), "replay")]
        raise errors.UsageProblem(f"{name} has nothing to recompute; --replay works with {', '.join(able)}")
    replayed = study.replay()
    terminal.echo(f"# {study.SUMMARY}\n\n{replayed.text}")
    return errors.FAILED if replayed.missed else errors.OK


def _report(study, found: list[dict], options: studies.Options, file: Path, measured: bool = False) -> int:
    from haloscope.measure import campaign

    terminal.echo(f"# {study.SUMMARY}\n\n{study.report(found, options)}\n\nrecords: {file}")
    if hasattr(study, "beside") and (text := study.beside(file, options, measured)):
        terminal.echo(f"\n{text}")
    if hasattr(study, "figures") and (drawn := study.figures(found, options, outputs.stem_of(file))):
        terminal.echo(f"figure:  {', '.join(map(str, drawn))}")
    return campaign.exit_code(found)


def _write_jobs(study, options: studies.Options, folder: Path) -> int:
    from haloscope.measure import slurm

    if not hasattr(study, "slurm_jobs"):
        raise errors.UsageProblem("this study has no job scripts; --slurm works with schroeter2021")
    files = slurm.write(study.slurm_jobs(options), folder)
    terminal.echo(f"{len(files)} files in {folder}; set HALOSCOPE_RANK and start {folder / 'submit.sh'}")
    return errors.OK


def _options(defaults: studies.Options, changes: dict) -> studies.Options:
    from haloscope.measure import launch, lists

    changes["cores"] = launch.cores()
    for key in ("sizes", "depths"):
        changes[key] = tuple(lists.numbers(changes[key], f"--{key}")) if changes[key] else None
    return dataclasses.replace(defaults, **{key: value for key, value in changes.items() if value})
