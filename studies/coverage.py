#!/usr/bin/env python3
"""Write studies/coverage.md, the states of all checklist rows, from the checklists and JUnit reports of a test run.

    python -m pytest --junitxml=build/tests.xml && studies/coverage.py build/tests.xml

The script runs no tests. The rows, their acceptance tests and the reach of the tests are in each study's checklist.csv.
A test names the rows that it shows by a marker (`@pytest.mark.ids("W8")`) or at the start of its GoogleTest name
(`W8_...`). The states:

- `holds`: assessed as such, a test that names the row passed, and none failed;
- `weaker`: a test passed, but the tests assert less than the acceptance test, ran at fewer rank counts than it
  requires, or skipped the case that it requires;
- `open`: anything else, whatever the assessment is.

Skipped and deselected cases do not count as run. An id that no checklist has is an error: no page is written.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import xml.etree.ElementTree as xml
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import cards  # found by the line above

FOLDER = Path(__file__).resolve().parent
STATES = ("holds", "weaker", "open")
HEADINGS = {"holds": "holds", "weaker": "weaker than the claim", "open": "open"}
STUDIES = {
    "white2011": "White and Dongarra 2011: overlap in 3D advection on hybrid machines. *Equal* means a relative "
    "difference "
    "of at most 1e-14 from implementation A with one thread, or the same bytes where sums have the same order.",
    "valen2023": "Valen 2023: deep halos, exchanges and overlap in 2D on GPUs. *Bit-exact* means the bytes of one "
    "rank with "
    "one full periodic sweep per iteration, in all own points, from random data.",
    "schroeter2021": "Schroeter 2021: one-sided, two-sided and shared-memory MPI for a Poisson solver. *Bit-exact* "
    "means the "
    "bytes of the sequential program in the whole field. Parallel rows need 1, 2, 3, 4, 7 and 8 ranks at least, "
    "with lines "
    "that do not divide evenly.",
    "vanecek2020": "Vanecek 2020: blocks of a GPU that signal the CPU to send. Rows NX1 to NX7 are ideas that the "
    "thesis "
    "proposes and does not implement.",
    "davis2017": "Davis 2017: a performance model of a hydrodynamics code, its optimisations, and a linear solver. "
    "Rows DC, "
    "DD1, DD3, DF and DH2 need printed data only.",
}
INTRODUCTION = """# Claims of the studies, and their state

Made by `studies/coverage.py` from `checklist.csv` of each study and a test report; not to be edited.

Each row has an acceptance test. Its tests were read against it:

- **holds**: tests that name the row assert the whole acceptance test, and passed.
- **weaker than the claim**: they passed, but assert less; the list below the table names the missing part.
- **open**: nothing shows the row, a test that names it failed, or none of them passed.

