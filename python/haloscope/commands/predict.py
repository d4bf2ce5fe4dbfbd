"""`haloscope predict`: the time of a step, what it is made of and how sure that is, from a machine profile. No MPI."""

from __future__ import annotations

import dataclasses
import json

import click

from haloscope.commands import run
from haloscope.errors import UsageProblem

FIXED = ("isa", "memory")  # options of `run` that a profile decides

PLACED = run.options_of(
    click.option("--profile", required=True, metavar="FILE|NAME", help="Machine profile: a JSON file or a shipped one."),
    click.option("--mapping", default="fill", show_default=True, metavar="RULE",
                 help="Ranks to the profile's nodes and sockets: fill, balanced, by-socket, round-robin."),
    click.option("--active", type=click.IntRange(1), help="Most cores in use per socket. [all]"),
    click.option("--reductions", type=click.IntRange(0), default=0, help="All-reduces per time step. [0]"),
)  # fmt: skip
MACHINE = run.options_of(
    PLACED,
    click.option("--samples", type=click.IntRange(0), default=100, show_default=True,
                 help="Draws of the profile's parameters for the interval; 0 = none."),
    click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table."),
)  # fmt: skip


@click.command(short_help="Time per step, interval and breakdown, from a machine profile.")
@run.WHAT
@MACHINE
def command(app, profile, mapping, active, reductions, samples, as_json, **options):
    """Predict APP's time per step without running it; lists and ranges sweep as in `haloscope run`.

    \b
    haloscope predict laplace2d --cells 8192 --ranks 4..2048*2 --profile machine.json
    haloscope predict advection3d --cells 420 --ranks 64 --strategy 'ordered/*' --depth 1,2,4 --profile machine.json

    The table says for each configuration the time of a step in step with all ranks, its 90 % interval (how sure
    the parameters are, and how far calibrated steps were off), and what the slowest rank spends it on. --nodes N splits
    the ranks over N of the profile's nodes.
    """
    from haloscope.measure import sweep
    from haloscope.model import predict
    from haloscope.model import profile as profiles

    machine = profiles.load(profile)
    options["device"] = device_of(options["device"], machine)
    made = []
    for configuration in configurations(app, options):
        setting = predict.Setting(mapping, active, (), configuration.tiles, configuration.barrier, reductions)
        made.append((configuration, predict.predict(sweep.choice(configuration), machine, setting, samples)))
    made.sort(key=lambda pair: pair[1].time_s)
    click.echo(json.dumps(document(made), indent=1) if as_json else markdown(made))


def device_of(asked: str, machine) -> str:
    """Return --device with `auto` replaced by the back end that a profile has a device of, and `none` alone by nothing.

    Raises NotAvailable for `auto` where the profile has no device.
    """
    from haloscope.measure import devices

    words = [machine.section("device")["backend"] if word == devices.AUTO else word for word in devices.words(asked)]
    return ",".join(word or devices.NONE for word in words) if any(words) else ""


def configurations(app: str, options: dict) -> list:
    """Return the configurations that the options of `run` name. Raises UsageProblem when none of them can run."""
    for name in FIXED:
        if options[name]:
            raise UsageProblem(f"--{name} is decided by the profile; leave it out, or choose another profile")
    if not options["cells"]:
        raise UsageProblem(f"a prediction for {app} needs a grid size; for example --cells 128")
    given = {**dict.fromkeys(run.PASSED_ON), **options, "verify": 0, "real": options["real"] or "f64"}
    planned = run.plan_sweep(app, given)
    run.refuse_if_none_can_run(planned)
    return planned.configurations


def document(made: list) -> dict:
    """Return predictions as plain data: seconds per time step."""
    return {
        "schema": "haloscope.predictions",
        "schema_version": 1,
        "predictions": [
            {"id": configuration.id, **dataclasses.asdict(prediction), "exchange_s": prediction.exchange_s}
            for configuration, prediction in made
        ],
    }


def markdown(made: list) -> str:
    """Return a table of predictions, then what a reader must know of them."""
    from haloscope.model.compose import TERMS
    from haloscope.report import tables

    axes = [a for a in tables.AXES if a in ("schedule", "strategy") or len({getattr(c, a, "") for c, _ in made}) > 1]
    terms = [term for term in TERMS if any(p.terms[term] > 0 for _, p in made)]
    unit, factor = tables.unit(p.time_s for _, p in made)
    timed = f"step ({unit})"
    headers = ["#", *axes, timed, "90 %", *terms, "slowest rank"]
    rows = []
    for place, (configuration, p) in enumerate(made, 1):
        ends = "" if p.interval is None else " .. ".join(tables.number(end * factor) for end in p.interval)
        values = [tables.number(p.terms[term] * factor) for term in terms]
        shown = [cell(getattr(configuration, axis)) for axis in axes]
        rows.append([place, *shown, tables.number(p.time_s * factor), ends, *values, p.worst_rank])
    first = made[0][0]
    title = f"# Predicted: {first.app}, {first.shape} cells, {first.ranks} ranks" if len(made) == 1 else (
        f"# Predicted: {first.app}, {len(made)} configurations, fastest first")  # fmt: skip
    text = f"{title}\n\nMachine profile: {made[0][1].profile}. Times in {unit} per step.\n\n"
    text += tables.markdown(rows, headers, right=("#", timed, "90 %", *terms, "slowest rank"))
    return text + "".join(f"\n\n{line}" for line in remarks(made))


def cell(value) -> str:
    """Return one axis of a configuration as the tables show it."""
    from haloscope.report import tables

    return tables.cell(list(value) if isinstance(value, tuple) else value)


def remarks(made: list) -> list[str]:
    """Say once what holds for several rows, and for which."""
    rows: dict[str, list[int]] = {}
    for place, (_, prediction) in enumerate(made, 1):
        for text in [f"outside the calibrated range: {o}" for o in prediction.outside] + list(prediction.notes):
            rows.setdefault(text, []).append(place)
    return [f"- {text}{_rows(places, len(made))}" for text, places in rows.items()]


def _rows(places: list[int], count: int) -> str:
    if len(places) == count:
        return ""
    shown = ", ".join(map(str, places[:8])) + (", ..." if len(places) > 8 else "")
    return f" (row{'s' * (len(places) > 1)} {shown})"
