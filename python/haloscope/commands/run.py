"""`haloscope run`: measure one app; lists and ranges make a sweep, every configuration in every launch."""

from __future__ import annotations

from pathlib import Path

import click

from haloscope import errors
from haloscope.studies.schroeter2021 import partdiff

SCHEDULE_WORDS = {"phased": "bulk", "serial": "bulk", "overlapped": "split", "overlap": "split"}
DEVICE_WORDS = SCHEDULE_WORDS | {"overlapped": "streams", "overlap": "streams"}
EXCHANGE_WORDS = {"ordered": "ordered", "sync": "ordered", "direct": "direct", "async": "direct"}
PASSED_ON = (
    "steps",
    "seconds",
    "repetitions",
    "warmup",
    "initial",
    "seed",
    "velocity",
    "nu",
    "weights",
    "timers",
    "trace",
    "timeline",
    "function",
    "precision",
    "residuum",
    "ftz",
    "work_blocks",
    "work_window",
)


def options_of(*decorators):
    """Return one decorator that adds several options to a command, in their order."""

    def decorate(function):
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def sweeping(name: str, default: str | None, text: str, *more: str):
    """Return the option `--NAME` that takes lists and ranges."""
    return click.option(
        *more, f"--{name}", default=default, metavar="LIST", help=text + (f" [{default}]" if default else "")
    )


