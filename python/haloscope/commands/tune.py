"""`haloscope tune`: find the fastest choice for one grid by measuring few of them, in the order of the model."""

from __future__ import annotations

import importlib.util
import math
from collections import Counter

import click

from haloscope import errors, terminal
from haloscope.commands import advise, run
from haloscope.measure import isolated
from haloscope.options import ChoiceOptions, FileName, FiniteRange, app_of, option, options_of, starts_ranks
from haloscope.options import command as command_of

USUAL = {"ranks": "2", "strategy": "*/*", "schedule": "*", "depth": "1,2,4,8", "substeps": "*"}
SEARCH = options_of(
    option("--profile", metavar="FILE|NAME", help="Machine profile that says what to try first. [random order]"),
    option(
        "--budget",
        type=FiniteRange(0, min_open=True),
        metavar="SECONDS",
        help="Time for the search. [a tenth of measuring everything, at most 60]",
    ),
    option(
        "--confirm",
        type=click.IntRange(0, 1000),
        default=5,
        group="measuring",
        help="Launches that the winner, the runner-up and the default are measured in again; 0 = none. [5]",
    ),
    option(
        "--exhaustive",
        is_flag=True,
        group="measuring",
        help="Measure all candidates too, and say what the choice lost.",
    ),
    option(
        "--timeout",
        type=FiniteRange(0),
        default=0.0,
        group="measuring",
        help="Seconds after which a candidate's launch is ended; 0: each is waited for. [0]",
    ),
    option("--seed", type=int, default=0, group="measuring", help="Seed of the random order. [0]"),
    option("--output", type=FileName(), help="Record file. [results/scratch/tune-APP-TIME.jsonl]"),
    option("--resume", is_flag=True, help="Take from the record file what it already holds."),
    option("--top", type=click.IntRange(1), default=10, group="output", help="Rows of the table. [10]"),
)


@command_of(
    short_help="Find the fastest choice for one grid by measuring few.", choice=ChoiceOptions(lists=True, usual=USUAL)
)
@click.argument("app")
@SEARCH
@starts_ranks
def command(app, profile, budget, confirm, exhaustive, timeout, seed, output, resume, top, **options):
    """Find the fastest halo exchange of APP for one grid on this machine.

    \b
    haloscope tune advection3d --cells 96 --ranks 2 --profile machine.json
    haloscope tune laplace2d --cells 1024 --strategy 'ordered/*' --budget 60 --output tune.jsonl
    haloscope tune laplace2d --cells 1024 --strategy 'ordered/*' --output tune.jsonl --resume

    Candidates are tried in the order of the model, many for a short time, then the fastest for longer. Each runs in a
    launch of its own, and its result is compared with `reference`; one that fails is left out with the reason.
    Finally the winner, the runner-up and plain `ordered/p2p` bulk depth 1 are measured again, interleaved.
    """
    from haloscope import records
    from haloscope.advice import tune as model
    from haloscope.core import build
    from haloscope.measure import devices, progress
    from haloscope.model import profile as profiles

    machine = profiles.load(profile) if profile else None
    options["device"] = devices.resolve(options["device"])
    options["reorder"] = options["reorder"] or usual_orders(options["nodes"])
    planned = plan_space(app_of(app, options), options)
    build.rank_program()  # is it there? asked before a record file is made
    measurer = isolated.Isolated(output or records.scratch(f"tune-{app}"), timeout or math.inf, resume)
    order = model.order(planned.requests, machine, seed=seed)
    with progress.Line(100, f"tuning {app} (% of the time)") as line:
        race = model.Race(order.entrants, measurer.once, budget, model.RUNGS, level=model.Levelling(machine))
        race.on_step = lambda text: line.reach(100 * race.part, text)
        race.run()
    winner, length = race.ranking[0].request, race.rungs[-1]
    rivals = [c for c in (model.default_of(winner), *(e.request for e in race.ranking[1:2] if e.launches)) if c]
    again = model.rerun(measurer.paired, [winner, *rivals], confirm, "confirm", length) if confirm else None
    chosen = model.decide(winner, rivals, again) if again else winner
    parts = [_title(chosen, machine), _race(race, top)]
    parts.append(_confirmed(chosen, [winner, *rivals], again) if again else "")
    parts.append(_spent(race, again))
    if exhaustive:
        parts.append(_exhaustive(race, chosen, measurer, max(confirm, 5)))
    parts += [
        _code(chosen),
        _left_out(race, order, planned),
        *(f"Note: {text}." for text in measurer.complaints),
    ]
    terminal.echo("\n\n".join(filter(None, parts)) + f"\n\nrecords: {measurer.output}")


