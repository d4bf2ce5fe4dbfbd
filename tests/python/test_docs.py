"""The commands that docs/ tells the reader to type work and show what the text says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def commands(page: str) -> list[str]:
    found = re.findall(r"^\$ haloscope (.*)$", (DOCS / page).read_text(), re.MULTILINE)
    assert found
    return found


@pytest.mark.parametrize("command", commands("why-slow.md"))
def test_commands_of_why_slow_run(haloscope, tmp_path, command):
    words = shlex.split(command)
    if words[0] == "run":
        words += ["--launches", "1", "--seconds", "0.005", "--repetitions", "2", "--output", str(tmp_path / "r.jsonl")]
    result = haloscope(*words)
    assert result.code == 0, result.err
    if "--statistic" in words:
        assert "wait (us)" in result.out and ("desync (us)" in result.out) == ("--barrier" in words)


@pytest.mark.parametrize("command", commands("devices.md"))
def test_commands_of_devices_run(haloscope, tmp_path, command):
    words = shlex.split(command)
    if words[0] == "run":
        words += ["--launches", "1", "--steps", "2", "--repetitions", "1", "--output", str(tmp_path / "r.jsonl")]
    result = haloscope(*words)
    assert result.code == 0, result.err
    if words[0] == "run":
        assert "passed" in result.out and "failed" not in result.out