WHAT = options_of(
    click.argument("app"),
    sweeping("cells", None, "Grid sizes: 128x128x64, one number for a cube, 64..256*2, 64..256+64."),
    sweeping("ranks", "2", "Numbers of MPI ranks.", "-n"),
    sweeping("threads", "1", "Threads per rank."),
    sweeping("strategy", None, "Pattern and transport; globs as 'ordered/*'. [ordered/p2p; devices: ordered/staged]"),
    sweeping(
        "schedule",
        "bulk",
        "bulk, split, interleaved, comm-thread (also phased, overlapped), pipeline; devices: bulk, "
        "streams, resident, box, box-overlap; globs.",
    ),
    sweeping("depth", "1", "Time steps per exchange.", "-d"),
    sweeping("region", "full", "What sub-steps of deep halos sweep: full, shrink, blocked; globs."),
    sweeping("form", "", "Kernel form: advection3d has dense and separable, poisson2d jacobi and gauss-seidel; globs."),
    sweeping("real", None, "Scalar type: f64, f32. [f64]"),
    sweeping("process-grid", "", "Rule (white, valen, davis, lines) or explicit, 2x1x1."),
    sweeping("sharing", "", "How comm-thread hands out the interior: guided, dynamic."),
    sweeping("tiles", "0", "Interior tiles of split; 0 = its default."),
    sweeping("isa", "", "Instruction set; empty = the best this CPU has."),
    sweeping("nodes", "0", "Nodes that the ranks are split into, as if each were a machine; 0 = the real machines."),
    sweeping("placement", "", "Ranks to the nodes of --nodes: block, round-robin."),
    sweeping("memory", "", "Where fields live: own, shared (strategies that need shared use it anyway)."),
    sweeping(
        "device", "none", "Devices that hold and sweep the fields: cuda, hip, host (made of the CPU), auto; none: CPU."
    ),
    sweeping("device-kernel", "", "Sweeps of a device: naive, stream, shared. [stream]"),
    sweeping("device-block", "", "Threads of a device's block in x and y, layers it passes through: 32x8x64."),
    sweeping("pack", "first", "streams: pack first, or beside the interior."),
    sweeping("graph", "off", "On one rank of a device: launch each program as one captured graph: off, on."),
    sweeping("box", "1", "box, box-overlap: layers of the host around the device's block."),
    click.option("--periodic", default="", metavar="DIMS", help="Dimensions that wrap: xyz, xy, ..., none. [all]"),
    click.option("--barrier", is_flag=True, help="Barrier before each exchange, timed as desync."),
)
HOW = options_of(
    click.option("--steps", "-i", type=click.IntRange(1), help="Time steps per repetition."),
    click.option("--seconds", type=float, help="Length of a repetition instead of --steps. [0.2]"),
    click.option("--repetitions", type=click.IntRange(1), help="Repetitions per launch. [5]"),
    click.option("--warmup", type=click.IntRange(0), help="Repetitions before the measured ones. [1]"),
    click.option("--launches", type=click.IntRange(1), default=3, show_default=True, help="Starts of the ranks."),
    click.option("--order-seed", type=int, default=0, help="Seed of the random order."),
    click.option("--verify", type=click.IntRange(0), help="Steps compared with `reference`; 0 = off. [2 depth + 1]"),
    click.option(
        "--initial",
        type=click.Choice(["random", "gaussian", "id", "zero"]),
        help="Initial data. [random; poisson2d: zero]",
    ),
    click.option("--seed", type=int, help="Seed of random initial data."),
    click.option("--velocity", metavar="A,B,C", help="advection3d: velocity."),
    click.option("--nu", type=float, help="advection3d: time step over grid spacing."),
    click.option("--weights", metavar="W0,..,W4", help="laplace2d: the stencil's weights."),
    click.option("--timers", type=click.Choice(["on", "off"]), help="Timers of single phases. [on]"),
    click.option(
        "--watchdog", type=float, default=0.0, help="Seconds without progress that end the run. [max(10, 20 steps)]"
    ),
    click.option(
        "--inject", default="", metavar="KIND:rank=R,step=S[,seconds=X]", help="Fault for tests: delay, hang, kill."
    ),
)
WHERE = options_of(
    click.option("--output", type=click.Path(path_type=Path), help="Record file. [results/scratch/APP-TIME.jsonl]"),
    click.option("--resume", is_flag=True, help="Skip what the record file already holds."),
    click.option("--trace", type=click.Path(), metavar="FILE",
                 help="Every operation and MPI call of all ranks in the last repetition, for Perfetto or chrome://tracing "
                      "(one configuration)."),
    click.option("--timeline", is_flag=True, help="Show each rank's seconds by phase and MPI call, and blocked seconds."),
    click.option("--statistic", type=click.Choice(["rank0", "min", "mean", "max", "all"]),
                 help="Also show the phases, by this statistic over ranks."),
    click.option("--baseline", metavar="ID", help="Configuration that speed-ups refer to. [bulk ordered/p2p depth 1]"),
)  # fmt: skip
STUDY = options_of(
    click.option(
        "-h", "--height", type=int, help="2023 study: global height; with -l instead of --cells, implies f32."
    ),
    click.option("-l", "--length", type=int, help="2023 study: global length."),
    click.option("-s", "--sparse", type=click.IntRange(0, 1), default=0, help="2023 study: 1 = terse output."),
    click.option("--exchange", type=click.Choice(list(EXCHANGE_WORDS)), help="2023 study: the exchange."),
)