*Tests* counts the tests that passed, of all that name the row. *Ranks* are the numbers of MPI ranks at which they ran,
where the report has any; skipped and deselected cases did not run. A rank count means that a test ran there, not that
it tried every combination: suite `Strategies` takes a sample, the smaller the more ranks. *Device* shows if a GPU was
used or only an imitated one, for rows where this matters.
"""


CARDS = """Configurations that `bench/gpu.py` has compared with the CPU's reference, byte for byte, by the rows they
show. They do not affect the states above, which follow from tests alone."""


@dataclass(frozen=True)
class Row:
    """A row of a checklist: its requirement, and the verdict on the assertions of its tests."""

    id: str
    title: str
    acceptance: str
    verdict: str
    missing: str = ""  # the part that the tests do not assert
    ranks: frozenset[int] = frozenset()  # rank counts that the acceptance test requires
    case: str = ""  # the test that is the acceptance case itself, where others only resemble it
    device: bool = False  # true if it matters that a device was used


@dataclass
class Test:
    """The outcome of one test over all its cases (parameters, rank counts)."""

    state: str = "skipped"
    ranks: set[int] = field(default_factory=set)  # of the cases that passed
    card: bool = False

    def add(self, state: str, ranks: Iterable[int], card: bool) -> None:
        """Count a case: the test passed if one did and none failed."""
        self.state = max(self.state, state, key=("skipped", "passed", "failed").index)
        if state == "passed":
            self.ranks.update(ranks)
            self.card |= card


@dataclass(frozen=True)
class Judged:
    """A row with its state, and the tests and reasons behind the state."""

    row: Row
    tests: Mapping[str, Test]
    state: str
    reasons: Sequence[str]

    @property
    def passed(self) -> list[Test]:
        """Return the tests that passed."""
        return [test for test in self.tests.values() if test.state == "passed"]

    @property
    def ranks(self) -> set[int]:
        """Return the rank counts at which tests of this row passed."""
        return set().union(*(test.ranks for test in self.passed))


def read(folder: Path = FOLDER) -> dict[str, list[Row]]:
    """Return study -> rows."""
    found = {}
    for study in STUDIES:
        with (folder / study / "checklist.csv").open(newline="") as file:
            found[study] = [
                Row(**{**line, "ranks": frozenset(map(int, line["ranks"].split())), "device": line["device"] == "yes"})
                for line in csv.DictReader(file)
            ]
    return found


def outcomes(reports: Sequence[Path]) -> dict[str, dict[str, Test]]:
    """Return id -> name of a test -> its outcome."""
    found: dict[str, dict[str, Test]] = defaultdict(lambda: defaultdict(Test))
    for case in (case for report in reports for case in xml.parse(report).iter("testcase")):
        properties = [(p.get("name"), p.get("value", "")) for p in case.iter("property")]
        card = ("device", "card") in properties
        for ids, test, state, ranks in _claims(case, properties):
            for row in ids:
                found[row][test].add(state, ranks, card)
    return found


def _claims(case: xml.Element, properties: Sequence[tuple]) -> Iterator[tuple[list[str], str, str, list[int]]]:
    """Yield (ids, test, state, rank counts) of a test case, and of each GoogleTest that it runs."""
    values: dict[str, list[str]] = defaultdict(list)
    for name, value in properties:
        values[name].append(value)
    children = {child.tag for child in case}
    state = "failed" if children & {"failure", "error"} else "skipped" if "skipped" in children else "passed"
    ids, ranks = (" ".join(values[name]).split() for name in ("ids", "ranks"))
    if ids:
        own = f"{case.get('classname', '').split('.')[-1]}::{case.get('name', '').split('[')[0]}"
        yield ids, own, state, [int(n) for n in ranks]
    for covers in values["covers"]:
        some, test, its_state = covers.split("|")
        name, count = re.fullmatch(r"(.*?)(?: \((\d+) ranks\))?", test).groups()
        bare = re.sub(r"^\w+/|(?<=\w)/.*", "", name)  # All/Suite.Name/parameter
        yield some.split(), bare, its_state, [int(count)] if count else []


def judge(row: Row, tests: Mapping[str, Test]) -> Judged:
    """Return the state of a row, with the reasons why it does not hold."""
    passed = {name: test for name, test in tests.items() if test.state == "passed"}
    failed = sorted(name for name, test in tests.items() if test.state == "failed")
    state = row.verdict
    reasons = [row.missing] if row.missing else []
    reasons += [f"`{name}` failed." for name in failed]
    if state != "open" and not (passed or failed):
        reasons.append("No test that names the row passed.")
    if failed or not passed:
        state = "open"
    if state != "open":
        absent = row.ranks - set().union(*(test.ranks for test in passed.values()))
        if absent:
            reasons.append(f"Not run on {ranges(absent)} ranks.")
        if row.case and row.case not in passed:
            reasons.append(f"The acceptance case itself, `{row.case}`, was not run.")
        if reasons:
            state = "weaker"
    return Judged(row, tests, state, reasons)


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as text, three and more consecutive ones as a range: 1-4, 7, 8."""
    runs: list[list[int]] = []
    for n in sorted(numbers):
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def document(judged: Mapping[str, Sequence[Judged]]) -> str:
    """Return the whole page as Markdown."""
    parts = [INTRODUCTION, summary(judged)]
    for study, rows in judged.items():
        parts += [f"## {study}", STUDIES[study], overview(rows), *_missing(rows), *_tests(rows)]
    parts += ["## On GPUs", CARDS, f"<!-- begin card -->\n\n{cards.coverage(cards.read())}\n\n<!-- end card -->"]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def summary(judged: Mapping[str, Sequence[Judged]]) -> str:
    """Return the table of counts per study."""
    lines = [["study", "rows", *HEADINGS.values()]]
    for study, rows in judged.items():
        lines.append([study, len(rows), *([r.state for r in rows].count(state) for state in STATES)])
    lines.append(["**all**", *(sum(line[i] for line in lines[1:]) for i in range(1, len(STATES) + 2))])
    return _table(lines, ":---", *["---:"] * (len(STATES) + 1))


