"""The figures of a paper as data: panels, each a figure of the paper with rows and columns of its published tables.

A study lists its panels in `panels.toml` of its package `data`: sheets with a name, a title and panels. Entries of a
sheet are defaults for its panels. `words` has texts for entries of the tables, as `entry` or `column=entry`; `order`
has the subjects with the first looks, so that a subject has one look in all panels of the study.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from haloscope.errors import HaloscopeError
from haloscope.studies import data_of, published

PRINTED, MODEL, OURS, HERE = "printed", "model", "ours", "here"
FILE = "panels.toml"
TEXT = "text"  # in place of tables, of values that the text states
LEAST, FIRST, MIDDLE, THIRD, MOST = "min", "q1", "q2", "q3", "max"  # entries of a column of statistics
MEAN = "mean"

Place = Any  # a number or a name; keys of mappings have no common type of both
Row = Mapping[str, str]
Ends = Mapping[Place, tuple[float, float]]


@dataclass(frozen=True)
class Line:
    """The points of one subject, such as a version, in a panel.

    label: the subject; after ", " a detail, such as a size: lines of one subject share a colour. points: y by x.
    source: PRINTED in the paper, its MODEL, OUR model of the same runs, or measured HERE. ends: least and most, or an
    interval, by x. quarters: first and third quartile by x.
    """

    label: str
    points: Mapping[Place, float]
    source: str = PRINTED
    ends: Ends = field(default_factory=dict)
    quarters: Ends = field(default_factory=dict)

    @property
    def subject(self) -> str:
        """The label without its detail."""
        return self.label.partition(", ")[0]


@dataclass(frozen=True)
class Panel:
    """One drawing.

    figure: numbers of the paper's figures, such as "5.1-5.3, 5.9". name: under which a study has more lines for it.
    kind: lines, bars, box, heatmap (a row of cells per line) or timeline (points and ends: spans by line). csv: the
    published table. where: the entries of its rows, one or several by column. by, detail: columns of labels. x: columns
    of x. y: columns of values. label: of a panel without `by`. spread: the column of statistics. error: the column of
    standard errors. least: the column of the least of a range, whose most is y. over: entries of the rows that values
    are divided by. factor: to the unit of y_label. log: the logarithmic axes, of "xy"; of a map, "y" are its colours.
    level: the reference y. tables: of the paper, if no column `source` has them; "text": stated in the text. about:
    machine and sample of the printed values. needs: what the figure needs beyond what is drawn.
    """

    figure: str
    title: str
    name: str = ""
    kind: str = "lines"
    csv: str = ""
    where: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    by: Sequence[str] = ()
    detail: Sequence[str] = ()
    x: Sequence[str] = ()
    y: Sequence[str] = ()
    label: str = ""
    spread: str = ""
    error: str = ""
    least: str = ""
    over: Mapping[str, str] = field(default_factory=dict)
    factor: float = 1.0
    x_label: str = ""
    y_label: str = ""
    log: str = ""
    level: float | None = None
    source: str = "source_table"
    tables: str = ""
    about: str = ""
    needs: str = ""

    @property
    def figures(self) -> list[str]:
        """The numbers of the figures, ranges expanded."""
        return [number for part in self.figure.split(", ") if part for number in _expanded(part)]


@dataclass(frozen=True)
class Sheet:
    """One file of panels."""

    name: str
    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Paper:
    """The figures of a paper. words: texts by entry of tables. order: subjects with the first looks."""

    study: str
    title: str
    sheets: Sequence[Sheet]
    words: Mapping[str, str]
    order: Sequence[str]

    def lines(self, panel: Panel) -> list[Line]:
        """Return the printed lines of a panel. Raises HaloscopeError where two rows have one place in a line."""
        groups: dict[str, dict[Place, dict[str, float]]] = {}
        base = self._base(panel)
        found = self.rows(panel)
        is_number = len(panel.x) == 1 and all(_is_number(row[panel.x[0]]) for row in found)
        for row, column in ((row, column) for row in found for column in panel.y if row[column]):
            place = float(row[panel.x[0]]) if is_number else self._text(row, panel.x)
            value = panel.factor * float(row[column]) / base.get(_key(panel, row, column), 1.0)
            of_place = groups.setdefault(self._label(panel, row, column), {}).setdefault(place, {})
            statistic = row[panel.spread] if panel.spread else MEAN
            if statistic in of_place:
                raise HaloscopeError(f"{panel.csv}.csv has two rows for {place} of {panel.title}; add a column to `by`")
            of_place[statistic] = value
            if panel.least:
                of_place |= {LEAST: panel.factor * float(row[panel.least] or row[column]), MOST: value}
            if panel.error and row[panel.error]:
                error = panel.factor * float(row[panel.error])
                of_place |= {LEAST: value - error, MOST: value + error}
        return [_line(label, by_place) for label, by_place in groups.items()]

    def rows(self, panel: Panel, **other: str) -> list[dict[str, str]]:
        """Return the rows of a panel's table; other: entries instead of the panel's."""
        wanted = {**panel.where, **other}
        table = published(self.study, panel.csv) if panel.csv else []
        return [r for r in table if all(r[c] == e if isinstance(e, str) else r[c] in e for c, e in wanted.items())]

    def tables(self, panel: Panel) -> str:
        """Return the tables of the paper that a panel's values are printed in."""
        if panel.tables or not panel.csv:
            return panel.tables
        return ", ".join(dict.fromkeys(row[panel.source] for row in self.rows(panel) if panel.source in row))

    def _base(self, panel: Panel) -> dict[tuple[str, ...], float]:
        if not panel.over:
            return {}
        found = self.rows(panel, **panel.over)
        return {_key(panel, row, c): float(row[c]) for row in found for c in panel.y if row[c]}

    def _label(self, panel: Panel, row: Row, column: str) -> str:
        several = self._word("", column) if len(panel.y) > 1 else ""
        subject = " ".join(filter(None, (self._text(row, panel.by), several))) or panel.label or panel.title
        return ", ".join(filter(None, (subject, self._text(row, panel.detail))))

    def _text(self, row: Row, columns: Sequence[str]) -> str:
        return " ".join(filter(None, (self._word(column, row[column]) for column in columns)))

    def _word(self, column: str, entry: str) -> str:
        return self.words.get(f"{column}={entry}", self.words.get(entry, entry.replace("_", " ")))


