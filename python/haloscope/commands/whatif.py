"""`haloscope whatif`: the same ranks placed, decomposed or bought differently: time, nodes and node-hours. No MPI."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import click

from haloscope import terminal
from haloscope.commands.predict import HERE, device_of
from haloscope.errors import UsageProblem
from haloscope.options import ChoiceOptions, app_of, option, space_of
from haloscope.options import command as command_of
from haloscope.records.text import cell

MOST = 2000  # predictions of one command
ALL = "all"


@command_of(
    short_help="Fewer cores, other placements, grids or machines: time and node-hours.",
    choice=ChoiceOptions(lists=True, without=HERE, usual={"ranks": "2"}),
)
@click.argument("app")
@option("--profile", required=True, metavar="FILE|NAME", help="Machine profile: a JSON file or a shipped one.")
@option("--against", metavar="FILE|NAME", help="A second machine: from which number of ranks is it faster, or slower?")
@option("--active", metavar="LIST", help="Most cores in use per socket. [all]")
@option(
    "--mapping",
    default="fill",
    metavar="LIST",
    help="Ranks to nodes and sockets: fill, balanced, by-socket, round-robin. [fill]",
)
@option("--weak", is_flag=True, help="--cells are those of one rank; the grid grows with the ranks.")
@option("--json", "as_json", is_flag=True, group="output", help="One JSON document instead of a table.")
def command(app, profile, against, active, mapping, weak, as_json, **options):
    """Predict APP when the same ranks run elsewhere. The first row is what the others are compared with.

    \b
    haloscope whatif laplace3d --cells 512 -n 256 --profile machine.json --active 6,4,2,1
    haloscope whatif laplace3d --cells 512 -n 64 --profile machine.json --mapping fill,by-socket
    haloscope whatif laplace3d --cells 512 -n 64 --profile machine.json --process-grid all
    haloscope whatif laplace3d --cells 64 --weak -n 2..4096*2 --profile a.json --against b.json

    Lists make a space as in `haloscope predict`; --process-grid also takes `all`. Nodes are counted whole. Pairs are
    the neighbour pairs of the worst node. A command makes 2000 predictions at most.
    """
    from haloscope.model import profile as profiles

    machine = profiles.load(profile)
    choices = choices_of(app_of(app, options), options | {"device": device_of(options["device"], machine)}, weak)
    if against:
        made = compared(choices, (machine, profiles.load(against)), settings(active, mapping))
        terminal.echo(terminal.json_text(crossover_document(made)) if as_json else crossover_text(made))
    else:
        found = variants(choices, machine, settings(active, mapping))
        terminal.echo(terminal.json_text(document(found)) if as_json else markdown(found))


def choices_of(app, options: dict, weak: bool) -> list:
    """Return the choices that the options name, in their order. weak: --cells are those of one rank.

    Raises UsageProblem when none of them can run or they are too many.
    """
    from haloscope import core
    from haloscope.advice import whatif
    from haloscope.commands.run import refuse_if_none_can_run
    from haloscope.measure import lists

    asked = lists.numbers(options["ranks"], "--ranks") if weak else []
    if weak:  # one rank has all --cells; the others follow from it
        _refuse_fixed_grid(options["process_grid"] or "")
        options = options | {"ranks": "1"}
    elif options["process_grid"] == ALL:
        options = options | {"process_grid": all_grids(app, options["ranks"])}
    planned = space_of(app, options, {})
    refuse_if_none_can_run(planned)
    choices = [request.choice for request in planned.requests]
    if weak:
        _refuse_too_many(len(choices) * len(asked))
        choices = [whatif.scaled(choice, ranks) for choice in choices for ranks in asked]
        for reason in filter(None, map(core.illegal, choices)):
            raise UsageProblem(reason)
    return choices


def _refuse_fixed_grid(process_grid: str) -> None:
    if process_grid == ALL or any(letter.isdigit() for letter in process_grid):
        raise UsageProblem(
            f"--weak needs a process grid for any number of ranks, not --process-grid {process_grid}; name a rule, or "
            "leave it out"
        )


def all_grids(app, ranks: str) -> str:
    """Return every process grid of a number of ranks as a list. Raises UsageProblem for several numbers of ranks."""
    from haloscope.advice import whatif
    from haloscope.measure import lists

    counts = lists.numbers(ranks, "--ranks")
    if len(counts) != 1 or not 1 <= counts[0] <= 10**6:
        raise UsageProblem(
            f"--process-grid all needs one number of ranks up to 1000000, not --ranks {ranks}; give one, or name the "
            "grids"
        )
    return ",".join("x".join(map(str, grid)) for grid in whatif.process_grids(counts[0], app.dims))


def settings(active: str | None, mapping: str) -> list:
    """Return the settings of two lists. Raises UsageProblem for words that they cannot have."""
    from haloscope.measure import lists
    from haloscope.model import placement, predict

    rules = [rule for rule in placement.rules() if rule != "custom"]
    counts: list[int | None] = list(lists.numbers(active, "--active")) if active else [None]
    return [predict.Setting(rule, count) for rule in lists.names(mapping, rules, "--mapping") for count in counts]


def variants(choices: Sequence, machine, asked: Sequence) -> list:
    """Return every choice under every setting, predicted. Raises UsageProblem when they are too many."""
    from haloscope.advice import whatif

    _refuse_too_many(len(choices) * len(asked))
    return [whatif.variant(choice, machine, setting) for choice in choices for setting in asked]


def _refuse_too_many(count: int) -> None:
    if count > MOST:
        raise UsageProblem(f"these lists ask for {count} predictions, more than {MOST}; shorten them")


def document(found: Sequence) -> dict:
    """Return variants as plain data: seconds per time step, and against the first of them."""
    from haloscope.advice import whatif

    return {
        "schema": "haloscope.whatif",
        "schema_version": 1,
        "profile": found[0].prediction.profile,
        "variants": [
            {
                "choice": v.choice.to_json(),
                "mapping": v.setting.placement,
                "active": v.setting.active,
                "nodes": v.prediction.nodes,
                "busiest_socket": v.busiest,
                "pairs_inside": v.pairs[0],
                "pairs_across": v.pairs[1],
                "time_s": v.prediction.time_s,
                "speedup": speedup,
                "node_hours": cost,
            }
            for v, (speedup, cost) in zip(found, whatif.relative(found), strict=True)
        ],
    }


def markdown(found: Sequence) -> str:
    """Return variants as a table, then what a reader must know of them."""
    from haloscope.advice import whatif
    from haloscope.commands.predict import remarks
    from haloscope.report import tables

    axes = _differing([v.choice for v in found])
    of_setting = [name for name in ("placement", "active") if len({getattr(v.setting, name) for v in found}) > 1]
    unit, factor = tables.unit(v.prediction.time_s for v in found)
    titles = {"placement": "mapping", "active": "cores per socket"}
    numbers = ["nodes", "busiest socket", "pairs inside", "pairs across", f"step ({unit})", "speed-up", "node-hours"]
    rows = []
    for v, (speedup, cost) in zip(found, whatif.relative(found), strict=True):
        shown = [cell(getattr(v.choice, axis)) for axis in axes]
        shown += [getattr(v.setting, name) or "all" for name in of_setting]
        amounts = [v.prediction.nodes, v.busiest, *v.pairs, tables.number(v.prediction.time_s * factor)]
        rows.append([*shown, *amounts, f"{speedup:.2f}", f"{cost:.2f}"])
    headers = [*axes, *(titles[name] for name in of_setting), *numbers]
    table = tables.markdown(rows, headers, right=numbers)
    compared_with = "Speed-up and node-hours are against the first row."
    profile = f"Machine profile: {found[0].prediction.profile}."
    text = f"{_title([v.choice for v in found])}\n\n{profile} {compared_with}\n\n{table}"
    notes = remarks([(None, v.prediction) for v in found])
    return text + "".join(f"\n\n{line}" for line in notes)


def _differing(choices: Sequence) -> list[str]:
    from haloscope.report import tables

    return [axis for axis in tables.axes() if axis != "nodes" and len({getattr(c, axis) for c in choices}) > 1]


def _title(choices: Sequence) -> str:
    """Return what all choices have in common: the app, and cells and ranks where they are the same."""
    first, alike = choices[0], [choices[0].app]
    if all(c.cells == first.cells for c in choices):
        alike.append(f"{first.shape} cells")
    if all(c.ranks == first.ranks for c in choices):
        alike.append(f"{first.ranks} rank{'s' * (first.ranks > 1)}")
    return f"# What if: {', '.join(alike)}"


# ---- two machines ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Compared:
    """Predictions of two machines by ranks, and between which numbers of ranks they change places, if they do."""

    machines: tuple[str, str]
    predictions: dict[int, tuple]
    crossing: tuple[int, int] | None


def compared(choices: Sequence, machines: Sequence, asked: Sequence) -> Compared:
    """Return two machines over all numbers of ranks. Raises UsageProblem when more than the ranks differ."""
    from haloscope.advice import whatif

    counts = [choice.ranks for choice in choices]
    if len(set(counts)) != len(choices) or len(asked) != 1:
        raise UsageProblem("--against compares two machines over numbers of ranks; give one value of everything else")
    _refuse_too_many(2 * len(choices))
    ordered = sorted(choices, key=lambda choice: choice.ranks)
    found = {c.ranks: tuple(whatif.variant(c, machine, asked[0]) for machine in machines) for c in ordered}
    curves = [lambda ranks, place=place: found[ranks][place].prediction.time_s for place in range(2)]
    first, second = (machine.name for machine in machines)
    return Compared((first, second), found, whatif.crossover(*curves, found))


def crossover_document(made: Compared) -> dict:
    """Return a comparison as plain data: seconds per time step of both machines."""
    return {
        "schema": "haloscope.crossover",
        "schema_version": 1,
        "machines": made.machines,
        "steps": [
            {"ranks": ranks, "time_s": [v.prediction.time_s for v in pair]} for ranks, pair in made.predictions.items()
        ],
        "crossing": made.crossing,
    }


def crossover_text(made: Compared) -> str:
    """Return a comparison as a table, and where the machines change places."""
    from haloscope.report import tables

    first, second = made.machines
    unit, factor = tables.unit(v.prediction.time_s for pair in made.predictions.values() for v in pair)
    headers = ["ranks", f"1: {first} ({unit})", f"2: {second} ({unit})", "2 over 1", "node-hours, 2 over 1"]
    rows = []
    for ranks, (a, b) in made.predictions.items():
        ratios = (b.prediction.time_s / a.prediction.time_s, b.node_s / a.node_s)
        times = (tables.number(v.prediction.time_s * factor) for v in (a, b))
        rows.append([ranks, *times, *(f"{ratio:.3f}" for ratio in ratios)])
    choice = next(iter(made.predictions.values()))[0].choice
    return (
        f"# {choice.app}: {first} and {second}\n\n{tables.markdown(rows, headers, right=headers)}\n\n{_verdict(made)}"
    )


def _verdict(made: Compared) -> str:
    most = max(made.predictions)
    a, b = made.predictions[most]
    leader = made.machines[0 if a.prediction.time_s < b.prediction.time_s else 1]
    if made.crossing is None:
        return f"They do not change places up to {most} ranks: {leader} is ahead."
    low, high = made.crossing
    a, b = made.predictions[high]
    overtaking = made.machines[0 if a.prediction.time_s < b.prediction.time_s else 1]
    return f"They change places between {low} and {high} ranks: from there on {overtaking} is ahead."
