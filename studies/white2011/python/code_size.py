"""Lines of code of the schedules that run A to D, next to the paper's (figure 2)."""

from __future__ import annotations

import re
from pathlib import Path

from haloscope.report import tables
from haloscope.studies import published
from haloscope_studies.white2011.versions import IMPLEMENTATIONS

SCHEDULES = Path(__file__).resolve().parents[3] / "src" / "library" / "haloscope" / "schedule"  # in a checkout


def lines_of_code(text: str) -> int:
    """Count lines of C++ without blank lines and comments, as the paper does."""
    without = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    return sum(bool(line.strip()) for line in without.splitlines())


def stated_over_a() -> dict[str, str]:
    """Return the paper's lines over the lines of A, as text by version."""
    rows = published("white2011", "stated_results")
    over = {r["implementation"][0]: r["value"] for r in rows if r["quantity"] == "lines_of_code_over_A"}
    lines = {r["implementation"][0]: int(r["value"]) for r in rows if r["quantity"] == "lines_of_code"}
    stated = {letter: f"{count / lines['A']:.2f} ({count} lines)" for letter, count in lines.items()}
    return stated | {"B": f"{over['B']} or more", "C": over["C"], "D": f"{over['B']} or more", "E": over["E"]}


def table() -> str:
    """Return the lines of the schedules, over A, and the paper's."""
    if not SCHEDULES.exists():
        return "The sources are not installed; run this study in a checkout to count them."
    stated = stated_over_a()
    counts = {
        letter: lines_of_code((SCHEDULES / f"{v.schedule.replace('-', '_')}.cpp").read_text(encoding="utf-8"))
        for letter, v in IMPLEMENTATIONS.items()
    }
    lines = [
        [f"{letter} {IMPLEMENTATIONS[letter].name}", count, f"{count / counts['A']:.2f}", stated[letter]]
        for letter, count in counts.items()
    ]
    table = tables.markdown(lines, ["schedule", "lines", "over A", "published, over A"], right=("lines", "over A"))
    return table + "\n\nA and B are one schedule here: with one task all halos are the task's own."
