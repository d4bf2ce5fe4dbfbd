"""The part of `haloscope validate` for exchanges timed by others: `--external`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haloscope import errors, outputs, terminal


def validate(options: Mapping[str, Any]) -> None:
    """Fit, predict and print; write the files of stems that are named.

    Raises UsageError for a malformed table or condition.
    """
    from haloscope.fit import external_judge, external_table, external_validation
    from haloscope.report import external as report

    fitted_file, fit_on, holdout = options["fitted_file"], options["fit_on"], options["holdout"]
    stem, profiles = options["stem"], options["profiles"]
    if sum(map(bool, (fitted_file, fit_on, holdout))) > 1:
        raise errors.UsageError("--fit, --fit-on and --holdout each select the rows to fit; give one of them")
    external_judge.refuse_unknown_axes(options["cross"])
    if stem:
        outputs.refuse_foreign(outputs.beside(stem, ".md"), outputs.REPORT)
    found = external_table.read(options["external"])
    other = external_table.read(fitted_file) if fitted_file else None
    rows, basis = external_judge.choose(found, other, fit_on, holdout)
    made = external_validation.validate(found, other, rows, basis, options["cross"])
    terminal.echo(terminal.json_text(report.document(*made)) if options["as_json"] else report.markdown(*made))
    if stem:
        outputs.write_report(outputs.beside(stem, ".md"), report.markdown(*made))
        terminal.echo(f"written: {outputs.beside(stem, '.md')}", err=True)
    for path in external_validation.save_profiles(profiles, made.fitted, rows) if profiles else ():
        terminal.echo(f"written: {path}", err=True)
