"""Any input: an exit code from 0 to 3, one line with a remedy, no traceback, no file touched that is not
ours.
"""

from __future__ import annotations

import itertools
import signal
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guest_cases import guest_cases
from haloscope import bridge, cli, errors, guests
from haloscope.advice import advise
from haloscope.measure import cluster, doctor, launch, user_program
from haloscope.model import predict, profile
from haloscope.options.kinds import FileName
from long_run import LONG
from made_up_study import GUESTS
from test_records import measurement, write
from toy import TOY

COMMANDS = cli.cli.list_commands(None)
LIMIT_S = 60  # far more than any of these takes
GRID = ("laplace2d", "--cells", "64")
ONE = ("--strategy", "ordered/p2p", "--schedule", "bulk", "--depth", "1", "--substeps", "full")
PRICED = ("--profile", TOY)

# A command line for each command that works, to which one option is added.
WORKING = {
    "demo": (),
    "info": (),
    "doctor": (),
    "plan": GRID,
    "run": GRID,
    "microbench": (),
    "calibrate": ("-o", "new.json"),
    "predict": (*GRID, *PRICED),
    "whatif": (*GRID, *PRICED),
    "map": ("laplace2d", *PRICED),
    "advise": (*GRID, *PRICED),
    "tune": (*GRID, *ONE, *PRICED),
    "validate": ("r.jsonl", *PRICED),
    "simulate": (*GRID, *PRICED),
    "study": ("made-up", "--quick"),
    "compare": ("r.jsonl", "r.jsonl"),
    "report": ("r.jsonl",),
    "timeline": ("r.jsonl",),
    "check": (),
    "lab": (),
} | guest_cases("WORKING")
ENDS = {"check": ("--", "true"), "lab": ("--", "true")}  # what follows the added option
TEXTS = (
    "nan",
    "inf",
    "-inf",
    "-1",
    "0",
    "1e30",
    "1000000000000",
    "10000000000000000000000000",
    "",
    " ",
    ",",
    "x",
    "ä",
    "1,,2",
    "1..",
    "8..4",
    "1..9+0",
    "1..9*1",
    "*",
    "on,off",
    "none",
    "=",
    "a=b=c",
    "1x2x3x4",
    "0x0",
    "-5x3",
    "ordered/nope",
    "kill:rank=99",
    ".",
    "/",
    "README.md",
    "notes.json",
    "picture.svg",
    "r.jsonl",
    "/dev/null",
    "/proc/nope",
    "no/such/x",
)


def options(name: str) -> list[click.Option]:
    command = cli.cli.get_command(None, name)
    found = command.get_params(click.Context(command))
    left_out = ("help", "help_all", "watch")  # --watch ends by Ctrl-C alone
    return [p for p in found if isinstance(p, click.Option) and p.name not in left_out]


def lines_for(name: str):
    """Command lines of a command: one that works, and one more option with any value."""
    made, begin, end = [], [name, *map(str, WORKING[name])], ENDS.get(name, ())
    for option in options(name):
        values = st.just([]) if option.is_flag else st.sampled_from(TEXTS).map(lambda text: [text])
        made.append(values.map(lambda value, option=option: [*begin, option.opts[-1], *value, *end]))
    return st.one_of(made)


