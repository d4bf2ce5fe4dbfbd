"""Choices and requests: the same fields in Python, C++ and on the command line; their JSON, names and words."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import resource
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haloscope import bridge, records
from haloscope.bridge import build
from haloscope.commands import run as run_command
from haloscope.measure import space
from haloscope.measure.request import SETTINGS, Request, name_of, words_of
from haloscope.options.kinds import GROUPS
from haloscope.options.request import space_of, values_of
from paths import ROOT
from programs import ended, run

MEASURE = ROOT / "src" / "lab" / "haloscope" / "rank" / "measure" / "measure.def"
TEXTS = {"isa": ("avx2", "baseline"), "device_kernel": ("naive", "shared"), "device": ("host", "cuda")}


def values(field: bridge.Field, app: bridge.App) -> st.SearchStrategy:
    """Values of a field that can be written down, legal or not, beside its default."""
    dims = app.dims
    by_name = {
        "form": st.sampled_from(app.forms),
        "real": st.sampled_from(app.reals),
        "process_grid": st.sampled_from(bridge.process_grid_rules()) | shapes(dims, dims),
        "stage_strategies": strategies().map(lambda s: (("step", s),)),
    } | {name: st.sampled_from(words) for name, words in TEXTS.items()}
    by_type = {
        "integer": st.integers(1, 99),
        "flag": st.just(True),
        "word": st.sampled_from(field.words or ("",)),
        "schedule": st.sampled_from(bridge.schedule_names()),
        "strategy": strategies(),
        "dimensions": st.tuples(*[st.booleans()] * dims),
        "shape": shapes(1, 3),
    }
    return by_name[field.name] if field.name in by_name else by_type[field.type]


def shapes(least: int, most: int) -> st.SearchStrategy:
    return st.lists(st.integers(1, 64), min_size=least, max_size=most).map(lambda n: "x".join(map(str, n)))


def strategies() -> st.SearchStrategy:
    return st.sampled_from(bridge.strategy_names() + bridge.device_strategy_names()).map(bridge.canonical_strategy)


def parameters(app: bridge.App) -> st.SearchStrategy:
    """Some of an app's parameters, as a command line writes them."""

    def one(p: bridge.Parameter) -> st.SearchStrategy:
        least = max(1, math.ceil(1000 * (p.least or 0)))
        most = min(2000, math.floor(1000 * (2 if p.most is None else p.most)))
        numbers = st.integers(least, most).map(lambda v: f"{v / 1000:g}")
        if p.words:
            return st.sampled_from([word for word in p.words if word])
        if isinstance(p.value, tuple):
            return st.lists(numbers, min_size=len(p.value), max_size=len(p.value)).map(",".join)
        return numbers if isinstance(p.value, float) else st.integers(1, 2).map(str)

    return st.fixed_dictionaries({}, optional={p.name: one(p) for p in app.parameters}).map(lambda d: tuple(d.items()))


@st.composite
def choices(draw) -> bridge.Choice:
    """Draw a choice, legal or not, some of whose fields are not at their defaults."""
    app = bridge.find_app(draw(st.sampled_from(bridge.app_names())))
    known = {f.name: values(f, app) for f in bridge.fields() if f.name != "cells"}
    cells = draw(st.tuples(*[st.integers(1, 200)] * app.dims))
    changes = draw(st.fixed_dictionaries({}, optional=known))
    return bridge.Choice(app=app.name, cells=cells, **changes, set=draw(parameters(app)))


def run_bounded(*words, stdin=subprocess.DEVNULL) -> subprocess.CompletedProcess:
    """Run the program in a bounded address space, so that an endless file cannot fill the machine's memory."""

    def bounded():
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    return ended(build.rank_program(), *words, stdin=stdin, timeout=100, preexec_fn=bounded)


# ---- one table of fields ---------------------------------------------------------------------------------------------


def test_a_choice_has_the_fields_and_defaults_of_the_table():
    mine = {f.name: f.default for f in dataclasses.fields(bridge.Choice)}
    assert list(mine) == ["app", *(f.name for f in bridge.fields()), "set"]
    for field in bridge.fields():
        usual = tuple(field.default) if isinstance(field.default, list | dict) else field.default
        if field.name == "periodic":  # as the app has it, which a table cannot say
            usual = ()
        assert (mine[field.name], type(mine[field.name])) == (usual, type(usual)), field.name


def test_the_table_has_a_meaning_a_group_and_a_way_to_read_each_field():
    app = bridge.find_app("laplace2d")
    texts = {"cells": "8", "shape": "8", "integer": "1", "flag": "on", "dimensions": "x", "stage-strategies": "s=auto"}
    for field in bridge.fields():
        assert field.meaning.endswith((".", "...")) and field.group in GROUPS
        text = app.forms[0] if field.name == "form" else (field.words or (texts.get(field.type, "any"),))[0]
        assert field.name in ("schedule", "strategy") or len(values_of(field, text, app)) == 1
        assert (field.type == "word") == bool(field.words) and (not field.words or field.default in field.words)


