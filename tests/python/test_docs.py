"""The commands that docs/ tells the reader to type work and show what the text says."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def commands(page: str) -> list[str]:
    found = re.findall(r"^\$ haloscope (.*)$", (DOCS / page).read_text(), re.MULTILINE)
    assert found
    return found


def ended_well(haloscope, words: list[str], tmp_path, *shorter: str):
    """Run a command of a page, a measuring one shorter than it stands there; its result."""
    if words[0] == "run":
        words = [*words, "--launches", "1", *shorter, "--output", str(tmp_path / "r.jsonl")]
    result = haloscope(*words)
    assert result.code == 0, result.err
    return result


@pytest.mark.parametrize("command", commands("why-slow.md"))
def test_commands_of_why_slow_run(haloscope, tmp_path, command):
    words = shlex.split(command)
    result = ended_well(haloscope, words, tmp_path, "--seconds", "0.005", "--repetitions", "2")
    if "--statistic" in words:
        assert "wait (us)" in result.out and ("desync (us)" in result.out) == ("--barrier" in words)


@pytest.mark.parametrize("command", [pytest.param(command, marks=[pytest.mark.long] if command.startswith("tune") else [])
                                     for command in commands("devices.md")])  # fmt: skip
def test_commands_of_devices_run(haloscope, calibrated_device, tmp_path, command):
    words = shlex.split(command)
    if words[0] == "calibrate":
        return  # `calibrated_device` is what it made
    if words[0] == "tune":
        words += ["--confirm", "1"]
    if "--profile" in words:
        shutil.copy(calibrated_device, "card.json")
    result = ended_well(haloscope, words, tmp_path, "--steps", "2", "--repetitions", "1")
    if words[0] == "run":
        assert "passed" in result.out and "failed" not in result.out


@pytest.mark.parametrize("command", commands("blocks.md"))
def test_commands_of_blocks_run(haloscope, tmp_path, command):
    shorter = ("--launches", "1", "--repetitions", "1", "--iterations", "1", "--output", str(tmp_path / "r.jsonl"))
    result = ended_well(haloscope, [*shlex.split(command), *shorter], tmp_path)
    assert "### Workload S: 4 blocks" in result.out and "| passed " in result.out


# ---- code -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("page", "least"), [("extending.md", 11), ("library.md", 2)])
def test_code_on_a_page_is_the_code_of_the_repository(page, least):
    sources = [f.read_text() for top in ("include", "src", "examples", "tests", "python", "bench")
               for f in (DOCS.parent / top).rglob("*") if f.suffix in (".hpp", ".cpp", ".h", ".py", ".def", ".txt")]  # fmt: skip
    blocks = re.findall(r"```(?:cpp|cmake|python)\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    several = [block for block in blocks if block.count("\n") > 1]
    assert len(several) >= least
    for block in several:
        assert any(block.strip() in text for text in sources), f"not in any file:\n{block}"


@pytest.mark.long
def test_the_tutorial_can_be_followed_from_its_first_command_to_its_last(haloscope):
    """In one folder: later commands read what earlier ones have written."""
    for command in commands("tutorial.md"):
        result = haloscope(*shlex.split(command))
        assert result.code == 0, f"{command}\n{result.err}"
