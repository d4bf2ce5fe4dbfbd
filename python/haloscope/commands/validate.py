"""`haloscope validate`: predictions against the records of measurements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from haloscope import errors, outputs, terminal
from haloscope.commands import external as external_command
from haloscope.options import FileName, option, options_of, starts_ranks
from haloscope.options import command as command_of

EXTERNAL = options_of(
    option(
        "--external",
        type=click.Path(),
        metavar="FILE",
        help="Instead of RECORDS: a CSV file of exchanges that others have timed, see docs/external.md.",
    ),
    option(
        "--fit",
        "fitted_file",
        type=click.Path(),
        metavar="FILE",
        help="Fit costs to this CSV file, predict all of --external that is not in it. [a part of --external]",
    ),
    option(
        "--fit-on",
        multiple=True,
        metavar="AXIS=VALUE,...",
        help="Fit to rows that meet all such conditions (nodes=1 fields=1,4). [half of the cases]",
    ),
    option(
        "--holdout",
        multiple=True,
        metavar="AXIS=VALUE,...",
        help="Fit to all rows but those that meet all such conditions.",
    ),
    option(
        "--cross",
        multiple=True,
        metavar="AXIS",
        help="Also fit without each value of this axis in turn, and predict the rows that have it.",
    ),
    option(
        "--profiles",
        type=FileName(stem=True),
        metavar="STEM",
        group="output",
        help="With --external: write the fitted profiles as STEM-PROGRAM.json.",
    ),
    option(
        "--json", "as_json", is_flag=True, group="output", help="With --external: one JSON document instead of tables."
    ),
)


@command_of(short_help="Predicted against measured: errors, coverage, order, regret of the pick.")
@click.argument("files", nargs=-1, type=click.Path(), metavar="RECORDS...")
@click.option("--profile", metavar="FILE|NAME", help="Machine profile: a JSON file or a shipped one.")
@click.option(
    "--samples",
    type=click.IntRange(0, 10_000),
    default=100,
    show_default=True,
    help="Draws of the profile's parameters for the intervals; 0 = none.",
)
@click.option(
    "--keep-intervals",
    is_flag=True,
    help="Write into the profile how far these measurements are off: its 90 % intervals from now on.",
)
@click.option(
    "-o",
    "--output",
    "stem",
    type=FileName(stem=True),
    metavar="STEM",
    help="Write STEM.md, and a plot of predicted against measured times as STEM.svg and STEM.png.",
)
@click.option(
    "--program",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Program with the app that the records are of, linked with haloscope::rank_main.",
)
@EXTERNAL
@starts_ranks
def command(files, profile, samples, keep_intervals, stem, program, external, **others):
    """Compare the times in record files with what a machine profile predicts for the same choices.

    \b
    haloscope run advection3d --cells 64,128 --strategy 'ordered/*' --output records.jsonl
    haloscope validate records.jsonl --profile machine.json -o out/validation
    haloscope validate records.jsonl --profile machine.json --keep-intervals
    haloscope validate --external theirs.csv --holdout nodes=64 --cross halo
    haloscope validate --external theirs.csv --fit part.csv

    Errors are predicted over measured, less 1. Regret is the measured time of the model's pick over the measured best
    of the same case. Records without a prediction are counted with the reason; the exit code stays 0. Kernels that were
    measured at three sizes or more are held against one line: where a time leaves it, the kernel is worth a look.

    With --external, exchanges that others have timed: costs of the network, of packing and of the memory are fitted to
    a part of them, and the rest is predicted. RECORDS and --profile are then not given.
    """
    given = [name for name, value in others.items() if value]
    if external:
        if files or profile or program or keep_intervals:
            raise errors.UsageProblem(
                "--external fits its own profile; leave out RECORDS, --profile, --program and --keep-intervals"
            )
        external_command.validate(external, stem=stem, **others)
        return
    if given:
        option_name = {"fitted_file": "--fit", "as_json": "--json"}.get(given[0], "--" + given[0].replace("_", "-"))
        raise errors.UsageProblem(f"{option_name} belongs to --external; give --external FILE, or leave it out")
    if not files:
        raise errors.UsageProblem("give record files, or --external FILE")
    if not profile:
        raise errors.UsageProblem("give the machine profile of the records with --profile")
    validate_records(files, profile, samples, keep_intervals, stem, program)


def validate_records(
    files: Sequence[str], profile: str, samples: int, keep_intervals: bool, stem: Path | None, program: Path | None
) -> None:
    """Print, and write where a stem is given, how far predictions for the records' choices are off.

    keep_intervals: write that into the profile.
    """
    from haloscope.advice import validate as model
    from haloscope.model import profile as profiles

    machine = profiles.load(profile)
    if keep_intervals and profile in profiles.names():
        raise errors.UsageProblem(
            f"--keep-intervals writes into the profile, and '{profile}' comes with the package; give a file of yours"
        )
    if stem:
        outputs.refuse_foreign(outputs.beside(stem, ".md"), outputs.REPORT)
        outputs.refuse_foreign_figure(stem)
    measured = read(files)
    if program:
        _declare_apps(measured, program)
    found = model.validate(measured, machine, samples)
    text = "\n\n".join(filter(None, (markdown(found, machine), anomalies(measured))))
    terminal.echo(text)
    if keep_intervals:
        terminal.echo(f"\n{_keep(found.pairs, machine, profile)}")
    if stem:
        outputs.write_report(outputs.beside(stem, ".md"), text)
        drawn = plot(found, stem) if found.pairs else []
        terminal.echo(f"\nwritten: {', '.join(map(str, [outputs.beside(stem, '.md'), *drawn]))}")


def _keep(pairs, machine, file: str) -> str:
    """Write residuals into a profile and say for what."""
    from haloscope.advice import validate as model
    from haloscope.model import profile as profiles

    residuals = model.residuals(pairs)
    if not residuals["step"]:
        raise errors.UsageProblem(
            f"{len(pairs)} choices are too few for intervals of 90 %; give records of 19 or more, better of hundreds"
        )
    profiles.save(machine.data | {"held_out": residuals}, file)
    regimes = ", ".join(f"{name} ({r['count']})" for name, r in residuals["step"].items())
    return f"Intervals of steps written to {file}: {regimes}. They hold for other measurements than these."


def _declare_apps(measured: list[dict], program: Path) -> None:
    from haloscope import core
    from haloscope.measure import programs

    for app in {r["request"]["app"] for r in measured if "app" in r["request"]} - set(core.app_names()):
        programs.use(program, app, {})


def read(files: Sequence[str]) -> list[dict]:
    """Return the records of some files, their launches told apart; bad lines are named on stderr.

    Raises UsageProblem for a file that cannot be read and when none of them holds a record.
    """
    from haloscope import records

    found = []
    for number, path in enumerate(dict.fromkeys(files), 1):
        for record in records.read_aloud(path).records:
            launch = record.get("launch", {"id": ""})
            found.append({**record, "launch": {**launch, "id": f"{number}/{launch['id']}"}})
    if not found:
        raise errors.UsageProblem(f"no records in {', '.join(files)}; give files that `haloscope run` wrote")
    return found


def markdown(found, profile) -> str:
    """Return the whole report of a `model.validate.Validation` against a profile."""
    from haloscope.advice import validate as model

    parts = [f"# Predicted against measured: {len(found.pairs)} choices\n\nMachine profile: {profile.name}."]
    parts += [f"Warning: {text}." for text in found.warnings]
    if found.pairs:
        parts.append(_pace(found.pairs))
        parts += _figures(found.pairs, model.are_held_out(found.pairs, profile))
    if found.crowded:
        parts.append(
            "## With more threads than cores, apart from all above\n\n" + errors_table(found.crowded, exchange=False)
        )
    if found.left_out:
        lines = "\n".join(f"- {count}: {reason}" for reason, count in found.left_out.items())
        parts.append(f"## Not compared\n\n{lines}")
    return "\n\n".join(filter(None, parts))


def _pace(pairs) -> str:
    """Say for which pace the predictions are."""
    from haloscope.advice import validate as model
    from haloscope.model import pace

    paced = sum(p.paced for p in pairs)
    if not paced:
        return (
            "Pace: that of the calibration, as records or profile have none to compare; if the machine has changed "
            "since, "
            "that shows as an error."
        )
    away = pace.said(model.pace_against(pairs))
    others = f" The other {len(pairs) - paced}: at the pace of the calibration." if paced < len(pairs) else ""
    return (
        f"Pace: each of {paced} choices is predicted at the pace of its own launches; against the calibration: "
        f"{away or 'as fast'} (median).{others}"
    )


def _figures(pairs, held_out: bool) -> list[str]:
    from haloscope.advice import validate as model

    parts = ["## Time of a step\n\n" + errors_table(pairs, exchange=False)]
    held = sum(p.exchange_error is not None for p in pairs)
    if held:
        words = f"Not hidden by computing, in the mean over ranks; measured on {held} of {len(pairs)}.\n\n"
        parts.append("## Time of the exchange itself\n\n" + words + errors_table(pairs, exchange=True))
    return [
        *parts,
        _coverage(model.coverage(pairs), len(pairs), held_out),
        _exchange_coverage(model.coverage(pairs, exchange=True)),
        _cases(model.cases(pairs)),
        _each(pairs),
    ]


def errors_table(pairs, exchange: bool) -> str:
    """Return the errors of steps, or of exchanges, per strategy and regime as a table."""
    from haloscope.advice import validate as model
    from haloscope.report import tables

    headers = ["group", "count", "signed median", "median", "p90", "worst"]
    rows = [
        [e.group, e.count, f"{e.signed:+.1%}", f"{e.median:.1%}", f"{e.p90:.1%}", f"{e.worst:.1%}"]
        for e in model.grouped(pairs, exchange)
    ]
    return tables.markdown(rows, headers, right=headers[1:])


def _coverage(c, count: int, held_out: bool) -> str:
    from haloscope.advice import validate as model

    if c is None:
        return "## Intervals\n\nNone: the profile gives none, or --samples is 0."
    source = f"{c.from_held_out} intervals are from held-out measurements" + (
        "." if held_out else ", these among them: that they hold these says nothing."
    )
    if not c.from_held_out:
        source = "They are the model's own; --keep-intervals makes them from measurements."
    verdict = "rejected" if c.p_value < 0.05 else "not rejected"
    return (
        f"## Intervals\n\n{c.inside} of {c.count} measurements lie in their predicted intervals "
        f"({c.inside / c.count:.0%}); as "
        f"{model.NOMINAL:.0%} intervals they are {verdict} (binomial test, p = {c.p_value:.2g})."
        + (f" {count - c.count} predictions have no interval." if c.count < count else "")
        + f" {source}"
    )


def _exchange_coverage(c) -> str:
    return f"Of the exchange itself: {c.inside} of {c.count} ({c.inside / c.count:.0%})." if c else ""


def _cases(found) -> str:
    from haloscope.advice import advise
    from haloscope.advice import validate as model
    from haloscope.records import stats
    from haloscope.report import tables

    if not found:
        return "## Order and regret\n\nNo case was measured with two choices."
    headers = ["case", "choices", "order (tau)", "pick of the model", "regret", "95 %", "fastest measured"]
    rows = []
    for case in found:
        same = case.pick is case.best
        unsure = not same and stats.told(case.regret, "slower", "faster") == stats.NO_CHOICE
        ends = "" if same else stats.NO_CHOICE if unsure else tables.interval(case.regret, "{:.3f}".format)
        order = "" if case.order != case.order else f"{case.order:+.2f}"  # NaN: all times alike
        rows.append(
            [
                case.name,
                case.count,
                order,
                advise.name(case.pick.prediction.choice),
                f"{case.regret.value:.3f}",
                ends,
                "the pick" if same else advise.name(case.best.prediction.choice),
            ]
        )
    words = (
        f"Regret over {len(found)} cases: geometric mean {model.mean_regret(found):.3f}, worst "
        f"{found[0].regret.value:.3f}. From "
        f"records the fastest is the luckiest too: `haloscope tune --exhaustive` measures the two again."
    )
    return f"## Order and regret\n\n{words}\n\n" + tables.markdown(
        rows, headers, right=("choices", "order (tau)", "regret")
    )


def _each(pairs) -> str:
    from haloscope.report import tables

    ordered = sorted(pairs, key=lambda p: -abs(p.error))
    headers = [
        "configuration",
        "measured (us)",
        "predicted (us)",
        "error",
        "exchange (us)",
        "predicted",
        "error ",
        "bound by",
    ]
    rows = []
    for p in ordered:
        exchange = ["", "", ""]
        if p.exchange_error is not None:
            exchange = [
                tables.number(p.exchange_s * 1e6),
                tables.number(p.prediction.exchange_s * 1e6),
                f"{p.exchange_error:+.1%}",
            ]
        rows.append(
            [
                p.row.id,
                tables.number(p.row.step.value * 1e6),
                tables.number(p.prediction.time_s * 1e6),
                f"{p.error:+.1%}",
                *exchange,
                _parts(p),
            ]
        )
    table = tables.markdown(rows, headers, right=headers[1:-1])
    return f"## Each configuration, largest error first\n\nWith the two largest predicted terms.\n\n{table}"


def anomalies(measured: Sequence[dict]) -> str:
    """Return the sweeps whose time leaves the line through smaller blocks; "" where no kernel has enough sizes."""
    from haloscope.advice import anomalies as model
    from haloscope.records.rows import group_rows
    from haloscope.report import tables

    known = model.points(group_rows(measured))
    if not known:
        return ""
    found = {name: model.leaving(list(by_size), list(by_size.values())) for name, by_size in known.items()}
    rows = [[name, f"{a.last_on:.0f}", f"{a.first_off:.0f}", f"{a.ratio:.2f}"] for name, a in found.items() if a]
    headers = ["kernel", "on the line up to (points)", "off it from", "measured over the line"]
    kernels = f"{len(known)} kernel{'s' * (len(known) > 1)} measured at {model.FEWEST} sizes or more"
    text = f"Points a rank sweeps per step; {kernels}, off by more than {model.THRESHOLD:.0%}."
    listed = tables.markdown(rows, headers, right=headers[1:]) if rows else "None leaves its line."
    return f"## Sweeps that leave their line\n\n{text}\n\n{listed}"


def _parts(pair) -> str:
    terms, whole = pair.prediction.terms, pair.prediction.time_s
    largest = sorted(terms, key=lambda term: -terms[term])[:2]
    shares = ", ".join(f"{term} {terms[term] / whole:.0%}" for term in largest if terms[term] > 0)
    return f"{pair.regime}: {shares}"


def plot(found, stem: Path) -> list[Path]:
    """Draw predicted against measured times, steps and exchanges, coloured by regime. Returns the files written."""
    from haloscope.report import figures

    plt = figures.plt
    with figures.style():
        figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
        held = [p for p in found.pairs if p.exchange_error is not None]
        _scatter(axes[0], "time of a step", [(p.regime, p.row.step.value, p.prediction.time_s) for p in found.pairs])
        _scatter(
            axes[1],
            "time of the exchange itself",
            [(p.exchange_regime, p.exchange_s, p.prediction.exchange_s) for p in held],
        )
        return figures.save(figure, stem)


def _scatter(axes, title: str, points: Sequence[tuple[str, float, float]]) -> None:
    from haloscope.report import figures

    axes.set_title(title, loc="left", fontweight="bold", fontsize=11)
    points = [(name, x, y) for name, x, y in points if x > 0 and y > 0]
    if not points:
        axes.text(0.5, 0.5, "not measured", ha="center", transform=axes.transAxes)
        return
    for number, name in enumerate(sorted({name for name, _, _ in points})):
        x, y = zip(*((1e6 * a, 1e6 * b) for n, a, b in points if n == name), strict=True)
        axes.plot(x, y, "o", markersize=4, alpha=0.7, color=f"C{number}", label=f"{name} ({len(x)})")
    low, high = min(min(p[1:]) for p in points) * 0.8e6, max(max(p[1:]) for p in points) * 1.25e6
    axes.plot([low, high], [low, high], color=figures.INK, linewidth=1)
    for factor in (0.9, 1.1):
        axes.plot([low, high], [factor * low, factor * high], color=figures.PALE, linewidth=0.8, linestyle="--")
    axes.set(
        xscale="log",
        yscale="log",
        xlim=(low, high),
        ylim=(low, high),
        xlabel="measured (us per step)",
        ylabel="predicted (us per step); dashed: 10 % off",
    )
    axes.legend(frameon=False, fontsize=9)
