"""`haloscope predict`: the time of a step with breakdown and uncertainty, from a machine profile. No MPI."""

from __future__ import annotations

import dataclasses

import click

from haloscope import terminal
from haloscope.commands.run import refuse_if_none_can_run
from haloscope.options import ChoiceOptions, app_of, option, options_of, space_of
from haloscope.options import command as command_of
from haloscope.records.text import cell

# Fields that a profile decides, or has no prices for.
HERE = ("isa", "stores", "ftz", "memory", "temporaries", "piece")

PLACED = options_of(
    option("--profile", required=True, metavar="FILE|NAME", help="Machine profile: a JSON file or a shipped one."),
    option(
        "--mapping",
        default="fill",
        group="machine",
        metavar="RULE",
        help="Ranks to the profile's nodes and sockets: fill, balanced, by-socket, round-robin. [fill]",
    ),
    option("--active", type=click.IntRange(1, 100_000), group="machine", help="Most cores in use per socket. [all]"),
    option(
        "--reductions",
        type=click.IntRange(0, 1_000_000),
        default=0,
        group="machine",
        help="All-reduces per time step beside the app's own. [0]",
    ),
    option(
        "--repeats",
        type=click.IntRange(0, 1_000_000),
        default=1,
        group="machine",
        help="Executions per time step of a loop of stages. [1]",
    ),
)
MACHINE = options_of(
    PLACED,
    option(
        "--samples",
        type=click.IntRange(0, 10_000),
        default=100,
        group="machine",
        help="Draws of the profile's parameters for the interval; 0 = none. [100]",
    ),
    option(
        "--refresh",
        is_flag=True,
        group="machine",
        help="Time the pace of this machine first, in a second, and predict for that.",
    ),
    option("--json", "as_json", is_flag=True, group="output", help="One JSON document instead of a table."),
)


@command_of(
    short_help="Time per step, interval and breakdown, from a machine profile.",
    choice=ChoiceOptions(lists=True, without=HERE, usual={"ranks": "2"}),
)
@click.argument("app")
@MACHINE
def command(app, profile, samples, refresh, as_json, **options):
    """Predict APP's time per step without running it; lists and ranges make a space as in `haloscope run`.

    \b
    haloscope predict laplace2d --cells 8192 --ranks 4..2048*2 --profile machine.json
    haloscope predict advection3d --cells 420 -n 64 --strategy 'ordered/*' --profile machine.json

    The table says for each choice the time of a step in step with all ranks, its 90 % interval (how sure the
    parameters are, and how far calibrated steps were off), and what the slowest rank spends it on. --nodes N splits
    the ranks over N of the profile's nodes.
    """
    from haloscope.model import predict
    from haloscope.model import profile as profiles

    machine, pace = at_pace(profiles.load(profile), refresh)
    planned = space_of(app_of(app, options), options | {"device": device_of(options["device"], machine)}, {})
    refuse_if_none_can_run(planned)
    setting = setting_of(options)
    made = [(r, predict.predict(r.choice, machine, setting, samples)) for r in planned.requests]
    made.sort(key=lambda pair: pair[1].time_s)
    terminal.echo(terminal.json_text(document(made)) if as_json else markdown(made, pace))


def setting_of(options: dict):
    """Return the setting of the model from the options."""
    from haloscope.model import predict

    return predict.Setting(
        options["mapping"], options["active"], reductions=options["reductions"], repeats=options["repeats"]
    )


