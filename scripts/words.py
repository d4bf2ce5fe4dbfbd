#!/usr/bin/env python3
"""Refuse phrases in changed lines that a native engineer would not write: `make lint` calls it.

usage: .venv/bin/python scripts/words.py [REVISION]

Looks at lines of sources and pages that were added since REVISION (default: the commit before the last one). Prints
file, line, phrase and what to write in its place; returns 1 where there are any.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENDINGS = {".cpp", ".hpp", ".h", ".cu", ".hip", ".def", ".f90", ".py", ".md", ".sh", ".cmake", ".txt"}
SKIPPED = {"scripts/words.py", "studies/coverage.md"}  # the list of phrases; a page that is made of checked ones
# A phrase, and what to write.
PHRASES = {
    r"^\s*(?:///?|#|\"\"\"|\*)\s*(?:What|Who|Whether|How)\s": "a subject and a verb, or a noun",
    r"\b(?:knows|tells|asks)\b": "supports, records; reports; requests",
    r"\b(?:says|said)\b": "prints, specifies",
    r"\btold (?:from|apart)\b": "distinguished",
    r"\bthose of\b": "the noun again",
    r"\bwhoever\b": "any rank that",
    r"\b(?:so|that) many\b": "a number, equally many",
    r"\bhow (?:often|far|many)\b": "a count, the progress",
    r"\b(?:is|are) no [a-z]": "is not a",
    r"\bbeside\b": "besides, next to, during",
    r"\bat once\b": "concurrently; immediately",
    r"\bone after another\b": "sequentially",
    r"\bcarr(?:y|ies|ied) out\b": "run, execute",
    r"\bstands? for\b": "represents",
    r"\bset aside\b": "skipped",
    r"\bunder way\b": "in flight",
    r"\bfor ever\b": "indefinitely",
    r"\bin vain\b": "without effect",
    r"\bnothing (?:of|but)\b": "none of; only",
    r"\bhand(?:s|ed)? out\b": "return, enqueue",
    r"\bhatch\b": "staging buffers",
}


def git(*words: str) -> str:
    """Return the output of a git command."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def added_lines(revision: str) -> list[tuple[str, int, str]]:
    """Return file, number and text of each line that was added since a revision."""
    found, name, number = [], "", 0
    for line in git("diff", "--unified=0", "--no-color", "--diff-filter=AM", revision).splitlines():
        if line.startswith("+++ "):
            name = line[6:]
        elif line.startswith("@@"):
            number = int(line.split("+")[1].split(",")[0].split(" ")[0])
        elif line.startswith("+"):
            found.append((name, number, line[1:]))
            number += 1
    return [one for one in found if Path(one[0]).suffix in ENDINGS and one[0] not in SKIPPED]


def main() -> int:
    """Print the phrases of added lines. Returns 1 where there are any."""
    if len(sys.argv) < 2 and git("rev-list", "--count", "--max-count=2", "HEAD").strip() != "2":
        return 0
    found = [
        f"{name}:{number}: '{match[0].strip()}'; write: {better}"
        for name, number, text in added_lines(sys.argv[1] if len(sys.argv) > 1 else "HEAD~1")
        for phrase, better in PHRASES.items()
        if (match := re.search(phrase, text))
    ]
    print("\n".join(found))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