def test_a_request_has_the_fields_and_defaults_of_the_rank_program():
    declared = re.findall(r"^MEASURE_FIELD\(([\w:]+), (\w+), (.*?),\s+\"", MEASURE.read_text(), re.MULTILINE)
    read = {"bool": lambda t: t == "true", "double": float, "std::int64_t": int, "std::string": json.loads}
    theirs = {name: read[kind](value) for kind, name, value in declared}
    mine = dict(SETTINGS)
    assert mine == theirs and list(mine) == list(theirs)
    assert all(type(mine[name]) is type(theirs[name]) for name in mine)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--launch-id", "a\u00e4"),
        ("--launch-id", "x" * 101),
        ("--launch-id", "a\nb"),
        ("--expect-ranks", "-1"),
        ("--watchdog", "nan"),
        ("--watchdog", "-1"),
    ],
)
def test_the_rank_program_refuses_values_that_its_records_could_not_hold(option, value):
    done = run_bounded(option, value, "laplace2d", "--cells", "8x8")
    assert done.returncode == 2 and option in done.stderr and not done.stdout


def test_an_option_that_nobody_has_is_refused_by_the_rank_program_with_the_nearest_one():
    for word in ("--stratgy", "--stratgy=ordered/p2p"):
        done = run_bounded("laplace2d", "--cells", "8x8", word, "ordered/p2p")
        assert done.returncode == 2 and "unknown option '--stratgy'; did you mean --strategy" in done.stderr
    done = run_bounded("--otput", "x", "laplace2d", "--cells", "8x8")
    assert done.returncode == 2 and "unknown option '--otput'; did you mean --output" in done.stderr
    done = run_bounded("laplace2d", "--cells", "8x8", "--output", "x")
    assert done.returncode == 2 and "option '--output' comes before the app" in done.stderr
    done = run_bounded("laplace2d", "8x8")
    assert done.returncode == 2 and "'8x8' is not an option, nor the value of one" in done.stderr


def test_the_rank_program_takes_one_number_of_cells_for_all_dimensions():
    for app, cells in (("laplace2d", [9, 9]), ("laplace3d", [9, 9, 9])):
        done = run_bounded(app, "--cells", "9", "--steps", "1")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout.splitlines()[-1])["request"]["cells"] == cells


def test_a_field_that_nobody_has_is_refused_by_the_rank_program_with_the_nearest_one():
    wrong = {"kind": "measurement", "id": "a", "request": {"app": "laplace2d", "cells": [8, 8], "dept": 2}}
    done = run_bounded("--request", json.dumps(wrong))
    assert done.returncode == 2, done.stdout + done.stderr
    assert "unknown field of a choice 'dept'; did you mean depth" in done.stdout + done.stderr


# ---- JSON ------------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=100)
@given(choices())
def test_a_choice_comes_back_from_its_json(choice):
    text = json.dumps(choice.to_json())
    assert bridge.Choice.from_json(json.loads(text)) == choice
    assert set(json.loads(text)) >= {"app", "cells", "strategy"}


@settings(deadline=None, max_examples=50)
@given(choices(), st.integers(1, 9), st.floats(0, 2), st.booleans())
def test_a_request_comes_back_from_its_json(choice, steps, seconds, timers):
    request = Request.of(choice, steps=steps, seconds=seconds, timers=timers, trace="t.json")
    line = json.loads(json.dumps(request.line()))
    assert line["kind"] == "measurement" and line["id"] == request.id
    assert Request.from_json(line["request"]) == request


def test_the_line_for_the_ranks_says_everything_that_differs_from_their_defaults():
    request = Request.of(
        bridge.Choice("laplace2d", (64, 32), ranks=4, depth=2, substeps="shrink", barrier=True), steps=10, verify=5
    )
    assert request.line() == {
        "kind": "measurement",
        "id": request.id,
        "request": {
            "app": "laplace2d",
            "cells": [64, 32],
            "ranks": 4,
            "strategy": "ordered/p2p",
            "depth": 2,
            "substeps": "shrink",
            "barrier": True,
            "steps": 10,
            "verify": 5,
        },
    }


def test_the_request_of_a_record_asks_for_the_same_again(haloscope):
    words = ("--cells", "24", "--depth", "1,2", "--schedule", "bulk,split", "--set", "seed=3", "--steps", 4)
    assert haloscope("run", "laplace2d", *words, "--repetitions", 1, "--launches", 1, "--output", "r.jsonl").code == 0
    found = records.read("r.jsonl").measurements
    assert len(found) == 4
    for record in found:
        request = Request.from_json(record["request"])
        assert bridge.illegal(request.choice) == "" and request.steps == 4
        assert request.choice.set == (("seed", 3),)
        again = bridge.Choice.from_json(request.request())
        assert bridge.normal(again) == again


