#!/usr/bin/env python3
"""Write docs/coverage.md: which tests show which row of the studies' checklists to hold, from a JUnit report.

    python -m pytest --junitxml=build/tests.xml tests && scripts/coverage.py build/tests.xml

Tests name their rows by a pytest marker (`@pytest.mark.ids("W8")`) or at the start of a GoogleTest name (`W8_...`).
Runs nothing itself. A row is `passed` when at least one test names it and all that do passed; `failed` when one of
them did not; else `open`.
"""

from __future__ import annotations

import argparse
import csv
import sys
import xml.etree.ElementTree as xml
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKLISTS = ROOT / "python" / "haloscope" / "data" / "checklists.csv"
SCOPES = {"now": "", "gpu": "needs a GPU back end", "later": "needs the model"}


def outcomes(reports: list[Path]) -> dict[str, dict[str, str]]:
    """Return id -> test -> passed, failed or skipped."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for case in (case for report in reports for case in xml.parse(report).iter("testcase")):
        own = f"{case.get('classname', '').split('.')[-1]}::{case.get('name', '').split('[')[0]}"
        for item in case.iter("property"):
            if item.get("name") == "ids":
                for row in item.get("value", "").split():
                    _add(found[row], own, _state(case))
            elif item.get("name") == "covers":
                rows, test, state = item.get("value", "").split("|")
                for row in rows.split():
                    _add(found[row], test.split(" (")[0], state)
    return found


def _state(case: xml.Element) -> str:
    children = {child.tag for child in case}
    return "failed" if children & {"failure", "error"} else "skipped" if "skipped" in children else "passed"


def _add(tests: dict[str, str], test: str, state: str) -> None:
    """A test with several cases (parameters, rank counts) counts as one: it passed if one did and none failed."""
    order = ("skipped", "passed", "failed")
    tests[test] = max(tests.get(test, "skipped"), state, key=order.index)


def row_state(tests: dict[str, str]) -> str:
    """Return passed, failed or open."""
    if "failed" in tests.values():
        return "failed"
    return "passed" if "passed" in tests.values() else "open"


def document(rows: list[dict[str, str]], found: dict[str, dict[str, str]]) -> str:
    """Return the whole page as Markdown."""
    lines = ["# What the studies' checklists ask for, and which tests show it", ""]
    lines += ["Made by `scripts/coverage.py` from a test report; not to be edited.", ""]
    for study in dict.fromkeys(row["study"] for row in rows):
        mine = [row for row in rows if row["study"] == study]
        states = [row_state(found.get(row["id"], {})) for row in mine]
        lines += [f"## {study}: {states.count('passed')} of {len(mine)} rows passed", ""]
        lines += ["| id | capability | state | tests |", "|:---|:---|:---|:---|"]
        for row, state in zip(mine, states, strict=True):
            tests = found.get(row["id"], {})
            names = "<br>".join(f"`{name}`" + (f" ({s})" if s != "passed" else "") for name, s in sorted(tests.items()))
            why = f" ({SCOPES[row['scope']]})" if state == "open" and SCOPES[row["scope"]] else ""
            lines.append(f"| {row['id']} | {row['capability']} | {state}{why} | {names} |")
        lines.append("")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Write the page; return 1 when a test names a W, V, S or D row that the checklists do not have."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reports", type=Path, nargs="+", metavar="REPORT", help="JUnit XML report of a pytest run")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "coverage.md")
    arguments = parser.parse_args(argv)
    for report in arguments.reports:
        if not report.is_file():
            print(f"coverage: {report} is not there; run pytest with --junitxml={report}", file=sys.stderr)
            return 2
    with CHECKLISTS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = outcomes(arguments.reports)
    unknown = sorted(i for i in found if i[0] in "WVSD" and i not in {row["id"] for row in rows})
    arguments.output.write_text(document(rows, found))
    if unknown:
        print(f"coverage: tests name rows that the checklists do not have: {', '.join(unknown)}", file=sys.stderr)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
