#!/usr/bin/env python3
"""Prepare a release: the changelog, the version everywhere, a commit, and a tag with the release notes.

usage: .venv/bin/python scripts/release.py X.Y.Z

The entries under "Unreleased" in CHANGELOG.md move to the heading of the version, which gets today's date; they join
entries that are already there, if that version has no tag. The number is set in CMakeLists.txt, both pyproject.toml and
the recipe in packaging/spack. The tag vX.Y.Z has the notes as its message, which build/release-notes.md holds too. The
script pushes nothing. It refuses a tree with changes, a version that has a tag, and one below the present version.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
RECIPE = "packaging/spack/spack_repo/haloscope/packages/haloscope/package.py"
# The lines that hold the version, as patterns around it.
PLACES = {
    "CMakeLists.txt": [r"(project\(haloscope VERSION )[\d.]+"],
    "pyproject.toml": [r'(^version = ")[\d.]+'],
    "studies/pyproject.toml": [r'(^version = ")[\d.]+', r'("haloscope==)[\d.]+'],
    RECIPE: [r'(    version\(")[\d.]+(?=", tag)', r'(tag="v)[\d.]+'],
}


def git(*words: str) -> str:
    """Return the output of a git command in the checkout."""
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def numbers(version: str) -> list[int]:
    """Return the numbers of a version."""
    return [int(word) for word in version.split(".")]


def entries_of(section: str) -> dict[str, str]:
    """Return the entries of a section of the changelog by kind of change, and the text before them as ""."""
    first, *parts = re.split(r"^### (\w+)\n", section, flags=re.MULTILINE)
    kinds = dict(zip(parts[::2], parts[1::2], strict=True))
    return {kind: text.strip() for kind, text in ({"": first} | kinds).items()}


def release_changelog(text: str, version: str, date: str) -> tuple[str, str]:
    """Return the changelog after a release, and the notes of the release. Raises UsageError without an entry."""
    head, *sections = re.split(r"^## \[([^\]]+)\].*\n", text, flags=re.MULTILINE)
    found = dict(zip(sections[::2], sections[1::2], strict=True))
    new, old = entries_of(found.pop("Unreleased")), entries_of(found.pop(version, ""))
    if not any(new.values()) and not any(old.values()):
        raise click.UsageError("CHANGELOG.md has no entry for a release; write what has changed")
    kinds = [kind for kind in {**new, **old} if kind]
    joined = {kind: "\n".join(filter(None, (new.get(kind), old.get(kind)))) for kind in ("", *kinds)}
    notes = "\n\n".join([*filter(None, [joined.pop("")]), *(f"### {kind}\n{text}" for kind, text in joined.items())])
    dates = dict(re.findall(r"^## \[([^\]]+)\](.*)$", text, flags=re.MULTILINE))
    rest = "".join(f"## [{number}]{dates[number]}\n{section}" for number, section in found.items())
    return f"{head}## [Unreleased]\n\n## [{version}] - {date}\n\n{notes}\n\n{rest}".rstrip() + "\n", notes


def set_version(version: str) -> None:
    """Set the version in all files that hold it. Raises ValueError where one does not hold it once."""
    for name, patterns in PLACES.items():
        text = (ROOT / name).read_text()
        for pattern in patterns:
            text, count = re.subn(pattern, rf"\g<1>{version}", text, flags=re.MULTILINE)
            if count != 1:
                raise ValueError(f"{name} has {count} lines like {pattern}; it should have one")
        (ROOT / name).write_text(text)


def refuse_unfit(version: str) -> None:
    """Raise UsageError for a version that cannot be released now."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise click.UsageError(f"'{version}' is not a version; write three numbers, such as 0.2.0")
    present = re.search(r"project\(haloscope VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    if numbers(version) < numbers(present):
        raise click.UsageError(f"{version} is below the present version {present}; give {present} or a later one")
    if git("tag", "--list", f"v{version}"):
        raise click.UsageError(f"v{version} has been released; give a later version")
    if git("status", "--porcelain"):
        raise click.UsageError("the tree has changes; commit or stash them first")


@click.command()
@click.argument("version")
def main(version: str) -> None:
    """Prepare the release of VERSION, three numbers such as 0.2.0: commit and tag it; push nothing."""
    refuse_unfit(version)
    changelog = ROOT / "CHANGELOG.md"
    text, notes = release_changelog(
        changelog.read_text(), version, datetime.datetime.now(datetime.UTC).date().isoformat()
    )
    changelog.write_text(text)
    set_version(version)
    place = ROOT / "build" / "release-notes.md"
    place.parent.mkdir(exist_ok=True)
    place.write_text(f"# Haloscope {version}\n\n{notes}\n")
    git("commit", "-qam", f"Release {version}")
    git("tag", "-a", f"v{version}", "-F", str(place), "--cleanup=whitespace")
    print(
        f"v{version} is tagged; its notes are in {place.relative_to(ROOT)}; to publish: git push origin HEAD v{version}"
    )


if __name__ == "__main__":
    sys.exit(main())