@click.command(short_help="Measure an app; lists and ranges sweep.")
@WHAT
@HOW
@WHERE
@STUDY
@options_of(*partdiff.OPTIONS)
@click.pass_context
def command(context, app, **options):
    """Measure APP (advection3d, laplace2d, laplace3d, poisson2d) and rank the configurations.

    \b
    haloscope run laplace2d --cells 2048x2048 --depth 1,2,4,8 --schedule bulk,split
    haloscope run advection3d --cells 64..256*2 --strategy 'ordered/*' --ranks 1,2
    haloscope run laplace2d -h 20000 -l 20000 -d 8 -i 100 -s 1      (the 2023 study's own flags)
    haloscope run poisson2d --partdiff "1 2 512 1 2 5000"           (the 2021 study's own program)

    Records go to a JSON Lines file; a table, fastest first, to the terminal. Exit code 1 when a result is not
    byte-identical to `reference`, 2 when nothing asked for can work, 3 when this machine or MPI cannot do it.
    """
    from haloscope.core import build
    from haloscope.measure import campaign, devices
    from haloscope.report import records

    _study_flags(app, options)
    given = [name for name in options if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
    partdiff.translate(app, options, given)
    if options["find_precision"]:
        partdiff.sequential(options)
    _check_seconds(options)
    options["timeline"] = "on" if options["timeline"] else None
    options["device"] = devices.found(options["device"])
    planned = plan_sweep(app, options)
    if options["trace"] and len(planned.configurations) > 1:
        raise errors.UsageProblem("--trace writes one file, and this is a sweep; ask for one configuration")
    refuse_if_none_can_run(planned)
    build.rank_program()  # is it there? asked before a record file is made
    _refuse_lacking(options["strategy"] or "")
    output = options["output"] or records.scratch(app)
    run = campaign.Campaign(
        planned,
        output,
        launches=options["launches"],
        seed=options["order_seed"],
        resume=options["resume"],
        watchdog_s=options["watchdog"],
        inject=options["inject"],
        what=app,
    )
    try:
        found = run.run()
    except (KeyboardInterrupt, errors.HaloscopeError):
        found = run.results() if output.is_file() else []
        if found:
            _report(found, options, output)
        raise
    _report(found, options, output)
    return campaign.exit_code(found)


def _study_flags(app: str, options: dict) -> None:
    """Translate the 2023 study's flags into ours."""
    height, length = options["height"], options["length"]
    if (height is None) != (length is None):
        raise errors.UsageProblem(
            "-h (height) and -l (length) belong together; give both, or use --cells LENGTHxHEIGHT"
        )
    if height is not None:
        if options["cells"]:
            raise errors.UsageProblem("--cells and -h/-l both give the grid; use one of them")
        options["cells"] = f"{length}x{height}"
        options["real"] = options["real"] or "f32"
    options["real"] = options["real"] or "f64"


def _check_seconds(options: dict) -> None:
    if options["steps"] and options["seconds"] is not None:
        raise errors.UsageProblem("--steps and --seconds both give the length of a repetition; use one of them")
    if options["seconds"] is not None and options["seconds"] <= 0:
        raise errors.UsageProblem(f"--seconds {options['seconds']:g} is not possible; use a time above 0")
    if not options["steps"]:
        options["seconds"] = options["seconds"] or 0.2


def plan_sweep(app: str, options: dict):
    """Turn the options into a sweep: the cross product of all lists, legality applied."""
    from haloscope import core
    from haloscope.measure import devices, sweep

    info = core.find_app(app)
    if not options["cells"]:
        example = "x".join(["128"] * info.dims)
        raise errors.UsageProblem(f"run {app} needs a grid size; for example --cells {example}")
    settings = {name.replace("_", "-"): f"{options[name]:g}" if isinstance(options[name], float) else str(options[name])
                for name in PASSED_ON if options[name] is not None}  # fmt: skip
    settings.setdefault("repetitions", "5")
    places = devices.words(options["device"])
    _check_device_options(options, any(places))
    axes = {
        "cells": sweep.shapes(options["cells"], info.dims),
        "ranks": positive(sweep.numbers(options["ranks"], "--ranks"), "--ranks"),
        "threads": sweep.numbers(options["threads"], "--threads"),
        "depth": sweep.numbers(options["depth"], "--depth"),
        "region": sweep.names(options["region"], core.region_names(), "region"),
        "form": _names_or_default(options["form"], core.forms(app), f"form of {app}"),
        "real": sweep.names(options["real"], core.reals(app), f"scalar type of {app}"),
        "process_grid": options["process_grid"].split(","),
        "sharing": options["sharing"].split(","),
        "tiles": sweep.numbers(options["tiles"], "--tiles"),
        "isa": options["isa"].split(","),
        "periodic": [options["periodic"]],
        "barrier": [options["barrier"]],
        "nodes": sweep.numbers(options["nodes"], "--nodes"),
        "placement": options["placement"].split(","),
        "memory": options["memory"].split(","),
        "device_kernel": options["device_kernel"].split(","),
        "device_block": _blocks(options["device_block"]),
        "pack": sweep.names(options["pack"], ("first", "beside"), "--pack"),
        "box": positive(sweep.numbers(options["box"], "--box"), "--box"),
        "graph": [word == "on" for word in sweep.names(options["graph"], ("off", "on"), "--graph")],
    }
    planned = sweep.Sweep()
    for device in places:
        for schedule in _schedules(options, device):
            moved = device if schedule not in sweep.BOXES else ""  # whose memory messages move
            own = {"schedule": [schedule], "strategy": _strategies(options, moved), "device": [device]}
            planned += sweep.expand(app, axes | own, settings)
    return sweep.with_verification(planned, options["verify"])


def _schedules(options: dict, device: str) -> list[str]:
    from haloscope import core
    from haloscope.measure import sweep

    words = DEVICE_WORDS if device else SCHEDULE_WORDS
    text = ",".join(words.get(word, word) for word in options["schedule"].split(","))
    return sweep.names(text, core.schedule_names(), "schedule")


def _strategies(options: dict, device: str) -> list[str]:
    """Return what --exchange or --strategy ask for, else the default for messages of a device's or the host's memory."""
    from haloscope import core
    from haloscope.measure import sweep

    usual = core.device_strategy_names()[0] if device else core.Choice.strategy
    if options.get("exchange"):
        return [f"{EXCHANGE_WORDS[options['exchange']]}/{usual.partition('/')[2]}"]
    return sweep.strategies(options["strategy"] or usual, device)


def _blocks(text: str) -> list[str]:
    from haloscope.measure import sweep

    return ["x".join(map(str, shape)) for shape in sweep.shapes(text, 1, "--device-block")] if text else [""]


def _check_device_options(options: dict, on_device: bool) -> None:
    usual = {"device_kernel": "", "device_block": "", "pack": "first", "box": "1", "graph": "off"}
    given = [name for name, value in usual.items() if options[name] != value]
    if given and not on_device:
        raise errors.UsageProblem(
            f"--{given[0].replace('_', '-')} is for devices; add --device, for example --device auto"
        )


def positive(values: list[int], option: str) -> list[int]:
    """Return the values of an option. Raises UsageProblem for one below 1."""
    for value in values:
        if value < 1:
            raise errors.UsageProblem(f"{option} {value} is not possible; use 1 or more")
    return values


def _names_or_default(text: str, valid: list[str], kind: str) -> list[str]:
    from haloscope.measure import sweep

    return sweep.names(text, valid, kind) if text else [""]


def refuse_if_none_can_run(planned) -> None:
    """Raise UsageProblem with the reasons when nothing asked for can run, instead of a file of refusals."""
    if planned.configurations:
        return
    reasons = list(dict.fromkeys(reason for _, reason in planned.refused))
    raise errors.UsageProblem(reasons[0] + (f" (and {len(reasons) - 1} more reasons)" if len(reasons) > 1 else ""))


def _refuse_lacking(strategies: str) -> None:
    """A strategy that was asked for by name must run; one that a glob found is left out by the campaign."""
    from haloscope.measure import probes, sweep

    for strategy in sweep.named_strategies(strategies) if strategies else ():
        reason = probes.lacking(strategy)
        if reason:
            raise errors.NotAvailable(f"{reason}; 'haloscope info' shows what works here")


def _report(found: list[dict], options: dict, output: Path) -> None:
    from haloscope.report import tables, timeline

    measured = [record for record in found if "poisson" in record]
    if measured and options["find_precision"]:
        return click.echo(partdiff.found_precision(measured[-1]))
    if measured and options["partdiff"]:
        return click.echo(f"{partdiff.report(measured[-1])}\n\nrecords: {output}")
    table = tables.rows(found)
    if options["sparse"]:
        click.echo(tables.terse(table))
    elif table:
        click.echo(tables.ranking(table, tables.baseline(table, options["baseline"])))
        if options["statistic"]:
            click.echo("\n" + tables.phases(table, options["statistic"]))
        if options["timeline"]:
            for row in table:
                click.echo(f"\n### Timeline of {row.id}\n\n{timeline.summary(row.records)}")
    for record in measured[-1:] if options["work_blocks"] else []:
        click.echo(f"\n{partdiff.slow_table(record)}")
    for line in tables.refusals(found):
        click.echo(f"\n{line}", err=bool(options["sparse"]))
    click.echo(f"\nrecords: {output}", err=bool(options["sparse"]))
