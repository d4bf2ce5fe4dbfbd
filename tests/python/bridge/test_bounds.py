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

import pytest

from haloscope import bridge, files, records
from haloscope.bridge import capi
from haloscope.errors import UnavailableError, UsageError
from haloscope.fit import external_table
from haloscope.measure.importers import text as importers_text
from haloscope.model import placement, profile
from paths import ROOT
from test_records import measurement, write
from toy import TOY

WHOLE = [profile.load(file).data for file in (TOY, ROOT / "results" / "tune" / "machine.json.xz")]
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


def opened(data) -> object:
    """Return a profile as the library holds it; data: JSON, or its text."""
    return profile._handle("hs_open_profile", data if isinstance(data, bytes) else json.dumps(data).encode())


def finite(value) -> bool:
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(finite, value))
    return not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize("data", WHOLE, ids=["toy", "calibrated"])
def test_a_number_of_a_profile_is_refused_or_gives_finite_predictions(data):
    for path in places_of(data):
        for value in EXTREMES:
            wrong = changed(data, path, value)
            try:
                handle = opened(wrong)
            except UsageError:
                assert profile.fault_of(wrong), f"only the library refuses {path} = {value}"
                continue
            try:
                found = capi.answer("hs_predict", {"choices": [CHOICE], "samples": 10}, handle)
            except (UsageError, UnavailableError):
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
    with pytest.raises(UsageError, match=r"at most|from"):
        opened(data)


def test_the_schemas_have_the_ranges_of_the_table():
    spec = importlib.util.spec_from_file_location("schema_script", ROOT / "scripts" / "schema.py")
    schema = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(schema)
    assert schema.record_text() == records.SCHEMA_FILE.read_text()
    assert schema.profile_text() == profile.SCHEMA_FILE.read_text()
    assert schema.choice_text() == schema.CHOICE_FILE.read_text()


def test_bounds_of_files_are_those_of_the_library():
    bounds = bridge.bounds()
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
    row = dict.fromkeys(external_table.REQUIRED, "1") | {
        "node_grid": "1x1x1",
        "core_grid": "1x1x1",
        "cells": "80x80x80",
    }
    row |= {"element_bytes": "8", "strategy": "ordered/p2p"}
    file = tmp_path / "table.csv"
    for text in (within, beyond):
        made = row | {column: text}
        file.write_text(f"{','.join(made)}\n{','.join(made.values())}\n")
        with (
            contextlib.nullcontext()
            if text == within
            else pytest.raises(UsageError, match=f"{bridge.bounds()[bound].most:.0f}")
        ):
            external_table.read(file)


@pytest.mark.parametrize(("word", "number"), [("1e18", 1e18), ("2e18", None), ("nan", None), ("-1", None)])
def test_numbers_of_other_benchmarks_end_where_counts_do(word, number):
    with pytest.raises(ValueError, match="from 0 to 1e\\+18") if number is None else contextlib.nullcontext():
        assert importers_text.number(word, 1) == number == bridge.bounds()["count"].most


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
    most = int(bridge.bounds()[field].most)
    fields_of(json.dumps(CHOICE | {field: most}))
    with pytest.raises(UsageError, match=f"{most}"):
        fields_of(json.dumps(CHOICE | {field: most + 1}))
    device = ("--device", "host", "--schedule", "box") if field == "walls" else ()
    result = haloscope("plan", "laplace2d", "--cells", "64", f"--{field}", most + 1, *device)
    assert result.code == 2
    assert str(most) in result.err


# ---- JSON over the bridge --------------------------------------------------------------------------------------------


def deep(values: dict) -> bytes:
    """Return JSON with something nested deep in the place of "DEEP"."""
    return json.dumps(values).replace('"DEEP"', DEEP).encode()


def question(**more) -> bytes:
    return deep({"choice": CHOICE} | more)


def fields_of(text: str | bytes) -> dict:
    """Return the fields of a choice."""
    return capi.answer("hs_examine", text if isinstance(text, bytes) else text.encode(), b"fields", 0)


def toy() -> object:
    """Return the toy profile as the library holds it."""
    return opened(WHOLE[0])


