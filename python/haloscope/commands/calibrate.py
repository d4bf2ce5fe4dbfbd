"""`haloscope calibrate`: measure what this machine's messages, packing and kernels cost, and write a machine
profile.
"""

from __future__ import annotations

from pathlib import Path

import click

from haloscope import errors, terminal
from haloscope.options.command import subcommand
from haloscope.options.hosts import starts_ranks
from haloscope.options.kinds import FileName
from haloscope.options.request import app_of


@subcommand(short_help="Measure this machine and write its profile.")
@click.option(
    "-o",
    "--output",
    type=FileName(),
    required=True,
    metavar="FILE.json",
    help="The profile; its records are kept beside it, in FILE.jsonl.",
)
@click.option("--quick", is_flag=True, help="Fewer sizes and shorter samples: under a minute on 2 cores.")
@click.option("--ranks", type=click.IntRange(1, 100_000), help="Most ranks that measure at once. [cores]")
@click.option("--launches", type=click.IntRange(1, 1000), help="Starts of the ranks, the outer sample. [5; quick 3]")
@click.option(
    "--sections",
    default="*",
    metavar="LIST",
    help="network, pack, kernels, steps, transports, reductions, device; globs. [all]",
)
@click.option(
    "--device", default="", help="Device to measure too: cuda, hip, host (imitated), none. [a card that is here]"
)
@click.option("--name", default="", help="Name of the profile. [the host's]")
@click.option(
    "--from",
    "recorded",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="RECORDS",
    help="Fit records of an earlier calibration again; nothing is measured.",
)
@click.option("--apps", metavar="LIST", help="Apps whose kernels are measured; globs. [those of few sweeps a step]")
@click.option("--app", "app", metavar="APP", help="App of --program whose sweeps are measured too.")
@click.option(
    "--program",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Program with its own app, linked with haloscope::rank_main.",
)
@click.option("--set", "given_set", multiple=True, metavar="NAME=VALUE", help="A parameter of that app.")
@click.option("--verbose", is_flag=True, help="Show every fitted point, and what could not be told from 0.")
@starts_ranks
def command(output, quick, ranks, launches, sections, device, name, recorded, verbose, apps, app, **program):
    """Measure what messages, packing, transports, kernels and reductions cost here, and fit a machine profile.

    \b
    haloscope calibrate -o machine.json --quick
    haloscope calibrate -o machine.json --program ./gray-scott --app gray-scott
    haloscope predict laplace2d --cells 4096 --ranks 2 --profile machine.json

    Each point is measured in every launch, in random order, with all ranks at work. A calibration that was cut off goes
    on where it ended when the same command is given again; one that is complete starts anew.
    """
    from haloscope import records
    from haloscope.calibration import calibrate, measuring, points
    from haloscope.measure import devices, lists
    from haloscope.model import profile
    from haloscope.report import calibrate as report

    if (app is None) != (program["program"] is None):
        raise errors.UsageProblem("--program and --app belong together: the program, and which of its apps is measured")
    if app:
        app_of(app, program)
    measuring.refuse_output(output)
    wanted = lists.names(sections, points.SECTIONS, "section")
    notes: list[str] = []
    if recorded:
        found, source = records.read_aloud(recorded).records, str(recorded)
    else:
        effort = measuring.effort_of(quick, launches, apps)
        found, notes = measuring.measure(output, wanted, ranks, effort, devices.pick(device))
        source = output.with_suffix(".jsonl").name
    made = calibrate.fit_profile(found, name, source, notes)
    profile.save(made.data, output)
    terminal.echo(report.markdown(made, verbose) + f"\n\nprofile: {output}")
