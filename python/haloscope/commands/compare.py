"""`haloscope compare`: two record files, matched by configuration, as paired ratios with intervals."""

from __future__ import annotations

from pathlib import Path

import click

from haloscope import errors, records, terminal
from haloscope.options.kinds import option
from haloscope.options.output import PAGE


@click.command(short_help="Two record files side by side: paired ratios with intervals.")
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@option("--ignore", default="", metavar="FIELDS", help="Fields that may differ in a pair: --ignore strategy,schedule.")
@PAGE
def command(a: str, b: str, ignore: str, page: Path | None) -> None:
    """Compare the records in A and B, configuration by configuration.

    A ratio above 1 means that B is faster. Launches of the same name are paired. Where the 95 % interval of the ratio
    contains 1, the verdict is "cannot tell apart".
    """
    from haloscope.report import tables
    from haloscope.report.page import comparison

    files = [records.read_aloud(path) for path in (a, b)]
    ignored = [word for word in ignore.split(",") if word]
    left, right = (_by_configuration(file, ignored) for file in files)
    pairs = [(left[key], right[key]) for key in left if key in right]
    if not pairs:
        fault = f"{a} and {b} share no configuration ({len(left)} and {len(right)} in all)"
        remedy = "measure the same ones, or ignore the fields that differ, e.g. --ignore strategy"
        raise errors.UsageError(f"{fault}; {remedy}")
    terminal.echo(tables.comparison(pairs))
    for path, one, other in ((a, left, right), (b, right, left)):
        if alone := [key for key in one if key not in other]:
            terminal.echo(f"\nonly in {path}: {len(alone)} ({one[alone[0]].id}{', ...' if len(alone) > 1 else ''})")
    comparison.write_requested(page, pairs, files)


def _by_configuration(file: records.RecordFile, ignored: list[str]) -> dict:
    from haloscope import bridge
    from haloscope.records.rows import group_rows
    from haloscope.report import tables

    axes = tables.axes()
    if unknown := [name for name in ignored if name not in axes]:
        raise errors.UsageError(errors.unknown_name("field for --ignore", unknown[0], axes))
    found: dict = {}
    for row in group_rows(file.records):
        choice = bridge.Choice.from_json(row.request)  # a field that has no effect on a row is not in its request
        key = row.id if not ignored else tuple(str(getattr(choice, axis)) for axis in axes if axis not in ignored)
        if key in found:
            names = f"{found[key].id} and {row.id}"
            fault = f"{file.path} has configurations that are equal without {', '.join(ignored)}: {names}"
            raise errors.UsageError(f"{fault}; ignore fewer fields or split the file")
        found[key] = row
    return found
