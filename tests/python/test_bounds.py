"""Numbers and texts without bounds in profiles, records and questions: refused in words, by Python and by the C
interface.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from haloscope import core, files, records
from haloscope.core import capi
from haloscope.errors import NotAvailable, UsageProblem
from haloscope.external import table
from haloscope.measure.foreign import text as foreign_text
from haloscope.model import predict, profile
from test_records import measurement, write
from toy import TOY

ROOT = Path(__file__).resolve().parents[2]
WHOLE = [json.loads(file.read_text()) for file in (TOY, ROOT / "results" / "tune" / "machine.json")]
EXTREMES = (1e308, -1e308, 1.7e18, 1e-320)
CHOICE = {"app": "laplace2d", "cells": [64, 64], "ranks": 4, "depth": 2}
DEEP = "[" * 300_000 + "]" * 300_000


def numbers_of(value, path=()) -> Iterator[tuple]:
    """Paths of the numbers of a JSON value; of each kind of place one."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers_of(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value[:2]):
            yield from numbers_of(inner, (*path, place))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def kind_of(path: tuple) -> tuple:
    """A path without what only counts or names: sizes, kernels."""
    return (path[0], path[-2] if isinstance(path[-1], int) else "", path[-1])


def places_of(data: dict) -> list[tuple]:
    return list(
        {kind_of(path): path for path in numbers_of(data) if path[0] not in ("schema_version", "states")}.values()
    )


def changed(data, path: tuple, value):
    made = copy.deepcopy(data)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return made


def made_by_c(data) -> object:
    return capi.handle("hs_profile_create", "hs_profile", json.dumps(data).encode())


def finite(value) -> bool:
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(finite, value))
    return not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize("data", WHOLE, ids=["toy", "calibrated"])
def test_a_number_of_a_profile_is_refused_or_gives_finite_predictions(data):
    choice = core.Choice.from_json(CHOICE)
    for path in places_of(data):
        for value in EXTREMES:
            wrong = changed(data, path, value)
            try:
                handle = made_by_c(wrong)
            except UsageProblem:
                assert profile.fault_of(wrong), f"only the library refuses {path} = {value}"
                continue
            try:
                found = json.loads(
                    capi.result_text("hs_predict", core.choice.handle_of(choice), handle, predict.PLAINLY.to_c(), 10, 0)
                )
            except (UsageProblem, NotAvailable):
                continue
            assert finite(found), f"{path} = {value}"


@pytest.mark.parametrize("section", ["pack", "copy", "kernels", "transports", "network"])
def test_costs_of_1e308_seconds_are_refused_by_both(section):
    def large(value):
        if isinstance(value, dict):
            return {
                key: 1e308 if key.endswith("_s") and not isinstance(inner, dict) else large(inner)
                for key, inner in value.items()
            }
        return [large(one) for one in value] if isinstance(value, list) else value

    data = WHOLE[1] | {section: large(WHOLE[1][section])}
    assert profile.fault_of(data)
    with pytest.raises(UsageProblem, match=r"at most|from"):
        made_by_c(data)


def test_the_schemas_have_the_ranges_of_the_table():
    spec = importlib.util.spec_from_file_location("schema_script", ROOT / "scripts" / "schema.py")
    schema = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(schema)
    assert schema.record_text() == records.SCHEMA_FILE.read_text()
    assert schema.profile_text() == profile.SCHEMA_FILE.read_text()


def test_bounds_of_files_are_those_of_the_library():
    bounds = core.bounds()
    assert bounds["json_depth"].most == files.MOST_DEPTH
    assert bounds["kept_bytes"].most == files.MOST_KEPT_BYTES


@pytest.mark.parametrize(
    ("column", "bound", "within", "beyond"),
    [
        ("halo", "external_halo", "64", "65"),
        ("fields", "external_fields", "64", "65"),
        ("node_grid", "external_blocks", "100x100x100", "101x100x100"),
    ],
)
def test_a_table_of_exchanges_ends_where_the_table_of_bounds_says(column, bound, within, beyond, tmp_path):
    row = dict.fromkeys(table.REQUIRED, "1") | {"node_grid": "1x1x1", "core_grid": "1x1x1", "cells": "80x80x80"}
    row |= {"element_bytes": "8", "strategy": "ordered/p2p"}
    file = tmp_path / "table.csv"
    for text in (within, beyond):
        made = row | {column: text}
        file.write_text(f"{','.join(made)}\n{','.join(made.values())}\n")
        with (
            contextlib.nullcontext()
            if text == within
            else pytest.raises(UsageProblem, match=f"{core.bounds()[bound].most:.0f}")
        ):
            table.read(file)


