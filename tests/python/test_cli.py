"""The command line: help, unknown words, exit codes, start-up, the studies' own flags."""

from __future__ import annotations

import subprocess
import sys

import pytest

from haloscope import cli
from haloscope.commands import run as run_command
from haloscope.errors import UsageProblem

COMMANDS = cli.cli.list_commands(None)


def options(*words) -> tuple[str, dict]:
    """What click makes of `haloscope run WORDS...`."""
    parameters = run_command.command.make_context("run", list(words)).params
    return parameters.pop("app"), parameters


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_that_starts_with_its_usage(haloscope, command):
    result = haloscope(command, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: haloscope {command}")


def test_all_commands_are_listed_in_the_help(haloscope):
    result = haloscope("--help")
    assert result.code == 0
    assert {"demo", "info", "run", "compare", "study"} <= set(COMMANDS)
    assert all(f"  {command} " in result.out for command in COMMANDS)


def test_without_words_the_help_is_shown(haloscope):
    result = haloscope()
    assert result.code == 2
    assert result.out.startswith("Usage: haloscope")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rnu"], "unknown command 'rnu'; did you mean run"),
        (["run", "laplace2d", "--dept", "3"], "unknown option '--dept'; did you mean --depth"),
        (["run"], "Missing argument 'APP'"),
        (["run", "laplac2d", "--cells", "8"], "did you mean laplace2d"),
        (["run", "laplace2d"], "for example --cells 128x128"),
        (["run", "laplace2d", "--cells", "8", "--schedule", "blk"], "unknown schedule 'blk'; did you mean bulk"),
        (["run", "laplace2d", "--cells", "8", "--real", "f16"], "unknown scalar type of laplace2d 'f16'"),
        (["run", "laplace2d", "--cells", "8", "--steps", "0"], "--steps"),
        (["run", "laplace2d", "--cells", "8", "--steps", "2", "--seconds", "1"], "--steps and --seconds"),
        (["run", "laplace2d", "--cells", "8", "--seconds", "-1"], "--seconds -1 is not possible"),
        (["run", "laplace2d", "--cells", "8", "--ranks", "0"], "--ranks 0 is not possible"),
        (["run", "laplace2d", "--cells", "8", "--periodic", "q"], "--periodic 'q'"),
        (["study", "wite2011"], "did you mean white2011"),
        (["compare", "one.jsonl"], "Missing argument 'B'"),
    ],
)
def test_bad_words_give_one_line_with_what_is_wrong_and_code_2(haloscope, words, said):
    result = haloscope(*words)
    assert result.code == 2
    assert said in result.err
    assert result.err.count("\n") == 1 and result.err.startswith("haloscope: ")


def test_the_studies_are_listed_when_none_is_named(haloscope):
    result = haloscope("study")
    assert result.code == 0
    assert "white2011" in result.out and "valen2023" in result.out


def test_the_help_of_all_commands_imports_nothing_heavy():
    """What start-up takes is in figure `plan`."""
    code = (
        "import sys; from haloscope import cli; cli.main(['--help']);"
        "print([m for m in ('numpy', 'scipy', 'matplotlib', 'jsonschema', 'rich', 'tabulate') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[0].startswith("Usage: haloscope")
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.ids("V13")
def test_the_thesis_example_means_what_it_says():
    app, parsed = options("laplace2d", "-h", "20000", "-l", "10000", "-d", "8", "-i", "100", "-s", "1", "-n", "4")
    run_command._study_flags(app, parsed)
    [c] = run_command.plan_sweep(app, parsed).configurations
    assert (c.cells, c.depth, c.ranks, c.real) == ((10000, 20000), 8, 4, "f32")  # x is the length, y the height
    assert dict(c.settings)["steps"] == "100"
    assert parsed["sparse"] == 1


@pytest.mark.ids("V13")
@pytest.mark.parametrize(
    ("words", "schedule", "strategy"),
    [
        (["--schedule", "phased", "--exchange", "sync"], "bulk", "ordered/p2p"),
        (["--schedule", "overlapped", "--exchange", "direct"], "split", "direct/p2p"),
        (["--schedule", "split", "--exchange", "async"], "split", "direct/p2p"),
    ],
)
def test_schedule_and_exchange_may_be_called_what_the_thesis_calls_them(words, schedule, strategy):
    app, parsed = options("laplace2d", "-h", "64", "-l", "64", *words)
    run_command._study_flags(app, parsed)
    [c] = run_command.plan_sweep(app, parsed).configurations
    assert (c.schedule, c.strategy) == (schedule, strategy)


@pytest.mark.ids("V13")
@pytest.mark.parametrize(
    "words",
    [
        ["-h", "0", "-l", "8"], ["-h", "8"], ["-h", "8", "-l", "8", "-d", "0"], ["-h", "8", "-l", "8", "-i", "0"],
        ["-h", "x", "-l", "8"], ["-h", "8", "-l", "8", "-s", "2"], ["-h", "8", "-l", "8", "--exchange", "none"],
        ["-h", "8", "-l", "8", "-d", "5"], ["-h", "8", "-l", "8", "--cells", "8"],
    ],
)  # fmt: skip
def test_bad_values_of_the_thesis_flags_are_refused(haloscope, words):
    result = haloscope("run", "laplace2d", *words)
    assert result.code == 2
    assert result.err.startswith("haloscope: ")


@pytest.mark.ids("V13")
def test_terse_output_is_a_line_of_names_and_a_line_of_numbers(haloscope):
    result = haloscope("run", "laplace2d", "-h", "40", "-l", "24", "-d", "2", "-i", "10", "-s", "1", "--launches", 1)
    assert result.code == 0
    names, values = (line.split(",") for line in result.out.strip().splitlines())
    found = dict(zip(names, values, strict=True))
    assert (found["height"], found["length"], found["depth"], found["iterations"]) == ("40", "24", "2", "10")
    assert float(found["execution"]) > 0 and float(found["inner"]) == 0 and float(found["primary"]) > 0
    assert "records:" in result.err


def test_an_error_that_a_command_raises_decides_the_exit_code(capsys, monkeypatch):
    def fail(*_):
        raise UsageProblem("asked for nonsense; ask for something else")

    monkeypatch.setattr(cli.cli, "get_command", fail)
    assert cli.main(["run"]) == 2
    assert capsys.readouterr().err == "haloscope: asked for nonsense; ask for something else\n"
