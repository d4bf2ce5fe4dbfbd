"""Links of the pages lead somewhere: to a file of the project, and to a heading where they name one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paths import ROOT

FIRST = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md")
PAGES = [
    *(ROOT / name for name in FIRST),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "studies").rglob("*.md")),
]


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    lines = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL).splitlines()
    titles = [line.lstrip("#").strip() for line in lines if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links(page: Path) -> list[str]:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page):
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in headings(target), f"{page.name}: {link} names no heading"


def targets(page: Path) -> set[Path]:
    return {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}


def test_the_first_page_fits_a_screen_or_two_and_the_indexes_name_every_page():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100
    docs = ROOT / "docs"
    indexes = set(docs.rglob("README.md"))
    assert indexes - {docs / "README.md"} <= targets(docs / "README.md")
    pages = {page for page in docs.rglob("*.md") if page.parent.name != "design"}
    assert pages - indexes <= set().union(*map(targets, indexes))
