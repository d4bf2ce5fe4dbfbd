"""The generated pages of docs/ are current, and each figure has one."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from paths import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import pages

MEASURED = ROOT / pages.MEASURED
WRITTEN_BY_HAND = {"README.md", "demo.md", "gpu.md"}


def test_each_measured_figure_has_a_page_with_all_its_cases():
    written = pages.figure_pages()
    assert {path.name for path in MEASURED.glob("*.md")} - WRITTEN_BY_HAND == {Path(name).name for name in written}
    for name, text in written.items():
        assert (ROOT / name).read_text() == text, f"{name} is stale; run scripts/pages.py"
    cases = {(r["figure"], r["case"]) for r in pages.newest()}
    for figure, case in cases:
        assert f"| {case} " in written[f"{pages.MEASURED}/{figure}.md"]


def test_the_index_of_figures_leads_to_each_page():
    index = (MEASURED / "README.md").read_text()
    assert f"<!-- begin bench -->\n\n{pages.bench()}\n\n<!-- end bench -->" in index
    assert set(re.findall(r"\]\((\S+\.md)\)", index)) == {path.name for path in MEASURED.glob("*.md")} - {"README.md"}


def test_the_counts_of_mutants_are_those_of_the_records():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert f"<!-- begin mutants -->\n\n{pages.changed_lines()}\n\n<!-- end mutants -->" in page


@pytest.mark.long
def test_the_tables_of_the_demo_are_those_of_its_records(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "FIGURES", tmp_path)
    page = (MEASURED / "demo.md").read_text()
    assert f"<!-- begin demo -->\n\n{pages.demo()}\n\n<!-- end demo -->" in page
    assert {file.name for file in tmp_path.iterdir()} == {"demo.svg", "demo.png"}
