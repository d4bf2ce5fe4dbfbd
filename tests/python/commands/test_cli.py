"""The command line: help, unknown words, exit codes, start-up."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from haloscope import bridge, cli
from haloscope.commands import run as run_command
from haloscope.errors import UsageError
from haloscope.measure.request import Request
from haloscope.options.command import Command
from haloscope.options.request import measured_space

COMMANDS = cli.cli.list_commands(None)
LINES, COLUMNS = 45, 100  # that the everyday help of a command fits into


def command_of(name: str):
    return cli.cli.get_command(None, name)


def has_choice(name: str) -> bool:
    """Whether a command has the options of a choice."""
    command = command_of(name)
    return isinstance(command, Command) and command.choice is not None


def request_of(*words) -> Request:
    """The requests of `haloscope run WORDS...`."""
    options = run_command.command.make_context("run", list(words)).params
    app = bridge.find_app(options.pop("app"))
    [request] = measured_space(app, options).requests
    return request


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_that_starts_with_its_usage_and_fits_a_screen(haloscope, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    result = haloscope(command, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: haloscope {command}")
    lines = result.out.splitlines()
    assert len(lines) <= LINES and max(map(len, lines)) <= COLUMNS
    assert ("--help-all" in result.out) == isinstance(command_of(command), Command)


@pytest.mark.parametrize("command", [name for name in COMMANDS if has_choice(name)])
def test_all_help_names_every_field_of_a_choice_and_every_parameter_of_every_app(haloscope, command):
    everyday, everything = (haloscope(command, word).out.split("Options:", 1)[1] for word in ("--help", "--help-all"))
    of_command = command_of(command).choice
    for field in bridge.fields():
        if field.name not in of_command.without:
            shown = re.compile(rf"^  (-\w, )?--{field.name.replace('_', '-')} ", re.MULTILINE)
            assert shown.search(everything)
            assert bool(shown.search(everyday)) == (field.group == "everyday")
    for app in map(bridge.find_app, bridge.app_names()):
        section = everything.split(f"Parameters of {app.name} ", 1)[1].split("\n\n", 1)[0]
        assert all(f"  {parameter.name} " in section for parameter in app.parameters)
        assert app.parameters and f"Parameters of {app.name}" not in everyday
    assert "--set NAME=VALUE" in everyday and "--program PATH" in everyday


def test_commands_that_take_a_choice_have_its_options():
    assert set(filter(has_choice, COMMANDS)) == {
        "run",
        "plan",
        "predict",
        "whatif",
        "map",
        "advise",
        "tune",
        "simulate",
    }


def test_all_commands_are_listed_in_the_help(haloscope):
    result = haloscope("--help")
    assert result.code == 0
    assert {"demo", "info", "run", "compare", "study"} <= set(COMMANDS)
    assert all(f"  {command} " in result.out for command in COMMANDS)
    titles = [line[:-1] for line in result.out.splitlines() if re.fullmatch(r"[A-Z][a-z ]+:", line)]
    assert titles == ["Options", *cli.GROUPS]


def test_without_words_the_help_is_shown(haloscope):
    result = haloscope()
    assert result.code == 2
    assert result.out.startswith("Usage: haloscope")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("rnu", "unknown command 'rnu'; did you mean run"),
        ("run laplace2d --dept 3", "unknown option '--dept'; did you mean --depth"),
        ("run", "Missing argument 'APP'"),
        ("run laplac2d --cells 8", "did you mean laplace2d"),
        ("run laplace2d", "for example --cells 128x128"),
        ("run laplace2d --cells 8 --schedule blk", "unknown schedule 'blk'; did you mean bulk"),
        ("run laplace2d --cells 8 --real f16", "unknown --real 'f16'"),
        ("run laplace2d --cells 8 --steps 0", "--steps"),
        ("run laplace2d --cells 8 --steps 2 --seconds 1", "--steps and --seconds"),
        ("run laplace2d --cells 8 --seconds -1", "--seconds': -1.0 is not in the range x>0"),
        ("run laplace2d --cells 8 --ranks 0", "0 ranks; use 1 to 10000000"),
        ("run laplace2d --cells 8 --periodic q", "--periodic 'q'"),
        ("run laplace2d --cells 8 --barrier maybe", "unknown --barrier 'maybe'; valid names are off, on"),
        ("run laplace2d --cells 8 --substeps shrnk", "unknown --substeps 'shrnk'; did you mean shrink"),
        ("run laplace2d --cells 8 --stage-strategies step", "STAGE=STRATEGY"),
        ("run advection3d --cells 8 --nu 0.5", "parameter of advection3d; write --set nu=VALUE"),
        ("run laplace2d --cells 8 --weights 1,1,1,1,1", "parameter of laplace2d, laplace3d; write --set weights=VALUE"),
        ("run advection3d --cells 8 --set nu=nan", "nu = 'nan' is not possible; give a finite number"),
        ("run advection3d --cells 8 --set nu=inf", "nu = 'inf' is not possible; give a finite number"),
        ("run advection3d --cells 8 --set nu=abc", "nu = 'abc' is not possible"),
        ("run advection3d --cells 8 --set nu=-1", "nu = '-1' is not possible"),
        ("run advection3d --cells 8 --set velocity=1,2", "velocity"),
        ("run advection3d --cells 8 --set initial=gausian", "did you mean gaussian"),
        ("run laplace2d --cells 8 --set seed=1.5", "give a whole number"),
        ("run advection3d --cells 8 --set nosuch=1", "unknown parameter of app 'advection3d' 'nosuch'"),
        ("run advection3d --cells 8 --set x", "--set 'x' is not NAME=VALUE; write for example"),
        ("run advection3d --cells 8 --set =1", "--set '=1' is not NAME=VALUE"),
        ("plan laplace2d --cells 8,16", "--cells names several; give one value"),
        ("plan laplace2d --cells 8 --schedule bulk,split", "--schedule or device names several"),
        ("compare one.jsonl", "Missing argument 'B'"),
        ("run laplace2d --cells", "Option '--cells' requires an argument (see 'haloscope run --help')"),
    ],
)
def test_bad_words_give_one_line_with_what_is_wrong_and_code_2(haloscope, line, complaint):
    result = haloscope(line)
    assert result.code == 2
    assert complaint in result.err
    assert result.err.count("\n") == 1 and result.err.startswith("haloscope: ")


def test_the_help_of_all_commands_imports_nothing_heavy():
    """What start-up takes is in figure `plan`."""
    code = (
        "import sys; from haloscope import cli; cli.main(['--help']);"
        "print([m for m in ('numpy', 'scipy', 'matplotlib', 'jsonschema', 'rich', 'tabulate') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[0].startswith("Usage: haloscope")
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--barrier"], {"barrier": True}),
        (["--barrier", "on", "--ftz", "off"], {"barrier": True, "ftz": False}),
        (["--periodic", "x"], {"periodic": (True, False)}),
        (["--periodic", "none"], {"periodic": (False, False)}),
        (["--periodic", "all"], {"periodic": (True, True)}),
        (["--set", "seed=2", "--set", "weights=1,1,-4,1,1"], {"set": (("seed", "2"), ("weights", "1,1,-4,1,1"))}),
        (["--stage-strategies", "step=direct/p2p"], {"stage_strategies": (("step", "direct/p2p"),)}),
        (["--process-grid", "slabs"], {"process_grid": "slabs"}),
        (["--substeps", "blocked", "-d", "4"], {"substeps": "blocked", "depth": 4}),
        (["-n", "3", "--threads", "2"], {"ranks": 3, "threads": 2}),
    ],
)
def test_options_of_a_choice_mean_its_fields(words, expected):
    choice = request_of("laplace2d", "--cells", "64", *words).choice
    assert {name: getattr(choice, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {"steps": 100, "seconds": 0.2, "verify": 3, "timers": True}),
        (
            ["--steps", "7", "--repetitions", "2", "--warmup", "0"],
            {"steps": 7, "seconds": 0, "repetitions": 2, "warmup": 0},
        ),
        (["--timers", "off", "--verify", "0"], {"timers": False, "verify": 0}),
        (["--trace", "t.json", "--timeline"], {"trace": "t.json", "timeline": True}),
    ],
)
def test_options_of_measuring_mean_the_fields_of_a_request(words, expected):
    request = request_of("laplace2d", "--cells", "64", *words)
    assert {name: getattr(request, name) for name in expected} == expected


def test_an_error_that_a_command_raises_decides_the_exit_code(capsys, monkeypatch):
    def fail(*_):
        raise UsageError("asked for nonsense; ask for something else")

    monkeypatch.setattr(cli.cli, "get_command", fail)
    assert cli.main(["run"]) == 2
    assert capsys.readouterr().err == "haloscope: asked for nonsense; ask for something else\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["haloscope", "pr"], ["predict"]),
        (["haloscope", "run", "laplace"], [name for name in bridge.app_names() if name.startswith("laplace")]),
        (["haloscope", "plan", "no such app"], []),
        (["haloscope", "run", "laplace2d", "--bar"], ["--barrier"]),
    ],
)
def test_a_shell_completes_commands_apps_and_options(words, expected):
    settings = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    command = [sys.executable, "-m", "haloscope.cli"]
    environment = os.environ | settings | {"_HALOSCOPE_COMPLETE": "bash_complete"}
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout
    assert [line.removeprefix("plain,") for line in output.split()] == expected
