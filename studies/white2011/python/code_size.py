"""Lines of code of the study's nine programs, next to the paper's (figure 2)."""

from __future__ import annotations

import re
from pathlib import Path

from haloscope.report import tables
from haloscope.studies import published
from haloscope_studies.white2011.versions import VERSIONS

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"  # in a checkout: they are not installed


def lines_of_code(text: str) -> int:
    """Count lines of C++ without blank lines and comments, as the paper does."""
    without = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    return sum(bool(line.strip()) for line in without.splitlines())


def counts() -> dict[str, int]:
    """Return the lines of each program by the letter of its version; {} outside a checkout."""
    files = sorted(path for path in PROGRAMS.glob("?.*") if path.suffix in (".cpp", ".cu"))
    return {path.stem.upper(): lines_of_code(path.read_text(encoding="utf-8")) for path in files}


def stated_over_a() -> dict[str, str]:
    """Return the paper's lines over the lines of A, as text by version."""
    rows = published("white2011", "stated_results")
    over = {r["implementation"][0]: r["value"] for r in rows if r["quantity"] == "lines_of_code_over_A"}
    lines = {r["implementation"][0]: int(r["value"]) for r in rows if r["quantity"] == "lines_of_code"}
    stated = {letter: f"{count / lines['A']:.2f} ({count} lines)" for letter, count in lines.items()}
    return stated | {"B": f"{over['B']} or more", "C": over["C"], "D": f"{over['B']} or more", "E": over["E"]}


def table() -> str:
    """Return the lines of the programs, over A, and the paper's."""
    found, stated = counts(), stated_over_a()
    if not found:
        return "The programs are not installed; run this study in a checkout to count them."
    lines = [
        [f"{letter} {VERSIONS[letter].name}", count, f"{count / found['A']:.2f}", stated.get(letter, "")]
        for letter, count in found.items()
    ]
    return tables.markdown(lines, ["program", "lines", "over A", "published, over A"], right=("lines", "over A"))