def overview(rows: Sequence[Judged]) -> str:
    """Return the table of a study's rows."""
    devices = any(_device(r) for r in rows)
    lines = [["id", "row", "acceptance test", "state", "tests", "ranks", *(["device"] if devices else [])]]
    for r in rows:
        count = f"{len(r.passed)}" if len(r.passed) == len(r.tests) else f"{len(r.passed)} of {len(r.tests)}"
        lines.append(
            [
                r.row.id,
                r.row.title,
                r.row.acceptance,
                HEADINGS[r.state],
                count if r.tests else "-",
                ranges(r.ranks) or "-",
                *([_device(r)] if devices else []),
            ]
        )
    return _table(lines, *[":---"] * len(lines[0]))


def _device(r: Judged) -> str:
    if not r.row.device or r.state == "open":
        return ""
    return "GPU" if any(test.card for test in r.passed) else "imitated device"


def _table(lines: Sequence[Sequence], *alignment: str) -> str:
    escaped = [[str(cell).replace("|", r"\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in (escaped[0], alignment, *escaped[1:]))


def _missing(rows: Sequence[Judged]) -> list[str]:
    """Return the reasons why rows do not hold: a list for each state, rows with the same reasons together."""
    parts = []
    for state, heading in {"weaker": "Missing parts of weaker rows", "open": "Reasons for open rows"}.items():
        ids: dict[str, list[str]] = defaultdict(list)
        for r in rows:
            if r.state == state:
                ids[" ".join(r.reasons)].append(r.row.id)
        lines = [f"- **{', '.join(some)}**: {why}" for why, some in ids.items()]
        parts += [f"### {heading}", "\n".join(lines)] if lines else []
    return parts


def _tests(rows: Sequence[Judged]) -> list[str]:
    """Return the tests that name each row, in a folded section."""
    lines = []
    for r in rows:
        lines += [f"- **{r.row.id}**"] if r.tests else []
        for name, test in sorted(r.tests.items()):
            facts = [] if test.state == "passed" else [test.state]
            if test.ranks:
                facts.append(f"{ranges(test.ranks)} {'rank' if test.ranks == {1} else 'ranks'}")
            lines.append(f"  - `{name}`" + (f": {', '.join(facts)}" if facts else ""))
    return ["<details><summary>Tests that name these rows</summary>", "\n".join(lines), "</details>"] if lines else []


def main(argv: list[str] | None = None) -> int:
    """Write the page; return 1 if tests name rows that no checklist has, and 2 if a report does not exist."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reports", type=Path, nargs="+", metavar="REPORT", help="JUnit XML report of a pytest run")
    parser.add_argument("-o", "--output", type=Path, default=FOLDER / "coverage.md")
    arguments = parser.parse_args(argv)
    for report in arguments.reports:
        if not report.is_file():
            print(f"coverage: {report} does not exist; run pytest with --junitxml={report}", file=sys.stderr)
            return 2
    rows, found = read(), outcomes(arguments.reports)
    unknown = sorted(found.keys() - {row.id for some in rows.values() for row in some})
    for name in unknown:
        print(f"coverage: no checklist has {name}, which {', '.join(sorted(found[name]))} names", file=sys.stderr)
    if unknown:
        return 1
    judged = {study: [judge(row, found.get(row.id, {})) for row in some] for study, some in rows.items()}
    arguments.output.write_text(document(judged))
    return 0


if __name__ == "__main__":
    sys.exit(main())