def load(study: str) -> Paper | None:
    """Return the figures of a study's paper; None where it lists none."""
    try:
        file = data_of(study).joinpath(FILE)
    except ModuleNotFoundError:
        return None
    if not file.is_file():
        return None
    read = tomllib.loads(file.read_text(encoding="utf-8"))
    sheets = [_sheet(entry, read.get("panels", {})) for entry in read["sheet"]]
    return Paper(study, read["paper"], sheets, read.get("words", {}), read.get("order", []))


def _sheet(entry: Mapping[str, Any], of_all: Mapping[str, Any]) -> Sheet:
    own = {key: value for key, value in entry.items() if key not in ("name", "title", "panel")}
    return Sheet(entry["name"], entry["title"], [_panel({**of_all, **own}, one) for one in entry["panel"]])


def _panel(shared: Mapping[str, Any], own: Mapping[str, Any]) -> Panel:
    """Return a panel; its `where` has the entries of its sheet too. Columns may be one text."""
    merged = {**shared, **own, "where": {**shared.get("where", {}), **own.get("where", {})}}
    for name in ("by", "detail", "x", "y"):
        if isinstance(columns := merged.get(name), str):
            merged[name] = (columns,)
    return Panel(**merged)


def _expanded(part: str) -> Iterator[str]:
    """Yield the numbers of a range, such as 5.1, 5.2 and 5.3 of "5.1-5.3", or the one number."""
    first, _, last = part.partition("-")
    chapter, _, number = first.partition(".")
    end = last.rpartition(".")[2] or number
    yield from (f"{chapter}.{n}" for n in range(int(number), int(end) + 1)) if number else (first,)


def _key(panel: Panel, row: Row, column: str) -> tuple[str, ...]:
    """Return what a row has in common with the row that its values are divided by."""
    columns = dict.fromkeys((*panel.by, *panel.detail, *panel.x, *panel.where))
    return (column, *(row[c] for c in columns if c not in panel.over))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _line(label: str, found: Mapping[Place, Mapping[str, float]]) -> Line:
    """Return a line: points are means, or medians where quartiles are there."""
    points = {x: values[MIDDLE] if MIDDLE in values else values[MEAN] for x, values in found.items()}
    ends = {x: (values[LEAST], values[MOST]) for x, values in found.items() if LEAST in values and MOST in values}
    quarters = {x: (values[FIRST], values[THIRD]) for x, values in found.items() if FIRST in values}
    return Line(label, points, PRINTED, ends, quarters)


def comparable(printed: Sequence[Line], others: Sequence[Line]) -> list[Line]:
    """Return the other lines that may stand in a panel: of those measured HERE, points at printed labels and places.

    Lines of another source count as printed, in `others` too; where there are none, all points may stand.
    """
    places = {line.label: line.points.keys() for line in (*printed, *others) if line.source != HERE}
    kept = [line if not places or line.source != HERE else _at(line, places.get(line.label, ())) for line in others]
    return [line for line in kept if line.points]


def _at(line: Line, places: Collection[Place]) -> Line:
    points = {x: y for x, y in line.points.items() if x in places}
    return dataclasses.replace(line, points=points, ends={x: e for x, e in line.ends.items() if x in points})