# ---- names and words -------------------------------------------------------------------------------------------------


def test_a_name_says_what_everybody_asks_for_and_then_what_is_not_usual():
    plain = bridge.Choice("laplace2d", (64, 32), ranks=2)
    assert name_of(plain.to_json()) == "laplace2d,64x32,r2,t1,bulk,ordered/p2p,d1,f64"
    other = dataclasses.replace(
        plain, depth=4, substeps="shrink", barrier=True, periodic=(True, False), set=(("weights", "1,1,-4,1,1"),)
    )
    assert name_of(other.to_json()) == (
        "laplace2d,64x32,r2,t1,bulk,ordered/p2p,d4,shrink,f64,periodic=x,barrier,weights=1,1,-4,1,1"
    )


def test_how_long_something_is_measured_is_no_part_of_its_name():
    short, long = (Request.of(bridge.Choice("laplace2d", (8, 8)), steps=n) for n in (1, 9))
    assert short.id == long.id
    other = Request.of(bridge.Choice("laplace2d", (8, 8), set=(("weights", "1,1,-4,1,1"),)))
    assert other.id != short.id


@settings(deadline=None, max_examples=100)
@given(choices(), choices())
def test_different_choices_have_different_names(one, other):
    one, other = space.normal(one), space.normal(other)
    assert (name_of(one.to_json()) == name_of(other.to_json())) == (one == other)


@settings(deadline=None, max_examples=100)
@given(choices())
def test_the_words_of_a_choice_ask_for_it_on_the_command_line(choice):
    choice = space.normal(choice)
    app, *words = words_of(choice)
    parsed = run_command.command.make_context("run", [app, *words]).params
    found = space_of(bridge.find_app(parsed.pop("app")), parsed, {})
    [read_back] = found.requests + [request for request, _ in found.refused]
    assert read_back.choice == choice and read_back.id == name_of(choice.to_json())
    assert [reason for _, reason in found.refused] == [bridge.illegal(choice)] * (bridge.illegal(choice) != "")


@pytest.mark.parametrize(("value", "text"), [(2, "2"), (0.25, "0.25"), (True, "on"), ((1.0, -2.5), "1.0,-2.5")])
def test_values_of_parameters_are_words_as_a_command_line_writes_them(value, text):
    assert words_of(bridge.Choice("laplace2d", (8, 8), set=(("any", value),)))[-2:] == ["--set", f"any={text}"]


@pytest.mark.parametrize(
    ("request_json", "reason"),
    [
        ({"app": "laplace2d", "cells": [8, 8], "steps": 2, "repetitions": 3}, ""),
        ({"app": "laplace2d", "cells": [8, 8], "schedule": "overlap", "depth": 3}, "overlap"),
        ({"app": "laplace2d", "cells": [8, 8], "stepz": 2}, "unknown field of a choice 'stepz'"),
    ],
)
def test_a_program_says_of_a_whole_request_whether_it_can_run(request_json, reason):
    answer = json.loads(run(build.rank_program(), "--check", "-", input=json.dumps({"request": request_json})))
    assert reason in answer and (answer == "") == (reason == "")


@pytest.mark.parametrize("option", ["--requests", "--check"])
def test_a_program_reads_requests_from_regular_files_within_bounds_only(option, tmp_path):
    pipe, large = tmp_path / "pipe", tmp_path / "large"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(int(bridge.bounds()["json_bytes"].most) + 1)
    faults = dict.fromkeys((pipe, tmp_path, Path("/dev/zero")), "not a regular file")
    faults |= {large: "more than 67108864 bytes", tmp_path / "none": "No such file"}
    for path, why in faults.items():
        done = run_bounded(option, path)
        assert done.returncode == 2, done.stderr
        assert f"haloscope: cannot read the requests file {path}: " in done.stderr and why in done.stderr


def test_a_program_refuses_a_line_without_an_end_on_its_input():
    with Path("/dev/zero").open("rb") as endless:
        done = run_bounded("--check", "-", stdin=endless)
    assert done.returncode == 2
    assert "standard input, line 1: this line has more than 67108864 bytes" in done.stderr


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"request": }', "is not JSON: column 13: syntax error while parsing value - unexpected '}'"),
        ("[1e999]", "is not JSON: column 6: number overflow"),
        ("[]", 'a request is a line {"kind", "id", "request"}, not []'),
    ],
)
def test_a_faulty_line_of_requests_is_named_with_its_place(line, why, tmp_path):
    good = json.dumps({"request": {"app": "laplace2d", "cells": [8, 8], "steps": 2, "repetitions": 3}})
    file = tmp_path / "requests.jsonl"
    file.write_text(f"{good}\n\n{line}\n")
    answers = [json.loads(answer) for answer in run_bounded("--check", file).stdout.splitlines()]
    assert answers[0] == ""
    assert answers[1].startswith(f"{file}, line 3: a request") and why in answers[1]
