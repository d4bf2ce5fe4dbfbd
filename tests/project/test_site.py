"""The site of the documentation: no page is missing, and the reference has every public call."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

from paths import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import make_site

PARTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "examples", "studies")  # with the pages of the site


def test_every_page_is_a_part_of_the_site():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    pages = {name for name in listed.splitlines() if name.startswith(PARTS) and name != "README.md"}
    assert pages <= {str(page.relative_to(ROOT)) for page in make_site.pages()}


def test_links_to_sources_and_the_readme_stay_within_the_site(tmp_path, monkeypatch):
    monkeypatch.setattr(make_site, "SOURCE", tmp_path)
    make_site.copy_pages()
    for page in tmp_path.rglob("*.md"):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text):
            target = (page.parent / link).resolve()
            made = target in (tmp_path / "index.md", *(tmp_path / "reference" / f"{n}.md" for n in ("c", "fortran")))
            made |= target.parent == tmp_path / "reference" and target.name.startswith("cpp-")
            assert "://" in link or made or target.exists(), f"{page.relative_to(tmp_path)}: {link}"


def test_the_reference_of_fortran_has_every_public_procedure_with_its_arguments_and_comment():
    page = make_site.fortran_page()
    text = make_site.FORTRAN.read_text()
    for kind, body in re.findall(r"^  type :: (halo_\w+)\n(.*?)^  end type", text, re.MULTILINE | re.DOTALL):
        for name in re.findall(r"^    (?:procedure|generic) :: (\w+)", body, re.MULTILINE):
            assert re.search(rf"^### {kind}%{name}\n\n```fortran\n{kind}%{name}\(.*\)\n```\n\n\w", page, re.MULTILINE)
    assert "`periodic`: dimensions that wrap around" in page


def test_the_reference_of_cpp_has_a_page_for_each_public_header():
    pages = make_site.cpp_pages()
    assert {f"cpp-{header.stem}" for header in make_site.HEADERS.rglob("*.hpp")} == set(pages) - {"cpp"}
    assert "| [haloscope/exchange.hpp](cpp-exchange.md) | " in pages["cpp"]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_site_is_built_without_a_warning():
    if not shutil.which("doxygen"):
        pytest.skip("needs doxygen")
    pytest.importorskip("breathe", reason="scripts/setup.sh site installs the generator")
    assert make_site.main() == 0
    index = (make_site.SITE / "searchindex.js").read_text()
    assert all(name in index for name in ("hs_exchange_rebind", "make_exchange", "halo_grid"))
