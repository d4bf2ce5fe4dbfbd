"""Helpers of tests of several studies: a short run, and the cells of a report's tables."""

from __future__ import annotations

SHORT = ("--quick", "--steps", "4", "--repetitions", "2", "--launches", "2", "--output", "r.jsonl")


def section(text: str, title: str) -> list[list[str]]:
    """The cells of the table under a heading."""
    body = text.split(f"### {title}", 1)[1].split("\n###", 1)[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in body.splitlines() if line.startswith("|")][2:]
