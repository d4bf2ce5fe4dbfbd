"""The part of `haloscope validate` for exchanges that others have timed: `--external`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from haloscope import errors, outputs, terminal


def validate(
    file: str,
    fitted_file: str | None,
    fit_on: Sequence[str],
    holdout: Sequence[str],
    cross: Sequence[str],
    profiles: Path | None,
    as_json: bool,
    stem: Path | None,
) -> None:
    """Fit, predict and print; write what stems are given for. Raises UsageProblem for a table or a condition that is
    none.
    """
    from haloscope.external import fit as fits
    from haloscope.external import judge as model
    from haloscope.external import table
    from haloscope.measure import progress
    from haloscope.report import external as report

    if sum(map(bool, (fitted_file, fit_on, holdout))) > 1:
        raise errors.UsageProblem("--fit, --fit-on and --holdout each say what is fitted; give one of them")
    for axis in cross:
        if axis not in model.AXES:
            raise errors.UsageProblem(errors.unknown_name("axis", axis, model.AXES))
    if stem:
        outputs.refuse_foreign(outputs.beside(stem, ".md"), outputs.REPORT)
    found = table.read(file)
    other = table.read(fitted_file) if fitted_file else None
    fitted_rows, told = _chosen(found, other, fit_on, holdout)
    known = {row.key for row in fitted_rows}
    rest = [row for row in found.rows if row.key not in known]
    with progress.Line(100, "fitting (% of the longest it can take)") as line:
        fitted = fits.fit(
            fitted_rows, f"fitted to {other.path if other else file}", lambda part: line.reach(100 * part)
        )
    with progress.Line(max(1, len(rest)), "predicting") as line:
        judged = model.judge(rest, fitted, line.reach)
    folds = []
    for axis in cross:
        with progress.Line(100, "cross-validating (%)") as line:

            def show(part: float, at: str, to: progress.Line = line) -> None:
                to.reach(100 * part, at)

            folds += model.cross_validate(fitted_rows, axis, show)
    notes = list(dict.fromkeys((*(other.notes if other else ()), *found.notes)))
    made = (fitted, f"{told} {len(rest)} others are predicted.", judged, folds, notes)
    terminal.echo(terminal.json_text(report.document(*made)) if as_json else report.markdown(*made))
    if stem:
        outputs.write_report(outputs.beside(stem, ".md"), report.markdown(*made))
        terminal.echo(f"written: {outputs.beside(stem, '.md')}", err=True)
    if profiles:
        _save(profiles, fitted, fitted_rows)


def _chosen(found, other, fit_on: Sequence[str], holdout: Sequence[str]):
    """Return the rows to fit and which they are, in words."""
    from haloscope.external import judge as model

    if other:
        return list(other.rows), f"Costs are fitted to the {len(other.rows)} exchanges of {other.path} alone."
    conditions = [model.parse_condition(text) for text in (*fit_on, *holdout)]
    words = " and ".join(fit_on or holdout)
    chosen = model.select(found.rows, conditions)
    if holdout:
        without = {row.key for row in chosen}
        chosen = [row for row in found.rows if row.key not in without]
        told = f"but those with {words}"
    elif fit_on:
        told = f"with {words}"
    else:
        chosen = model.half_of_cases(found.rows)
        told = "of half of the cases"
    return (
        chosen,
        f"Costs are fitted to {len(chosen)} of the {len(found.rows)} exchanges of {found.path}: all {told} alone.",
    )


def _save(stem: Path, fitted, rows) -> None:
    from haloscope.external import fit as fits
    from haloscope.external import predictions
    from haloscope.model import profile as profiles

    teams: dict[str, list] = {}
    for row in rows:
        teams.setdefault(fits.name_of(row), []).append(row)
    paths = {name: stem.with_name(f"{stem.name}-{name}.json") for name in teams}
    for path in paths.values():
        outputs.refuse_foreign(path, outputs.PROFILE)
    for name, team in teams.items():
        most = max(team, key=lambda row: row.nodes)
        profiles.save(predictions.with_kernels(fitted.profile_of(most), team), paths[name])
        terminal.echo(f"written: {paths[name]}", err=True)