@contextmanager
def time_limit():
    def give_up(*_):
        raise AssertionError(f"no answer within {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def furnish(folder: Path) -> dict[Path, bytes]:
    """Put files of a user's into a folder, one with a record, and nothing else; returns what they hold."""
    for file in sorted(folder.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    for name, text in {
        "README.md": "# Mine\n",
        "notes.json": '{"mine": 1}\n',
        "picture.svg": "<svg/>",
        "new.md": "mine",
        "README.svg": "<svg/>",
        "x": "mine\n",
    }.items():
        (folder / name).write_text(text)
    rank = {"rank": 0, "measured_s": 1.0, "phases_s": {"wait": 1.0}, "operations_s": {}, "mpi": []}
    write(folder / "r.jsonl", measurement() | {"timeline": {"ranks": [rank]}})
    return {file: file.read_bytes() for file in folder.iterdir() if file.name != "r.jsonl"}


@pytest.fixture
def nothing_starts(monkeypatch, tmp_path):
    """No ranks are started and no ranking is made, so that each line takes little time. A study is there."""
    found = guests.find_guests

    def stop(*_, **__):
        raise errors.HaloscopeError("it would go on from here")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launch, "run", stop)
    monkeypatch.setattr(user_program, "run", stop)
    monkeypatch.setattr(doctor, "carry_out", stop)
    monkeypatch.setattr(cluster, "inside", stop)
    monkeypatch.setattr(advise, "advise", stop)
    monkeypatch.setattr(guests, "find_guests", lambda group: GUESTS[group] if group == guests.STUDIES else found(group))
    return tmp_path


def check(words: list[str], folder: Path, capsys) -> None:
    mine = furnish(folder)
    capsys.readouterr()
    with time_limit():
        code = cli.main(words)
    captured = capsys.readouterr()
    assert code in (0, 1, 2, 3)
    assert "Traceback" not in captured.err + captured.out
    if code:
        [line] = [text for text in captured.err.splitlines() if text.startswith("haloscope: ")][-1:]
        assert len(line) < 600
    assert {file: file.read_bytes() for file in mine} == mine, "a file of the user's has changed"


def test_every_command_has_a_line_that_works_as_far_as_it_goes_here(nothing_starts, capsys):
    assert set(WORKING) == set(COMMANDS)
    for name, words in WORKING.items():
        furnish(nothing_starts)
        code = cli.main([name, *map(str, words), *ENDS.get(name, ())])
        captured = capsys.readouterr()
        assert code == 0 or "it would go on from here" in captured.err, captured.err


def test_what_can_only_be_a_folder_is_refused_as_a_file_to_write(nothing_starts, capsys):
    names = {
        (name, option.opts[-1]) for name in COMMANDS for option in options(name) if isinstance(option.type, FileName)
    }
    assert {("run", "--output"), ("run", "--trace"), ("simulate", "--plot"), ("calibrate", "--output")} <= names
    for (name, option), text in itertools.product(sorted(names), ("", ".", "..", "/", "out/", "out/.", "new/")):
        assert cli.main([name, *map(str, WORKING[name]), option, text, *ENDS.get(name, ())]) == errors.USAGE
        assert f"{text!r} is not a file name" in capsys.readouterr().err


def test_a_folder_is_refused_as_a_file_to_write_but_may_be_called_as_a_stem_is(nothing_starts):
    Path("out").mkdir()
    long = "x" * 300
    for name in COMMANDS:
        for option in options(name):
            if not isinstance(option.type, FileName):
                continue
            assert option.type.convert(long, option, None) == Path(long)
            if option.type.name == "stem":
                assert option.type.convert("out", option, None) == Path("out")
            else:
                with pytest.raises(click.BadParameter, match="'out' is a folder; give the name of a file"):
                    option.type.convert("out", option, None)


@pytest.mark.parametrize("name", COMMANDS)
def test_any_value_of_any_option_gets_an_answer_and_touches_nothing(name, nothing_starts, capsys):
    if not options(name):
        pytest.skip(f"{name} has no options")

    @settings(max_examples=400 if LONG else 10, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(words=lines_for(name))
    def holds(words):
        check(words, nothing_starts, capsys)

    holds()


@settings(max_examples=300 if LONG else 60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(
    words=st.lists(
        st.one_of(
            st.sampled_from(TEXTS),
            st.sampled_from(("laplace2d", "--cells", "--ranks", "-n", "--set", "--json", "--")),
            st.text(max_size=5),
        ),
        max_size=6,
    ),
    name=st.sampled_from(COMMANDS),
)
def test_any_words_get_an_answer_and_touch_nothing(words, name, nothing_starts, capsys):
    words = [word.replace("\0", "") for word in words]
    if name == "study" and "--replay" in words:
        return
    check([name, *words], nothing_starts, capsys)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("simulate", *GRID, *PRICED, "--ranks", "10000000000"), "--ranks '10000000000' is not possible"),
        (("run", "advection3d", "--cells", "8", "--set", "nu=nan"), "parameter nu = 'nan' is not possible"),
        (("run", *GRID, "--inject", "kill:rank=9"), "rank"),
        (("run", *GRID, "--resume", "--output", "README.md"), "README.md holds no records"),
        (("run", *GRID, "--trace", "notes.json"), "notes.json exists and was not written by haloscope"),
        (("run", "laplace2d", "--cells", "1000000x1000000"), "use --cells"),
        (("calibrate", "-o", "notes.json"), "notes.json exists and was not written by haloscope"),
        (("validate", "r.jsonl", *PRICED, "-o", "README"), "README.md exists and was not written by haloscope"),
        (("simulate", *GRID, *PRICED, "--goal", "README.md"), "README.md exists and was not written by haloscope"),
        (("run", *GRID, "--strategy", "zzz"), "more"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy_before_anything_starts(words, message, nothing_starts, capsys):
    mine = furnish(nothing_starts)
    code = cli.main(list(map(str, words)))
    text = capsys.readouterr().err
    assert code == 2 and message in text, text
    assert {file: file.read_bytes() for file in mine} == mine


@settings(deadline=None, database=None)
@given(valid=st.lists(st.text("abc:,-", min_size=1, max_size=80), max_size=40))
def test_a_message_lists_no_more_valid_names_than_one_reads(valid):
    text = errors.unknown_name("thing", "0123456789", valid)
    assert len(text) < 600
    shown, _, more = text.partition("valid names are ")[2].partition(" and ")
    assert shown == ", ".join(valid[: len(valid) - int(more.removesuffix(" more") or 0)])


@pytest.mark.parametrize("words", [("advise", "--depth"), ("whatif", "--active")])
def test_numbers_that_do_not_fit_are_refused(words, capsys):
    command, option = words
    assert cli.main([command, "laplace2d", "--cells", "64", "--profile", str(TOY), option, "1000000000000"]) == 2
    assert "1000000000000" in capsys.readouterr().err


@pytest.mark.parametrize("setting", [{"active": 10**12}, {"custom": [(10**12, 0)]}, {"reductions": 10**12}])
def test_settings_that_do_not_fit_are_refused(setting):
    [name] = setting
    with pytest.raises(errors.UsageError, match=f"'{name}' is 1000000000000"):
        predict.predict(bridge.Choice("laplace2d", (64, 64)), profile.load(TOY), predict.RunSettings(**setting))