@pytest.mark.parametrize(("word", "number"), [("1e18", 1e18), ("2e18", None), ("nan", None), ("-1", None)])
def test_numbers_of_other_benchmarks_end_where_counts_do(word, number):
    with pytest.raises(ValueError, match="from 0 to 1e\\+18") if number is None else contextlib.nullcontext():
        assert foreign_text.number(word, 1) == number == core.bounds()["count"].most


def test_every_number_of_the_schemas_has_two_ends():
    def endless(node, place=""):
        if isinstance(node, dict):
            if {"integer", "number"} & set(
                node["type"] if isinstance(node.get("type"), list) else [str(node.get("type"))]
            ):
                assert {"minimum", "maximum"} <= node.keys(), place
            for key, inner in node.items():
                endless(inner, f"{place}/{key}")
        for number, inner in enumerate(node if isinstance(node, list) else ()):
            endless(inner, f"{place}/{number}")

    for file in (records.SCHEMA_FILE, profile.SCHEMA_FILE):
        found = json.loads(file.read_text())
        found["$defs"][
            "failed" if "failed" in found["$defs"] else "end"
        ] = {}  # numbers of ranks and steps that may be absent
        endless(found)


@pytest.mark.parametrize(
    "request_",
    [
        {"ranks": 10**9},
        {"depth": 10**9},
        {"cells": [10**18, 4]},
        {"threads": 10**6},
        {"nodes": 10**9},
        {"steps": 10**18},
        {"tiles": 10**12},
    ],
)
def test_a_record_of_something_too_large_for_any_machine_is_left_out(request_, tmp_path):
    found = records.read(write(tmp_path / "r.jsonl", measurement(**request_)))
    assert found.records == []
    assert next(iter(request_)) in found.bad_lines[0][1]


@pytest.mark.parametrize("field", ["ranks", "threads", "depth", "piece", "tiles", "nodes", "walls"])
def test_fields_of_a_choice_end_where_the_table_says(field, haloscope):
    most = int(core.bounds()[field].most)
    core.choice.handle_of(core.Choice.from_json(CHOICE | {field: most}))
    with pytest.raises(UsageProblem, match=f"{most}"):
        core.choice.handle_of(core.Choice.from_json(CHOICE | {field: most + 1}))
    device = ("--device", "host", "--schedule", "box") if field == "walls" else ()
    result = haloscope("plan", "laplace2d", "--cells", "64", f"--{field}", most + 1, *device)
    assert result.code == 2
    assert str(most) in result.err


# ---- JSON in the C interface -----------------------------------------------------------------------------------------


def question(**more) -> bytes:
    return json.dumps({"choice": CHOICE} | more).replace('"DEEP"', DEEP).encode()


def handle_of(**more):
    text = json.dumps(CHOICE | more).replace('"DEEP"', DEEP).encode()
    return capi.handle("hs_choice_create", "hs_choice", text)


def profile_of(**more):
    return capi.handle("hs_profile_create", "hs_profile", json.dumps(WHOLE[0] | more).replace('"DEEP"', DEEP).encode())


TOY_C = {"profile": lambda: made_by_c(WHOLE[0]), "choice": lambda: core.choice.handle_of(core.Choice.from_json(CHOICE))}
CALLS = {
    "a profile": lambda: capi.handle("hs_profile_create", "hs_profile", DEEP.encode()),
    "a profile's schema": lambda: profile_of(schema="DEEP"),
    "a profile's version": lambda: profile_of(schema_version="DEEP"),
    "a profile's notes": lambda: profile_of(notes="DEEP"),
    "a pace": lambda: capi.handle("hs_profile_at_pace", "hs_profile", TOY_C["profile"](), DEEP.encode()),
    "a choice": lambda: capi.handle("hs_choice_create", "hs_choice", DEEP.encode()),
    "a choice's app": lambda: handle_of(app="DEEP"),
    "a choice's cells": lambda: handle_of(cells="DEEP"),
    "a choice's parameter": lambda: handle_of(set={"x": "DEEP"}),
    "an app's parameters": lambda: capi.result_text("hs_app_describe", b"laplace2d", DEEP.encode()),
    "an app": lambda: capi.call("hs_app_declare", DEEP.encode()),
    "a question": lambda: capi.result_text("hs_best", question(among=["DEEP"]), TOY_C["profile"]()),
    "candidates": lambda: capi.handle(
        "hs_advice_create",
        "hs_advice",
        TOY_C["choice"](),
        TOY_C["profile"](),
        predict.PLAINLY.to_c(),
        capi.load()[0].NULL,
        0,
        DEEP.encode(),
        0,
    ),
}


