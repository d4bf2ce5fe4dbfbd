"""`haloscope calibrate`: measure the costs of this machine's messages, packing and kernels, and write its profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from haloscope import errors, terminal
from haloscope.options.calibration import CALIBRATED, OF_PROGRAM
from haloscope.options.command import subcommand
from haloscope.options.hosts import starts_ranks
from haloscope.options.kinds import option
from haloscope.options.request import app_of


@subcommand(short_help="Measure this machine and write its profile.")
@CALIBRATED
@OF_PROGRAM
@option("--verbose", is_flag=True, help="Show every fitted point, and costs that may be 0.")
@starts_ranks
def command(output: Path, recorded: Path | None, app: str | None, **options: Any) -> None:
    """Measure the costs of messages, packing, transports, kernels and reductions here, and fit a machine profile.

    \b
    haloscope calibrate -o machine.json --quick
    haloscope calibrate -o machine.json --program ./gray-scott --app gray-scott
    haloscope predict laplace2d --cells 4096 --ranks 2 --profile machine.json

    Each point is measured in every launch, in random order, with all ranks at work. The same command continues an
    interrupted calibration, and starts a new one after a complete one.
    """
    from haloscope import records
    from haloscope.fit import calibrate, measuring, points
    from haloscope.measure import devices, lists
    from haloscope.model import profile
    from haloscope.report import calibrate as report

    if (app is None) != (options["program"] is None):
        raise errors.UsageError("--program and --app belong together; pass the program, and its app to measure")
    if app:
        app_of(app, options)
    measuring.refuse_output(output)
    wanted = lists.names(options["sections"], points.SECTIONS, "section")
    notes: list[str] = []
    if recorded:
        found, source = records.read_aloud(recorded).records, str(recorded)
    else:
        effort = measuring.effort_of(options["quick"], options["launches"], options["apps"])
        device = devices.default_device(options["device"])
        found, notes = measuring.measure(output, wanted, options["ranks"], effort, device)
        source = output.with_suffix(".jsonl").name
    made = calibrate.fit_profile(found, options["name"], source, notes)
    profile.save(made.data, output)
    terminal.echo(report.markdown(made, options["verbose"]) + f"\n\nprofile: {output}")
