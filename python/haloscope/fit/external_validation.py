"""A fit to some exchanges of a table, its predictions of the others, and its profiles as files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from haloscope import outputs
from haloscope.fit import external_predictions
from haloscope.fit.external_fit import Fit, fit, name_of
from haloscope.fit.external_judge import Fold, Judged, cross_validate, judge
from haloscope.fit.external_table import Measured, Table
from haloscope.measure import progress
from haloscope.model import profile as profiles


class Validation(NamedTuple):
    """The fit, its predictions of all other rows, and cross-validation. basis: describes fitted and predicted rows."""

    fitted: Fit
    basis: str
    judged: Judged
    folds: Sequence[Fold]
    notes: Sequence[str]


def validate(
    found: Table, other: Table | None, fitted_rows: Sequence[Measured], basis: str, cross: Sequence[str]
) -> Validation:
    """Fit costs to some rows, of `other` if passed, and predict the rest of `found`.

    basis: describes the fitted rows. cross: axes to validate across. Raises as `fit` and `cross_validate` do.
    """
    known = {row.key for row in fitted_rows}
    rest = [row for row in found.rows if row.key not in known]
    with progress.Line(100, "fitting (% of the max number of steps)") as line:
        fitted = fit(fitted_rows, f"fitted to {(other or found).path}", lambda part: line.reach(100 * part))
    with progress.Line(max(1, len(rest)), "predicting") as line:
        judged = judge(rest, fitted, line.reach)
    folds = []
    for axis in cross:
        with progress.Line(100, "cross-validating (%)") as line:

            def show(part: float, at: str, to: progress.Line = line) -> None:
                to.reach(100 * part, at)

            folds += cross_validate(fitted_rows, axis, show)
    notes = list(dict.fromkeys((*(other.notes if other else ()), *found.notes)))
    return Validation(fitted, f"{basis} {len(rest)} others are predicted.", judged, folds, notes)


def save_profiles(stem: Path, fitted: Fit, rows: Iterable[Measured]) -> Iterator[Path]:
    """Write the fitted profile of each program, as STEM-PROGRAM.json; yield each written file.

    Raises UsageError before the first one if any of them would replace a file that Haloscope did not write.
    """
    teams: dict[str, list[Measured]] = {}
    for row in rows:
        teams.setdefault(name_of(row), []).append(row)
    paths = {name: stem.with_name(f"{stem.name}-{name}.json") for name in teams}
    for path in paths.values():
        outputs.refuse_foreign(path, outputs.PROFILE)
    for name, team in teams.items():
        most = max(team, key=lambda row: row.nodes)
        profiles.save(external_predictions.with_kernels(fitted.profile_of(most), team), paths[name])
        yield paths[name]
