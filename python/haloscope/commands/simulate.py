"""`haloscope simulate`: a step's time on 10^3 to 10^6 ranks, each message simulated at a profile's prices. No MPI."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click

from haloscope import outputs, terminal
from haloscope.commands import predict
from haloscope.commands.run import refuse_if_none_can_run
from haloscope.errors import UsageProblem
from haloscope.options import ChoiceOptions, FileName, FiniteRange, app_of, option, options_of, space_of
from haloscope.options import command as command_of
from haloscope.records.text import cell

SIMULATED = options_of(
    option(
        "--steps",
        "-i",
        type=click.IntRange(1, 1_000_000),
        default=10,
        help="Time steps, at least two exchanges; the second half counts. [10]",
    ),
    option(
        "--noise",
        default="0",
        metavar="SECONDS|PERCENT%",
        help="Mean of an exponential delay of each operation: 2e-6, or 1% of its own time. [none]",
    ),
    option("--weak", is_flag=True, help="--cells are those of one rank: the grid grows with the ranks."),
    option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, group="machine", help="Of the noise. [0]"),
    option(
        "--overhead",
        type=FiniteRange(0),
        default=0.0,
        group="machine",
        help="Seconds that both ends are busy with a message, taken out of its latency. [0]",
    ),
    option(
        "--gap",
        type=FiniteRange(0),
        default=0.0,
        group="machine",
        help="Least seconds between two sends of a rank. [0]",
    ),
    option("--offload", is_flag=True, group="machine", help="Rendezvous messages travel once posted, without calls."),
    option(
        "--goal",
        type=FileName(),
        metavar="FILE",
        group="output",
        help="Write the message schedule as GOAL, for LogGOPSim (one choice).",
    ),
    option("--extrap", type=FileName(), metavar="FILE", group="output", help="Write the times as Extra-P JSON Lines."),
    option(
        "--plot",
        type=FileName(stem=True),
        metavar="STEM",
        group="output",
        help="Draw time over ranks: STEM.svg, STEM.png.",
    ),
    option("--json", "as_json", is_flag=True, group="output", help="One JSON document instead of a table."),
)


@command_of(
    short_help="Time per step on up to 10^6 ranks, simulated message by message.",
    choice=ChoiceOptions(lists=True, without=predict.HERE, usual={"ranks": "2"}),
)
@click.argument("app")
@predict.PLACED
@SIMULATED
def command(app, profile, goal, extrap, plot, as_json, weak, **options):
    """Simulate APP on many ranks, message by message; lists and ranges make a space as in `haloscope run`.

    \b
    haloscope simulate laplace2d --cells 65536 -n 1024..131072*2 --profile machine.json --plot strong
    haloscope simulate advection3d --cells 64 --weak -n 1000,100000 --noise 1% --profile machine.json

    What an operation costs is what `haloscope predict` says; a simulation adds queues for what ranks share, delays that
    travel from rank to rank, and noise. All times are simulated.
    """
    from haloscope.model import profile as profiles
    from haloscope.simulate import simulate

    machine = profiles.load(profile)
    how, setting = _how(options), predict.setting_of(options)
    planned = plan_space(
        app_of(app, options), options | {"device": predict.device_of(options["device"], machine)}, weak
    )
    if goal and len(planned.requests) > 1:
        raise UsageProblem("--goal writes one schedule, and this is a space; ask for one choice")
    _refuse_foreign(goal, extrap, plot)
    made = []
    for request in planned.requests:
        made.append((request, simulate.simulate(request.choice, machine, setting, how)))
        if goal:
            _write_goal(goal, request.choice, machine, setting, made[0][1].rounds)
    terminal.echo(terminal.json_text(document(made)) if as_json else markdown(made, weak))
    if extrap:
        outputs.write(extrap, outputs.POINTS, "".join(f"{json.dumps(line)}\n" for line in measurements(made)))
        terminal.say(f"wrote {extrap}")
    if plot:
        draw(made, weak, plot)


def _how(options: dict):
    from haloscope.simulate.simulate import How

    noise = options.pop("noise")
    try:
        mean = float(noise.removesuffix("%"))
    except ValueError:
        mean = -1.0
    if not 0 <= mean < float("inf"):
        raise UsageProblem(f"--noise '{noise}' is no delay; write seconds (2e-6) or a part of each operation (1%)")
    share = noise.endswith("%")
    return How(
        steps=options.pop("steps"),
        noise_s=0.0 if share else mean,
        noise_share=mean / 100 if share else 0.0,
        seed=options.pop("seed"),
        overhead_s=options.pop("overhead"),
        gap_s=options.pop("gap"),
        by_itself=options.pop("offload"),
    )


def plan_space(app, options: dict, weak: bool):
    """Return what to simulate. weak: --cells are those of one rank. Raises UsageProblem when nothing can run."""
    from haloscope.measure import lists, space
    from haloscope.simulate.simulate import scaled

    planned = space.Space()
    if not weak:
        planned = space_of(app, options, {})
    elif not options["cells"]:
        raise UsageProblem("a weak scaling needs the cells of one rank; for example --cells 64")
    else:
        rules = (options["process_grid"] or app.process_grid or ("square" if app.dims == 2 else "cubic")).split(",")
        for block in lists.shapes(options["cells"], app.dims):
            for ranks in lists.numbers(options["ranks"], "--ranks"):
                for rule in rules:
                    cells, grid = scaled(block, rule, ranks)
                    one = {"cells": "x".join(map(str, cells)), "ranks": str(ranks), "process_grid": grid}
                    planned += space_of(app, options | one, {})
    refuse_if_none_can_run(planned)
    return planned


def _refuse_foreign(goal: Path | None, extrap: Path | None, plot: Path | None) -> None:
    if goal:
        outputs.refuse_foreign(goal, outputs.SCHEDULE)
    if extrap:
        outputs.refuse_foreign(extrap, outputs.POINTS)
    if plot:
        outputs.refuse_foreign_figure(plot)


def _write_goal(path: Path, choice, machine, setting, rounds: int) -> None:
    from haloscope.simulate import goal, simulate

    cast = simulate.Cast(choice, machine, setting)
    with outputs.writing(path, outputs.SCHEDULE) as file:
        lines = goal.write(cast, rounds, file)
    terminal.say(f"wrote {path}: GOAL, {lines} lines, {choice.ranks} ranks")


def document(made: list) -> dict:
    """Return simulations as plain data: seconds per time step."""
    return {
        "schema": "haloscope.simulations",
        "schema_version": 1,
        "simulations": [
            {"id": request.id, **dataclasses.asdict(s), "choice": s.choice.to_json()} for request, s in made
        ],
    }


def measurements(made: list) -> list[dict]:
    """Return simulated seconds per step as Extra-P reads them: one line per point and operation.

    Parameters are the ranks and those of cells, threads and depth that vary; anything but a number is part of the call
    path. Extra-P ignores the origin.
    """
    import math

    axes = {
        "ranks": lambda c: c.ranks,
        "cells": lambda c: math.prod(c.cells),
        "threads": lambda c: c.threads,
        "depth": lambda c: c.depth,
    }
    used = {name: of for name, of in axes.items() if name == "ranks" or len({of(r.choice) for r, _ in made}) > 1}
    lines = []
    for request, s in made:
        choice = request.choice
        params = {name: of(choice) for name, of in used.items()}
        path = f"{choice.app} {choice.schedule} {choice.strategy}"
        times = {path: s.time_s} | {f"{path}->{kind}": t for kind, t in s.by_operation.items() if t > 0}
        lines += [
            {"origin": outputs.SIMULATED, "params": params, "callpath": p, "metric": "simulated_s", "value": t}
            for p, t in times.items()
        ]
    return lines


def markdown(made: list, weak: bool) -> str:
    """Return a table of simulations, then what a reader must know of them."""
    from haloscope.core import capi
    from haloscope.report import tables

    axes = [
        a
        for a in tables.axes()
        if a in ("ranks", "schedule", "strategy")
        or (a != "process_grid" and len({getattr(r.choice, a) for r, _ in made}) > 1)
    ]
    kinds = [kind for kind in capi.enumeration("HS_OP_") if any(s.by_operation[kind] > 0 for _, s in made)]
    unit, factor = tables.unit(s.time_s for _, s in made)
    timed = f"simulated step ({unit})"
    headers = [*axes, timed, "rank mean", "95 % of ranks", *kinds, "last rank", "events", "took (s)"]
    rows = []
    for r, s in made:
        times = [s.time_s, s.mean_s, s.percentiles[95], *(s.by_operation[kind] for kind in kinds)]
        shown = [cell(getattr(r.choice, axis)) for axis in axes]
        rows.append([*shown, *(tables.number(t * factor) for t in times), s.worst_rank, s.events, f"{s.wall_s:.1f}"])
    how = made[0][1].how
    title = f"# Simulated: {made[0][0].choice.app}" + (", weak scaling" if weak else "")
    text = (
        f"{title}\n\nMachine profile: {made[0][1].profile}. Simulated times in {unit} per step over the second half of "
        f"{how.steps} steps (at least two exchanges), {_noise(how)}. Operations: mean over ranks, waiting included.\n\n"
    )
    right = (
        "ranks",
        "depth",
        "threads",
        timed,
        "rank mean",
        "95 % of ranks",
        *kinds,
        "last rank",
        "events",
        "events/s",
    )
    text += tables.markdown(rows, headers, right=right)
    return text + "".join(f"\n\n{line}" for line in predict.remarks(made))


def _noise(how) -> str:
    delays = [f"{how.noise_s:g} s"] * (how.noise_s > 0) + [f"{how.noise_share:.3g} of its time"] * (how.noise_share > 0)
    return f"each operation delayed by {delays[0]} on the mean, seed {how.seed}" if delays else "no noise"


def draw(made: list, weak: bool, stem: Path) -> None:
    """Draw simulated seconds per step over ranks, one line per strategy, schedule and depth."""
    from haloscope.report import figures

    series: dict[str, list[tuple[int, float]]] = {}
    for request, s in made:
        c = request.choice
        cells = "" if weak else f" {c.shape}"
        label = f"{c.schedule} · {c.strategy}" + (f" · depth {c.depth}" if c.depth > 1 else "")
        series.setdefault(label + (cells if len({m.choice.shape for m, _ in made}) > 1 else ""), []).append(
            (c.ranks, s.time_s)
        )
    title = f"Simulated {'weak' if weak else 'strong'} scaling: {made[0][0].choice.app}, profile {made[0][1].profile}"
    for file in figures.scaling(series, title, weak, stem):
        terminal.say(f"wrote {file}")