LAYOUT = {"grid": {"dims": 2, "cells": [64, 64, 1]}, "ranks": [2, 2, 1]}
CALLS = {
    "a profile": lambda: opened(DEEP.encode()),
    "a profile's schema": lambda: opened(deep(WHOLE[0] | {"schema": "DEEP"})),
    "a profile's version": lambda: opened(deep(WHOLE[0] | {"schema_version": "DEEP"})),
    "a profile's notes": lambda: opened(deep(WHOLE[0] | {"notes": "DEEP"})),
    "a pace": lambda: profile._handle("hs_profile_at_pace", toy(), DEEP.encode()),
    "a choice": lambda: fields_of(DEEP),
    "a choice's app": lambda: fields_of(deep(CHOICE | {"app": "DEEP"})),
    "a choice's cells": lambda: fields_of(deep(CHOICE | {"cells": "DEEP"})),
    "a choice's parameter": lambda: fields_of(deep(CHOICE | {"set": {"x": "DEEP"}})),
    "an app": lambda: capi.call("hs_declare_app", DEEP.encode()),
    "a space": lambda: capi.answer("hs_expand", deep({"choice": CHOICE, "axes": "DEEP"})),
    "a plan": lambda: capi.answer("hs_plan", deep({"layout": LAYOUT, "rank": 0, "spec": "DEEP"})),
    "a check": lambda: capi.result_text("hs_check", deep({"choice": CHOICE, "options": "DEEP"})),
    "a prediction": lambda: capi.answer("hs_predict", deep({"choices": [CHOICE], "setting": "DEEP"}), toy()),
    "a simulation": lambda: capi.answer("hs_simulate", question(seed="DEEP"), toy()),
    "a question": lambda: capi.answer("hs_best", question(among=["DEEP"]), toy()),
    "candidates": lambda: capi.answer("hs_advise", question(among=["DEEP"]), toy()),
}


@pytest.mark.parametrize("name", CALLS)
def test_json_nested_deep_is_refused_in_words(name):
    with pytest.raises(UsageError, match="more than 64"):
        CALLS[name]()


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"nul", b"[1e999]"])
def test_what_is_no_json_is_quoted_so_that_it_can_be_printed(text):
    with pytest.raises(UsageError, match=r"is not JSON: column [1-6]: "):
        fields_of(text)


def test_errors_of_the_library_steer_no_terminal():
    with pytest.raises(UsageError) as error:
        fields_of(json.dumps(CHOICE | {"app": "\x1b[2J\x9b\u202e"}))
    assert r"\x1b[2J\x9b\u202e" in str(error.value)


def test_reasons_why_a_choice_cannot_run_steer_no_terminal():
    choice = bridge.Choice("laplace2d", (64, 64), device="\x1b[2J\x9b\u202e")
    assert r"unknown device '\x1b[2J\x9b\u202e'" in bridge.illegal(choice)


# ---- products that do not fit ----------------------------------------------------------------------------------------


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
    with pytest.raises(UsageError, match=words):
        bridge.Layout(cells, ranks, (False,) * 3)


def test_fields_whose_bytes_do_not_fit_are_refused():
    spec = bridge.ExchangeSpec((bridge.Quantity("u", 2**31 - 1),), low=(1, 1, 1), high=(1, 1, 1))
    made = bridge.make_layout(bridge.Choice("laplace3d", cells=(10**5, 10**5, 10**5), ranks=1))
    with pytest.raises(UsageError, match=r"10\^18 bytes"):
        bridge.make_plan(made, 0, spec)


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
    with pytest.raises(UsageError, match=words) if words else contextlib.nullcontext():
        placement.place("fill", *numbers)


@pytest.mark.parametrize("field", ["depth", "threads", "tiles"])
def test_questions_about_choices_that_cannot_be_are_refused(field):
    with pytest.raises(UsageError, match="use 1 or more"):
        capi.answer("hs_best", question(choice=CHOICE | {field: -1}, halo=2, depths=[1, 2]), toy())


@pytest.mark.parametrize("more", [{"depths": [2**31 - 1]}, {"samples": 2**31 - 1}, {"samples": 10**9}])
def test_questions_without_bounds_are_refused_at_once(more):
    with pytest.raises(UsageError, match="at most"):
        capi.answer("hs_best", question(**more), toy())
