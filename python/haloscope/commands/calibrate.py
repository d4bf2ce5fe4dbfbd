"""`haloscope calibrate`: measure what this machine's messages, packing and kernels cost, and write a machine
profile.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from haloscope import errors, outputs, terminal
from haloscope.options import FileName, app_of, starts_ranks
from haloscope.options import command as command_of


@command_of(short_help="Measure this machine and write its profile.")
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
    from haloscope import core, records
    from haloscope.calibration import calibrate, points
    from haloscope.measure import devices, lists
    from haloscope.model import profile

    if (app is None) != (program["program"] is None):
        raise errors.UsageProblem("--program and --app belong together: the program, and which of its apps is measured")
    if app:
        app_of(app, program)
    if output.suffix != ".json":
        raise errors.UsageProblem(f"--output {output} is no .json file; write for example -o machine.json")
    outputs.refuse_foreign(output, outputs.PROFILE)
    wanted = lists.names(sections, points.SECTIONS, "section")
    notes: list[str] = []
    if recorded:
        found, source = records.read_aloud(recorded).records, str(recorded)
    else:
        measured = lists.names(apps, core.app_names(), "app") if apps else ()
        effort = dataclasses.replace(points.QUICK if quick else points.FULL, apps=tuple(measured))
        found, notes = _measured(output, wanted, ranks, launches, effort, devices.pick(device))
        source = output.with_suffix(".jsonl").name
    made = calibrate.fit_profile(found, name, source, notes)
    profile.save(made.data, output)
    terminal.echo(_report(made, verbose) + f"\n\nprofile: {output}")


def _measured(output: Path, sections, ranks, launches, effort, device) -> tuple[list[dict], list[str]]:
    """Measure and return the records of the sections, and notes on them."""
    from haloscope import records
    from haloscope.calibration import points
    from haloscope.measure import campaign, hosts, launch, space

    ranks = ranks or launch.cores()
    effort = dataclasses.replace(effort, launches=launches or effort.launches)
    planned = points.all_points(sections, ranks, launch.cores(), effort, device, hosts.count())
    alone = [s for s in sections if ranks < 2 and s in points.NEEDS_PEERS]
    notes = [f"section '{s}' needs 2 ranks or more, and there was 1" for s in alone]
    if not planned and not alone:
        raise errors.UsageProblem("device: there is none here to measure; give --device host for an imitated one")
    if not planned:
        raise errors.UsageProblem(f"{', '.join(alone)}: nothing can be measured with 1 rank; use --ranks 2 or more")
    file = output.with_suffix(".jsonl")
    records.refuse_foreign(file)
    records.prepare(file)
    if output.exists() and file.stat().st_size:  # complete: keep the old records, but do not mix the two
        outputs.refuse_foreign(output.with_suffix(".json~"), outputs.PROFILE)
        outputs.move(file, file.with_suffix(".jsonl~"), outputs.RECORDS)
        outputs.move(output, output.with_suffix(".json~"), outputs.PROFILE)
    run = campaign.Campaign(space.Space(planned), file, launches=effort.launches, resume=True, what="calibrating")
    return run.run(), notes


def _report(made, verbose: bool) -> str:
    """Return what was fitted as Markdown: segments with borders, intervals and residuals, transports, notes."""
    from haloscope.calibration import calibrate

    m = made.data["machine"]
    cores = f"{m['nodes']} x {m['sockets_per_node']} x {m['cores_per_socket']} cores"
    parts = [
        f"# Machine profile '{made.data['name']}'",
        f"{m['cpu']}, {cores}, {made.data['mpi_library']}. Errors are those of the fitted points.",
    ]
    if made.laws:
        parts.append(_laws(made.laws))
    if made.contention:
        parts.append(_contention(made.contention))
    steps = [t for t in made.transports if t.name.startswith("steps/")]
    for title, terms in (
        ("What steps cost beside their parts", steps),
        ("What transports add: p2p to messages alone, others to p2p", [t for t in made.transports if t not in steps]),
    ):
        if terms:
            parts.append(_terms(title, terms))
    for call, rows in made.data.get("reductions", {}).items():
        times = ", ".join(f"{r['time_s'] * 1e6:.3g} us on {r['ranks']} ranks" for r in rows)
        parts.append(f"{call.replace('all', 'All-')} of one number: {times}.")
    if verbose:
        parts += [_points(law) for law in made.laws]
        unknown = calibrate.not_identified(made)
        parts.append("\n".join(f"- {name}: {', '.join(names)} not told from 0" for name, names in unknown))
    if made.data["notes"]:
        parts.append("\n".join(f"- {note}" for note in made.data["notes"]))
    return "\n\n".join(parts)


def _laws(laws) -> str:
    import math

    import numpy as np

    from haloscope.report import tables

    headers = ["cost", "from", "to", "fixed (us)", "95 %", "per unit (ns)", "95 % ", "points", "median error", "worst"]
    rows = []
    for law in laws:
        for s in law.segments:
            errors_ = law.errors(s)
            rows.append(
                [
                    law.name,
                    f"{s.start:g} {law.unit}",
                    "" if math.isinf(s.end) else f"{s.end:g}",
                    *_value(s.fixed, s.interval.get("fixed"), 1e6),
                    *_value(s.slope, s.interval.get("slope"), 1e9),
                    len(errors_),
                    f"{100 * np.median(errors_):.1f} %",
                    f"{100 * errors_.max():.0f} %",
                ]
            )
    return tables.markdown(rows, headers, right=headers[1:])


def _value(value: float, interval, factor: float) -> tuple[str, str]:
    """A parameter that the data do not identify has no interval, and is not shown."""
    if interval is None:
        return "", ""
    return f"{value * factor:.3g}", " .. ".join(f"{end * factor:.3g}" for end in interval)


def _contention(terms) -> str:
    import numpy as np

    shown = ", ".join(
        "{} {} ({})".format(name, *_value(value, terms.interval[name], 1)) for name, value in terms.values.items()
    )
    return f"Messages at the same time: {shown}; median error {100 * np.median(np.abs(terms.errors)):.1f} %."


def _terms(title: str, fits) -> str:
    import numpy as np

    from haloscope.report import tables

    names = list(dict.fromkeys(name for t in fits for name in t.values))
    unit = {name: _unit(name) for name in names}
    headers = [
        "of",
        *(f"{name.removesuffix('_s')} ({unit[name][1]})" for name in names),
        "points",
        "median error",
    ]
    rows = []
    for t in fits:
        cells = []
        for name in names:
            value, ends = _value(t.values.get(name, 0.0), t.interval.get(name), unit[name][0])
            cells.append(f"{value} ({ends})" if value else "")
        rows.append([t.name.partition("/")[2], *cells, t.rows, f"{100 * np.median(np.abs(t.errors)):.0f} %"])
    return f"{title}:\n\n" + tables.markdown(rows, headers, right=headers[1:])


def _unit(parameter: str) -> tuple[float, str]:
    """Return the factor that scales a parameter for display, and the unit."""
    if parameter.endswith("_share"):
        return 100, "%"
    return (
        (1e6, "us") if parameter in ("per_message_s", "per_round_s", "per_exchange_s", "per_program_s") else (1e9, "ns")
    )


def _points(law) -> str:
    import numpy as np

    from haloscope.model.segments import evaluate
    from haloscope.report import tables

    rows = []
    for amount in sorted({r.amount for r in law.rows}):
        times = [r.seconds for r in law.rows if r.amount == amount]
        fitted, measured = evaluate(law.segments, amount), float(np.median(times))
        rows.append(
            [f"{amount:g}", f"{measured * 1e6:.3g}", f"{fitted * 1e6:.3g}", f"{100 * (fitted / measured - 1):+.1f} %"]
        )
    headers = [law.unit, "measured (us)", "fitted (us)", "error"]
    return f"{law.name}\n\n" + tables.markdown(rows, headers, right=headers)
