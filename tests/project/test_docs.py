"""The commands in docs/ work and show the output that the text describes."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
from pathlib import Path

import pytest

from haloscope import bridge
from paths import ROOT, TESTS

DOCS = ROOT / "docs"
CMAKE = (TESTS / "CMakeLists.txt").read_text()


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


@pytest.mark.parametrize("command", commands("understand/why-slow.md"))
def test_commands_of_why_slow_run(haloscope, tmp_path, command):
    words = shlex.split(command)
    result = ended_well(haloscope, words, tmp_path, "--seconds", "0.005", "--repetitions", "2")
    if "--statistic" in words:
        assert "wait (us)" in result.out and ("desync (us)" in result.out) == ("--barrier" in words)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=[pytest.mark.long] * command.startswith(("tune", "run hydro3d")))
        for command in commands("machine/devices.md")
    ],
)
def test_commands_of_devices_run(haloscope, calibrated_device, tmp_path, command):
    words = shlex.split(command)
    if words[0] == "calibrate":
        return  # `calibrated_device` is what it made
    if words[0] == "run" and words[1] not in bridge.app_names():
        pytest.skip(f"app '{words[1]}' is not in this build")
    if words[0] == "tune":
        words += ["--confirm", "1"]
    if "--profile" in words:
        shutil.copy(calibrated_device, "gpu.json")
    result = ended_well(haloscope, words, tmp_path, "--steps", "2", "--repetitions", "1")
    if words[0] == "run":
        assert "passed" in result.out and "failed" not in result.out


# ---- code ------------------------------------------------------------------------------------------------------------


QUOTED = {  # pages whose code is a part of a source, and the number of such parts
    "extend/app.md": 8,
    "extend/backend.md": 1,
    "extend/language.md": 3,
    "extend/pattern.md": 1,
    "extend/reducer.md": 1,
    "extend/request-kind.md": 2,
    "extend/schedule.md": 1,
    "extend/transport.md": 5,
    "use/library.md": 2,
    "use/porting.md": 1,
}


@pytest.mark.parametrize(("page", "least"), QUOTED.items())
def test_code_on_a_page_is_the_code_of_the_repository(page, least):
    sources = [
        f.read_text()
        for top in ("include", "src", "examples", "tests", "python", "bench", "studies")
        for f in (DOCS.parent / top).rglob("*")
        if f.suffix in (".hpp", ".cpp", ".h", ".py", ".def", ".txt")
    ]
    text = re.sub(
        r"^`[^`\n]+`:\n\n```.*?```", "", (DOCS / page).read_text(), flags=re.DOTALL | re.MULTILINE
    )  # new files
    blocks = re.findall(r"```(?:cpp|cmake|python)\n(.*?)```", text, re.DOTALL)
    several = [block for block in blocks if block.count("\n") > 1]
    assert len(several) >= least
    for block in several:
        assert any(block.strip() in source for source in sources), f"not in any file:\n{block}"


@pytest.mark.long
def test_the_tutorial_can_be_followed_from_its_first_command_to_its_last(haloscope):
    """In one folder: later commands read what earlier ones have written."""
    for command in commands("use/tutorial.md"):
        result = haloscope(*shlex.split(command))
        assert result.code == 0, f"{command}\n{result.err}"


# ---- the promises of reliability.md ----------------------------------------------------------------------------------


def promises() -> list[list[str]]:
    """Return the cells of each row of the table of promises: fault, promise, tests."""
    (table,) = re.findall(
        r"^\| fault \|.*\n\|[-|]*\n((?:\|.*\n)+)", (DOCS / "use/reliability.md").read_text(), re.MULTILINE
    )
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    assert len(rows) > 30 and {len(row) for row in rows} == {3}
    return rows


def marks_of_file(body: list[ast.stmt]) -> list[str]:
    """Return the marks that all tests of a file have."""
    values = [node.value for node in body if isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node.targets)]
    return [ast.unparse(mark) for value in values for mark in getattr(value, "elts", [value])]


def file_of(name: str) -> Path:
    """Return the file of a test, of the project or of a study."""
    [found] = [file for folder in (TESTS, DOCS.parent / "studies") for file in folder.rglob(name)]
    return found


def quick_python_tests(name: str, program: str) -> list[str]:
    """Return the tests of a file that start a program, if one is given, and that every run has."""
    body = ast.parse(file_of(name).read_text()).body
    functions = [node for node in body if isinstance(node, ast.FunctionDef) and Path(program).stem in ast.unparse(node)]
    marks = {node.name: [*marks_of_file(body), *map(ast.unparse, node.decorator_list)] for node in functions}
    return [test for test in marks if test.startswith("test_") and "pytest.mark.long" not in marks[test]]


def sources_of(program: str) -> list[Path]:
    """Return the sources of a test program, by the folders that the build lists for it."""
    listed = re.search(rf"^set\({program[len('test_') :]}_tests ([^)]+)\)", CMAKE, re.MULTILINE)
    return [file for folder in listed[1].split() for file in (TESTS / folder).rglob("*_test.cpp")]


def cpp_tests(name: str, suite: str) -> list[str]:
    """Return the tests of a file, or of one of the programs, that are in a suite, if one is given."""
    files = TESTS.rglob(name) if name.endswith(".cpp") else sources_of(name)
    return [
        test for file in files for test in re.findall(rf"^TEST(?:_F|_P)?\({suite}.*", file.read_text(), re.MULTILINE)
    ]


def test_every_promise_names_tests_that_exist_and_that_every_run_has():
    for fault, _, cell in promises():
        named = re.findall(r"`(\w+\.py|\w+\.cpp|test_[a-z]+)`(?: \(`([^`]+)`\))?", cell)
        assert named, fault
        for name, within in named:
            tests = quick_python_tests if name.endswith(".py") else cpp_tests
            assert tests(name, within), f"{fault}: {name} {within}"