def usual_orders(nodes: str | None) -> str:
    """Return the orders of ranks to try where none are named: on stated nodes (a list of numbers, or None) all."""
    from haloscope.advice import advise as model
    from haloscope.measure import lists

    several = nodes is not None and max(lists.numbers(nodes, "--nodes")) > 1
    return ",".join(model.ORDERS) if several else model.ORDERS[0]


def plan_space(app, options: dict):
    """Return the candidates, illegal ones set aside. Raises UsageProblem when there are none, or two grids."""
    planned = run.plan_space(app, options | {"steps": None, "seconds": None})
    for field in ("cells", "ranks"):
        if len({getattr(r.choice, field) for r in planned.requests}) > 1:
            raise errors.UsageProblem(
                f"tuning is for one grid, --{field} '{options[field]}' names several; give one value"
            )
    planned = _without_oracle(planned)
    run.refuse_if_none_can_run(planned)
    return _on_own_cores(planned)


def _without_oracle(planned):
    """`reference` exists to be right and is never ranked."""
    from haloscope.measure import space

    kept = [r for r in planned.requests if "/" in r.choice.strategy]
    if not kept and planned.requests:
        raise errors.UsageProblem(
            "`reference` is what results are compared with, not a candidate; give other strategies"
        )
    return space.Space(kept, [pair for pair in planned.refused if "/" in pair[0].choice.strategy])


def _on_own_cores(planned):
    """Set aside requests with more threads than cores, unless the ranks alone are too many."""
    from haloscope.measure import launch, space

    cores = launch.cores()
    crowded = [r for r in planned.requests if r.ranks <= cores < r.ranks * r.threads]
    kept = [r for r in planned.requests if r not in crowded]
    reasons = [(r, f"{r.ranks} ranks of {r.threads} threads are more than the {cores} cores here") for r in crowded]
    if not kept:
        raise errors.UsageProblem(f"{reasons[0][1]}; use fewer --threads")
    return space.Space(kept, [*planned.refused, *reasons])


# ---- the report ------------------------------------------------------------------------------------------------------


def _words(request) -> str:
    """Return a candidate's distinguishing fields, in words of the command line."""
    from haloscope.advice import advise as model

    c = request.choice
    words = model.name(c)
    for name in ("process_grid", "threads", "tiles", "sharing"):
        value = getattr(c, name)
        words += f", {name.replace('_', '-')} {value}" * (value != getattr(type(c), name))
    return words


def _title(chosen, machine) -> str:
    case = f"{chosen.choice.app}, {chosen.choice.shape} cells, {chosen.ranks} ranks"
    first = f"# Tuned: {case}\n\n**{_words(chosen)}** is the choice."
    if machine:
        return f"{first} Candidates were tried in the order that profile '{machine.name}' predicts."
    calibrate = importlib.util.find_spec("haloscope.commands.calibrate")
    remedy = "make a profile with `haloscope calibrate`" if calibrate else "give a machine profile with --profile"
    return (
        f"{first} No profile was given, so candidates were tried in random order; {remedy} to try the best ones first."
    )