def at_pace(machine, refresh: bool) -> tuple:
    """Return a profile at the pace that predictions shall be for, and that pace in words, with a remedy where it is
    old.

    refresh: measure it now. Raises as measure.pace.now does.
    """
    from haloscope.model import pace

    if refresh:
        from haloscope.measure import pace as measured

        machine = machine.at_pace(measured.now(machine))
        away = pace.said(pace.difference(machine.paces[str(machine.pace["ranks"])], machine.pace))
        known = (
            " Of the machine's states that the profile knows, the nearest counts." if "states" in machine.data else ""
        )
        return (
            machine,
            f"Pace: measured now; against the calibration: {away or 'as fast'} (time of each kernel).{known}",
        )
    if machine.data["origin"] == "published":
        return machine, ""
    if not machine.paces:
        return machine, "Pace: not known, as the profile has none; calibrate again to compare it with another hour."
    ages = [age for age in map(pace.age_s, machine.paces.values()) if age is not None]
    if not ages or min(ages) < pace.STALE_S:
        return machine, "Pace: that of the calibration."
    return machine, (
        f"Pace: that of the calibration, {pace.ago(min(ages))} ago, which is stale: a shared machine may be faster or "
        "slower "
        f"by now. --refresh measures it in a second."
    )


def device_of(asked: str | None, machine) -> str:
    """Return --device with `auto` replaced by the back end that a profile has a device of, and `none` alone by nothing.

    Raises NotAvailable for `auto` where the profile has no device.
    """
    from haloscope.measure import devices

    words = [
        machine.section("device")["backend"] if word == devices.AUTO else word for word in devices.words(asked or "")
    ]
    return ",".join(word or devices.NONE for word in words) if any(words) else ""


def document(made: list) -> dict:
    """Return predictions as plain data: seconds per time step."""
    return {
        "schema": "haloscope.predictions",
        "schema_version": 1,
        "predictions": [
            {"id": request.id, **dataclasses.asdict(p), "choice": p.choice.to_json(), "exchange_s": p.exchange_s}
            for request, p in made
        ],
    }


def markdown(made: list, pace: str = "") -> str:
    """Return a table of predictions, then what a reader must know of them. pace: that they are for, in words."""
    from haloscope.model.predict import terms as all_terms
    from haloscope.report import tables

    def differs(axis):
        return len({getattr(r.choice, axis) for r, _ in made}) > 1

    axes = [axis for axis in tables.axes() if axis in ("schedule", "strategy") or differs(axis)]
    terms = [term for term in all_terms() if any(p.terms[term] > 0 for _, p in made)]
    unit, factor = tables.unit(p.time_s for _, p in made)
    timed = f"step ({unit})"
    headers = ["#", *axes, timed, "90 %", *terms, "slowest rank"]
    rows = []
    for place, (request, p) in enumerate(made, 1):
        ends = "" if p.interval is None else " .. ".join(tables.number(end * factor) for end in p.interval)
        values = [tables.number(p.terms[term] * factor) for term in terms]
        shown = [cell(getattr(request.choice, axis)) for axis in axes]
        rows.append([place, *shown, tables.number(p.time_s * factor), ends, *values, p.worst_rank])
    first = made[0][0].choice
    title = (
        f"# Predicted: {first.app}, {first.shape} cells, {first.ranks} ranks"
        if len(made) == 1
        else (f"# Predicted: {first.app}, {len(made)} choices, fastest first")
    )
    text = f"{title}\n\nMachine profile: {made[0][1].profile}. Times in {unit} per step.\n\n"
    text += f"{pace}\n\n" if pace else ""
    text += tables.markdown(rows, headers, right=("#", timed, "90 %", *terms, "slowest rank"))
    lines = [*remarks(made), *_source_of_intervals(p for _, p in made)]
    return text + "".join(f"\n\n{line}" for line in lines)


def _source_of_intervals(predictions) -> list[str]:
    """Say where the intervals come from, if there are any."""
    regimes = {p.interval_from for p in predictions if p.interval is not None}
    said = {
        "": "- 90 %: the model's own interval, which no held-out measurement has confirmed (haloscope validate "
        "--keep-intervals)",
        "all": "- 90 %: from held-out measurements of all regimes, as there are too few of this one",
    }
    texts = [said[name] for name in sorted(regimes) if name in said]
    known = sorted(regimes - set(said))
    return texts + ([f"- 90 %: from held-out measurements of the same regime ({', '.join(known)})"] if known else [])


def remarks(made: list) -> list[str]:
    """List notes that hold for several rows once, with their rows."""
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
