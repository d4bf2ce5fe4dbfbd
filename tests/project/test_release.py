"""A release is prepared by one command: changelog, versions, commit, and a tag with its notes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from paths import ROOT

SCRIPT = Path("scripts") / "release.py"


@pytest.fixture
def clone(tmp_path) -> Path:
    """A copy of the checkout's files, in a repository of its own."""
    place = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--no-tags", ROOT, place], check=True)
    (place / SCRIPT).write_bytes((ROOT / SCRIPT).read_bytes())
    for words in (["config", "user.name", "a"], ["config", "user.email", "a@example.org"], ["add", "-A"]):
        git(place, *words)
    git(place, "commit", "-qm", "Begin", "--allow-empty")
    return place


def git(place: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=place, check=True, capture_output=True, text=True).stdout


def release(place: Path, version: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, version], cwd=place, capture_output=True, text=True, check=False)


def add_entry(place: Path, kind: str, entry: str) -> None:
    """Replace the entries that are not released."""
    changelog = place / "CHANGELOG.md"
    parts = re.split(r"^(?=## \[)", changelog.read_text(), flags=re.MULTILINE)
    changelog.write_text(f"{parts[0]}## [Unreleased]\n\n### {kind}\n- {entry}\n\n{''.join(parts[2:])}")
    git(place, "commit", "-qam", "Change something")


def test_a_release_has_its_entries_its_number_and_a_tag_with_its_notes(clone):
    add_entry(clone, "Fixed", "A fault is gone.")
    done = release(clone, "7.1.0")
    assert done.returncode == 0 and "git push origin HEAD v7.1.0" in done.stdout, done.stderr
    changelog = (clone / "CHANGELOG.md").read_text()
    assert re.search(
        r"## \[Unreleased\]\n\n## \[7\.1\.0\] - \d{4}-\d\d-\d\d\n\n### Fixed\n- A fault is gone\.\n\n## ", changelog
    )
    assert 'version = "7.1.0"' in (clone / "pyproject.toml").read_text()
    assert '"haloscope==7.1.0"' in (clone / "studies" / "pyproject.toml").read_text()
    assert git(clone, "status", "--porcelain") == ""
    assert "### Fixed\n- A fault is gone." in git(clone, "tag", "-l", "v7.1.0", "--format=%(contents)")
    # The recipe and the build have the same version.
    recipe = next((clone / "packaging" / "spack").rglob("package.py")).read_text()
    assert 'version("7.1.0", tag="v7.1.0")' in recipe and "VERSION 7.1.0 " in (clone / "CMakeLists.txt").read_text()


def test_entries_join_those_of_a_version_that_has_no_tag(clone):
    version = re.search(r"haloscope VERSION ([\d.]+)", (clone / "CMakeLists.txt").read_text())[1]
    before = (clone / "CHANGELOG.md").read_text().split(f"## [{version}]")[1]
    add_entry(clone, "Added", "A last thing.")
    assert release(clone, version).returncode == 0
    after = (clone / "CHANGELOG.md").read_text().split(f"## [{version}]")[1]
    assert after.count("\n- ") == before.count("\n- ") + 1
    assert "### Added\n- A last thing.\n- " in after


@pytest.mark.parametrize(
    ("version", "why"), [("0.0.1", "below the present version"), ("1.2", "three numbers"), ("v9.0.0", "three numbers")]
)
def test_an_unfit_version_is_refused_and_nothing_changes(clone, version, why):
    done = release(clone, version)
    assert done.returncode == 2 and why in done.stderr
    assert git(clone, "status", "--porcelain") == "" and git(clone, "tag") == ""


def test_a_second_release_a_changed_tree_and_no_entry_are_refused(clone):
    add_entry(clone, "Fixed", "A fault is gone.")
    assert release(clone, "7.1.0").returncode == 0
    assert "has been released" in release(clone, "7.1.0").stderr
    assert "no entry for a release" in release(clone, "7.2.0").stderr
    (clone / "README.md").write_text("changed")
    assert "the tree has changes" in release(clone, "7.2.0").stderr