def _race(race, top: int) -> str:
    from haloscope.report import tables

    shown = [e for e in race.ranking if e.launches][:top]
    unit, factor = tables.unit(e.time_s for e in shown)
    rows = [
        [
            place,
            _words(e.request),
            tables.number(e.time_s * factor),
            tables.number(e.predicted_s * factor) if e.predicted_s else "",
            e.rungs,
            e.fate or "in to the end",
        ]
        for place, e in enumerate(shown, 1)
    ]
    headers = ["#", "candidate", f"measured ({unit})", f"predicted ({unit})", "rungs", "why not further"]
    measured = sum(bool(e.launches) for e in race.entrants)
    noise = ", ".join(f"{value:.0%}" for value in race.seen_noise)
    words = f"{measured} of {len(race.entrants)} candidates measured; noise between launches by rung: {noise}."
    words += " Times are at the pace of the first launch." * race.level.in_use
    return f"{words}\n\n" + tables.markdown(rows, headers, right=("#", *headers[2:5]))


def _confirmed(chosen, measured, again) -> str:
    from haloscope.advice import tune as model
    from haloscope.records import stats
    from haloscope.report import tables

    rows = []
    for other in dict.fromkeys(c for c in measured if c.id != chosen.id):
        ratio = again.ratio(other, chosen)
        name = _words(other) + " (the default)" * model.is_default(other)
        if ratio is None:
            rows.append([name, "", "", "not measured again: see the notes"])
            continue
        said = stats.told(ratio, "the choice is faster", "the choice is slower")
        rows.append([name, f"{ratio.value:.3f}", tables.interval(ratio, "{:.3f}".format), said])
    if not rows:
        return "The choice is the default, and there was no other to measure it against."
    table = tables.markdown(rows, ["against", "speed-up", "95 %", "verdict"], right=("speed-up",))
    return f"## Measured again, interleaved\n\n{table}"


def _spent(race, again) -> str:
    confirming = again.wall_s if again else 0.0
    spent, whole = race.spent_s + confirming, race.exhaustive_s
    return (
        f"Measured for {race.spent_s:.1f} s to choose and {confirming:.1f} s to confirm: {spent / whole:.0%} of the "
        f"{whole:.0f} s "
        f"that one launch of each of the {len(race.entrants)} candidates would take "
        f"({race.spent_s / whole:.0%} without confirming)."
    )


def _exhaustive(race, chosen, measurer, launches: int) -> str:
    from haloscope.advice import tune as model
    from haloscope.records import stats
    from haloscope.report import tables

    (best, *_), seconds = model.exhaustively(race.entrants, measurer.once, race.rungs[-1])
    words = f"All candidates took {seconds:.1f} s; choosing took {race.spent_s / seconds:.0%} of that. "
    if best.id == chosen.id:
        return f"## Against all candidates\n\n{words}The choice is the fastest of all: regret 1."
    ratio = model.rerun(measurer.paired, [chosen, best], launches, "regret", race.rungs[-1]).ratio(chosen, best)
    if ratio is None:
        return f"## Against all candidates\n\n{words}The fastest, {_words(best)}, could not be measured again."
    said = stats.told(ratio, "the choice is slower", "the choice is faster")
    return (
        f"## Against all candidates\n\n{words}The fastest was {_words(best)}. Both measured again, interleaved: regret "
        f"{ratio.value:.3f} ({tables.interval(ratio, '{:.3f}'.format)}), {said}."
    )


def _code(chosen) -> str:
    return advise.code_for(chosen.choice)


def _left_out(race, order, planned) -> str:
    """Count the dropped candidates by reason: illegal, failed, without a price."""
    lines = [f"- {count} cannot be: {reason}" for reason, count in Counter(r for _, r in planned.refused).most_common()]
    failed = Counter(e.fate for e in race.entrants if e.fate.startswith("failed"))
    lines += [f"- {count} {reason}" for reason, count in failed.most_common()]
    never = [e for e in race.entrants if not e.launches and not e.fate.startswith("failed")]
    lines += [f"- {len(never)} not measured: the time was up before their turn"] if never else []
    lines += [f"- {count} tried last, as they have no prediction: {reason}" for reason, count in order.unpriced.items()]
    return "## Left out\n\n" + "\n".join(lines) if lines else ""