@pytest.mark.parametrize("what", CALLS)
def test_json_nested_deep_is_refused_in_words(what):
    with pytest.raises(UsageProblem, match="more than 64"):
        CALLS[what]()


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"nul", b"[1e999]"])
def test_what_is_no_json_is_quoted_so_that_it_can_be_printed(text):
    with pytest.raises(UsageProblem, match=r"is no JSON: column [1-6]: "):
        capi.handle("hs_choice_create", "hs_choice", text)


def test_errors_of_the_library_steer_no_terminal():
    with pytest.raises(UsageProblem) as error:
        capi.handle("hs_choice_create", "hs_choice", json.dumps(CHOICE | {"app": "\x1b[2J\x9b\u202e"}).encode())
    assert r"\x1b[2J\x9b\u202e" in str(error.value)


def test_reasons_why_a_choice_cannot_run_steer_no_terminal():
    choice = core.Choice("laplace2d", (64, 64), device="\x1b[2J\x9b\u202e")
    assert r"unknown device '\x1b[2J\x9b\u202e'" in core.illegal(choice)


# ---- products that do not fit ----------------------------------------------------------------------------------------


def layout(cells, ranks):
    ffi = capi.load()[0]
    three = [
        ffi.new(kind, values)
        for kind, values in (("int64_t[3]", cells), ("int32_t[3]", (0, 0, 0)), ("int32_t[3]", ranks))
    ]
    return capi.handle("hs_layout_create", "hs_layout", 3, *three)


@pytest.mark.parametrize(
    ("cells", "ranks", "words"),
    [
        ((2**31, 2**31, 1), (10**5, 10**5, 1), r"10\^15 cells"),
        ((2**62, 1, 1), (1, 1, 1), r"10\^15 cells"),
        ((2**62, 2**62, 2**62), (1, 1, 1), r"10\^15 cells"),
        ((10**5, 10**5, 10**5), (10**4, 10**4, 10**3), "more ranks"),
    ],
)
def test_layouts_whose_numbers_do_not_fit_are_refused(cells, ranks, words):
    with pytest.raises(UsageProblem, match=words):
        layout(cells, ranks)


def test_fields_whose_bytes_do_not_fit_are_refused():
    spec = core.ExchangeSpec((core.Quantity("u", 2**31 - 1),), low=(1, 1, 1), high=(1, 1, 1))
    made = core.make_layout(core.Choice("laplace3d", cells=(10**5, 10**5, 10**5), ranks=1))
    with pytest.raises(UsageProblem, match=r"10\^18 bytes"):
        core.make_plan(made, 0, spec)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((4, 2**31 - 1, 2**31 - 1), "at most"),
        ((4, 4096, 4096), ""),
        ((4, 4097, 1), "at most"),
        ((4, 1, 4097), "at most"),
    ],
)
def test_places_of_ranks_on_machines_too_large_are_refused(numbers, words):
    ffi = capi.load()[0]
    node, socket = ffi.new("int32_t[4]"), ffi.new("int32_t[4]")
    with pytest.raises(UsageProblem, match=words) if words else contextlib.nullcontext():
        capi.call("hs_place_ranks", *numbers, predict.PLAINLY.to_c(), node, socket)


@pytest.mark.parametrize("field", ["depth", "threads", "tiles"])
def test_questions_about_choices_that_cannot_be_are_refused(field):
    with pytest.raises(UsageProblem, match="use 1 or more"):
        capi.result_text("hs_best", question(choice=CHOICE | {field: -1}, halo=2, depths=[1, 2]), TOY_C["profile"]())


@pytest.mark.parametrize("more", [{"depths": [2**31 - 1]}, {"samples": 2**31 - 1}, {"samples": 10**9}])
def test_questions_without_bounds_are_refused_at_once(more):
    with pytest.raises(UsageProblem, match="at most"):
        capi.result_text("hs_best", question(**more), TOY_C["profile"]())
