"""`haloscope check`: a user's own MPI program on several numbers of ranks; which is the first that gives other
results.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from haloscope import errors, scratch, terminal
from haloscope.options import FiniteRange, option
from haloscope.options import command as command_of

MOST_RANKS = 1024


@command_of(
    short_help="Your own MPI program on 1, 2, 3, ... ranks: are its results the same?",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("program", nargs=-1, required=True, metavar="-- PROGRAM [ARGS]...")
@option(
    "--ranks", "-n", default="1,2,3,4,6", metavar="LIST", help="Numbers of ranks; the first is the base. [1,2,3,4,6]"
)
@option(
    "--file",
    "files",
    multiple=True,
    metavar="PATTERN",
    help="Compare these files that it writes, instead of what it prints; may be repeated.",
)
@option("--printed", is_flag=True, help="With --file: compare what it prints, too.")
@option("--type", type=click.Choice(["f8", "f4", "i4", "i8"]), help="What raw binary files hold.")
@option("--shape", metavar="XxYxZ", help="Points of raw binary files, x contiguous.")
@option("--numbers-only", is_flag=True, help="Of texts, compare the numbers alone.")
@option("--ignore", multiple=True, metavar="REGEX", help="Leave out lines in which this occurs; may be repeated.")
@option(
    "--relative", type=FiniteRange(min=0), default=0.0, metavar="X", help="Relative difference allowed. [0: every bit]"
)
@option("--absolute", type=FiniteRange(min=0), default=0.0, metavar="X", help="Absolute difference allowed. [0]")
@option(
    "--input",
    "inputs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Copy this file or folder into each working folder; may be repeated.",
)
@option(
    "--timeout",
    type=FiniteRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="A run that takes longer is ended; 0: each is waited for. [0]",
)
@option("--mpiexec", metavar="PATH", help="The mpiexec of the program's own MPI. [the one of 'haloscope info']")
@option(
    "--process-grid",
    default="cubic",
    metavar="RULE",
    group="grid",
    help="What {grid}, {px}, {py}, {pz} stand for: cubic, square, prime-factors, slabs. [cubic]",
)
@option("--dims", type=click.IntRange(1, 3), default=2, group="grid", help="Dimensions of {grid}. [2]")
@option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    group="output",
    help="Keep working folders and output here; it must not exist, or be empty.",
)
@option("--json", "as_json", is_flag=True, group="output", help="One JSON document instead of a table.")
def command(program, ranks, inputs, timeout, mpiexec, process_grid, dims, keep, as_json, **options):
    """Run PROGRAM, with any MPI and without Haloscope, on several numbers of ranks and compare its results. Wrong halos
    show as results that depend on the number of ranks.

    \b
    haloscope check -- ./heat 512 512
    haloscope check --file 'u*.npy' --input heat.nml -- ./heat heat.nml
    haloscope check -n 1,4,8 --file u.raw --type f8 --shape 512x256 -- ./heat {px} {py}

    In ARGS, {ranks} is the number of ranks, {grid} a process grid as 2x1, {px}, {py}, {pz} its parts, {here} this
    folder. Exit code 0 when all results are equal, 1 when some differ or a run failed.
    """
    from haloscope.measure import check, launch, lists
    from haloscope.report import check as report

    rules = rules_of(options)
    counts = lists.numbers(ranks, "--ranks")
    for count in counts:
        launch.require_ranks(count)
        if count > MOST_RANKS:
            raise errors.UsageProblem(
                f"--ranks {count} is more than the {MOST_RANKS} that a check starts; fewer show the same"
            )
    if len(counts) < 2:
        raise errors.UsageProblem(f"--ranks {ranks} is one number of ranks; give two or more to compare, as 1,2,3")
    commands = {count: words_of(program, count, process_grid, dims) for count in counts}
    launcher = mpiexec_of(mpiexec)
    _refuse_inputs(inputs, keep)
    with ExitStack() as stack:
        root = _prepare(keep) if keep else stack.enter_context(scratch.folder())
        checked = check.Check(rules, commands, launcher, timeout or math.inf, inputs, root.absolute(), bool(keep)).run()
    terminal.echo(terminal.json_text(report.document(checked)) if as_json else report.markdown(checked))
    return errors.OK if checked.passed else errors.FAILED


# ---- what was requested ----------------------------------------------------------------------------------------------


def rules_of(options: Mapping):
    """Return the rules of comparison of options. Raises UsageProblem and NotAvailable for those that cannot be
    followed.
    """
    from haloscope.measure import lists
    from haloscope.records import differences

    shape = options["shape"] or ""
    shapes = lists.shapes(shape, 1, "--shape") if shape else [()]
    if len(shapes) != 1 or any(points < 1 for points in shapes[0]):
        raise errors.UsageProblem(f"--shape {shape} is not one shape; write up to three numbers as 64x64x32")
    if shape and not options["type"]:
        raise errors.UsageProblem("--shape is for raw binary files; say what they hold, as --type f8")
    if not options["files"]:
        for name in ("type", "printed"):
            if options[name]:
                raise errors.UsageProblem(f"--{name} goes with --file; name the files, as --file 'u*.dat'")
    for pattern in options["files"]:
        _refuse_pattern(pattern)
        if pattern.endswith(differences.UNSUPPORTED):
            differences.refuse_format(pattern)
    tolerance = differences.Tolerance(options["relative"], options["absolute"])
    return differences.Rules(
        options["printed"] or not options["files"],
        options["files"],
        options["type"],
        shapes[0],
        options["numbers_only"],
        tuple(map(_pattern, options["ignore"])),
        tolerance,
    )


def _refuse_pattern(pattern: str) -> None:
    path = Path(pattern)
    if not path.parts or path.is_absolute() or ".." in path.parts or any("**" in p and p != "**" for p in path.parts):
        raise errors.UsageProblem(
            f"--file '{pattern}' is no pattern below the working folder; write it as 'out/u*.npy'"
        )


def _pattern(text: str) -> re.Pattern:
    try:
        return re.compile(text)
    except re.error as error:
        raise errors.UsageProblem(f"--ignore '{text}' is no regular expression: {error}") from None


def words_of(program: Sequence[str], ranks: int, process_grid: str, dims: int) -> list[str]:
    """Return the command line of a program on a number of ranks, its placeholders replaced.

    Raises UsageProblem when the program is not there or the process grid is none of so many ranks.
    """
    from haloscope import core
    from haloscope.measure import user_program

    values = {"{ranks}": str(ranks), "{here}": str(Path.cwd())}
    if any(text in word for word in program for text in ("{grid}", "{px}", "{py}", "{pz}")):
        grid = core.process_grid(process_grid, ranks, [ranks] * dims)
        values["{grid}"] = "x".join(map(str, grid))
        values |= {f"{{p{axis}}}": str(blocks) for axis, blocks in zip("xyz", [*grid, 1, 1], strict=False)}
    words = []
    for word in program:
        for name, value in values.items():
            word = word.replace(name, value)  # noqa: PLW2901
        words.append(word)
    return [user_program.find_program(words[0]), *words[1:]]


def mpiexec_of(path: str | None) -> Path:
    """Return the mpiexec at a path, or the one that Haloscope uses. Raises NotAvailable when there is none."""
    from haloscope.measure import launch

    if path is None:
        return launch.mpiexec()
    found = shutil.which(path)
    if not found:
        raise errors.NotAvailable(f"--mpiexec '{path}' cannot be executed; give the path of an mpiexec")
    return Path(found).absolute()


def _refuse_inputs(inputs: Sequence[Path], keep: Path | None) -> None:
    for path in inputs:
        if not (path.is_file() or path.is_dir()) or not path.resolve().name:
            raise errors.UsageProblem(f"--input {path} is no file or folder to copy; give the path of one")
        if keep and keep.resolve().is_relative_to(path.resolve()):
            raise errors.UsageProblem(
                f"--keep {keep} lies in --input {path}, which would be copied into itself; keep it elsewhere"
            )


def _prepare(folder: Path) -> Path:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise errors.UsageProblem(f"--keep {folder} is there and not an empty folder; name a new one")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
