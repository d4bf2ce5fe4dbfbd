"""The bridge to the C++ library: errors come back as a status and a text, wrong requests are refused by name."""

from __future__ import annotations

import copy
import json
import re
import threading

import pytest

from haloscope import bridge
from haloscope.bridge import build, capi
from haloscope.bridge.json_values import decoded, encoded
from haloscope.errors import UsageError
from plan_cases import program_of
from toy import TOY


@pytest.fixture(scope="module")
def c():
    """Cffi and the library."""
    return capi.load()


def functions_of(c) -> list[str]:
    """Return the names of all functions of the bridge."""
    return [name for name in dir(c[1]) if name.startswith("hs_")]


def test_every_declared_function_is_in_the_library_and_no_other(c):
    declared = re.findall(r"\b(hs_\w+)\(", capi.declarations(build.header("bridge.h").read_text()))
    assert set(declared) | {"hs_abi", "hs_version", "hs_last_error"} >= set(functions_of(c)) > {"hs_plan"}
    for name in functions_of(c):
        assert callable(getattr(c[1], name))


def test_version_and_interface_number(c):
    assert capi.text(c[1].hs_version()).count(".") == 2
    assert c[1].hs_abi() == 10


def test_profiles_that_were_freed_are_errors_in_every_call(c):
    ffi, lib = c
    made = ffi.new("hs_profile**")
    assert lib.hs_open_profile(TOY.read_bytes(), made) == 0
    freed = made[0]
    assert lib.hs_free_profile(freed) == 0
    assert lib.hs_open_profile(TOY.read_bytes(), made) == 0  # in its place
    request, calls = b'{"choice": {"app": "laplace2d", "cells": [8, 8]}, "choices": []}', 0
    for name in functions_of(c):
        function = ffi.typeof(getattr(lib, name))
        places = [i for i, parameter in enumerate(function.args) if parameter.cname == "hs_profile *"]
        for place in places:
            arguments = [ffi.NULL if parameter.kind == "pointer" else 0 for parameter in function.args]
            arguments[place] = freed
            if place > 0:
                arguments[0] = request
            assert getattr(lib, name)(*arguments) == lib.HS_USAGE, name
            assert "argument 'profile' is not a handle" in capi.text(lib.hs_last_error()), name
            calls += 1
    assert calls >= 7
    assert lib.hs_free_profile(made[0]) == 0
    assert lib.hs_free_profile(ffi.NULL) == 0


def test_null_arguments_are_errors_not_crashes(c):
    ffi, lib = c
    for name in functions_of(c):
        function = ffi.typeof(getattr(lib, name))
        if function.args and name != "hs_free_profile":
            nothing = [ffi.NULL if parameter.kind == "pointer" else 0 for parameter in function.args]
            assert getattr(lib, name)(*nothing) == lib.HS_USAGE, name
            assert capi.text(lib.hs_last_error()), name


@pytest.mark.parametrize("request_", [b"{", b"[]", b"1", b"{}", b'{"layout": {"grid": 1}}', b'{"choice": 7}'])
def test_requests_that_are_none_are_refused_by_every_call(c, request_):
    ffi, lib = c
    made = ffi.new("hs_profile**")
    assert lib.hs_open_profile(TOY.read_bytes(), made) == 0
    values = {"const char * *": ffi.new("const char**"), "hs_profile *": made[0], "int32_t": 0, "int": 0}
    for name in set(functions_of(c)) - {"hs_free_profile", "hs_process_grid", "hs_describe", "hs_parse_strategy"}:
        function = ffi.typeof(getattr(lib, name))
        if not function.args or "hs_profile * *" in [parameter.cname for parameter in function.args]:
            continue
        arguments = [values.get(parameter.cname, ffi.NULL) for parameter in function.args]
        arguments[0] = request_
        assert getattr(lib, name)(*arguments) == lib.HS_USAGE, name
        assert capi.text(lib.hs_last_error()), name
    lib.hs_free_profile(made[0])


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"spec": {"low": [1, 1]}}, "'low' is [1,1]; give a list of 3"),
        ({"spec": {"low": [1, 1, 2**40]}}, "'low' is 1099511627776; give a whole number that fits into 32 bits"),
        ({"spec": {"low": [1, 1, 1.5]}}, "'low' is 1.5; give a whole number"),
        ({"spec": {"pattern": "odered"}}, "unknown pattern 'odered'; did you mean ordered"),
        ({"spec": {"merge": 3}}, "'merge' is 3; give a word"),
        ({"spec": {"corners": 1}}, "'corners' is 1; give true or false"),
        ({"spec": {"quantities": {}}}, "'quantities' is {}; give a list"),
        ({"spec": {"quantities": [{"name": 1}]}}, "'name' is 1; give a text"),
        ({"spec": {"widht": []}}, "unknown part of 'spec' 'widht'; did you mean widths"),
        ({"rank": 4}, "rank 4 is not one of the 4 ranks"),
        ({"spec": {}, "schedule": "bulc"}, "did you mean bulk"),
        ({"spec": {}, "schedule": "bulk"}, "no 'step'"),
    ],
)
def test_parts_of_a_request_that_cannot_be_are_refused_by_name(parts, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        capi.answer("hs_plan", bridge.Layout((8, 8), (2, 2)).request(**{"rank": 0} | parts))


def test_choices_without_a_device_are_for_the_cpu():
    on_device = {"app": "advection3d", "cells": [8, 8, 8], "device": "host"}
    # By default messages move the memory that a device has.
    assert point({**on_device, "strategy": None})["reason"] == ""
    assert "with --device use" in point({**on_device, "strategy": "ordered/p2p"})["reason"]
    plain = bridge.Choice("advection3d", (8, 8, 8))
    assert bridge.illegal(plain) == ""
    options = bridge.schedule_options(plain)
    assert not options.device
    assert not options.staged
    assert options.pack_first


def point(fields: dict) -> dict:
    """Return the library's answer on a choice."""
    [found] = capi.answer("hs_expand", {"choice": {name: v for name, v in fields.items() if v is not None}})
    return found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ('{"app": "laplace2d", "cells": [8, 8], "depht": 2}', "did you mean depth"),
        ('{"app": "laplace2d", "cells": [8, 8], "ranks": "four"}', "ranks"),
        ('{"app": "laplace2d", "cells": [8, 8], "strategy": "orderd/p2p"}', "did you mean ordered/p2p"),
    ],
)
def test_choices_that_cannot_be_are_refused_with_the_nearest_names(text, words):
    with pytest.raises(UsageError, match=words):
        capi.answer("hs_examine", text.encode(), b"fields", 0)


def test_a_space_is_the_product_of_its_axes_the_last_one_fastest():
    space = {
        "choice": {"app": "laplace2d", "cells": [64, 64], "ranks": 4},
        "axes": [["depth", [1, 2]], ["schedule", ["bulk", "split", "bulc"]]],
    }
    found = capi.answer("hs_expand", space)
    made = [(p["choice"]["depth"], p["choice"]["schedule"]) for p in found if p["choice"]]
    assert made == [(1, "bulk"), (1, "split"), (2, "bulk"), (2, "split")]
    assert [bool(p["reason"]) for p in found] == [False, False, True] * 2
    assert "did you mean bulk" in found[2]["reason"]
    for wrong in ({"depth": [1]}, [["depth", 1]], [["depth"]], [[1, [1]]]):
        with pytest.raises(UsageError, match="pairs of a field and a list of its values"):
            capi.answer("hs_expand", space | {"axes": wrong})


def test_an_app_that_cannot_be_listed_is_not_declared():
    listed = capi.answer("hs_describe", b"apps")
    endless = copy.deepcopy(next(app for app in listed if app["name"] == "advection3d")) | {"name": "endless"}
    assert len(endless["forms"]) > 1
    endless["steps"][endless["forms"][-1]]["stages"][0]["repeats"] = 65536
    with pytest.raises(UsageError, match="repeats 65536 stages"):
        capi.call("hs_declare_app", encoded(endless))
    assert capi.answer("hs_describe", b"apps") == listed


def test_a_step_survives_the_way_to_python_and_back():
    for name in bridge.app_names():
        app = bridge.find_app(name)
        for form in app.forms:
            cells = 23  # an app of the studies takes no other squares than of 8 I + 7
            names = bridge.schedule_names()
            choices = (bridge.Choice(name, (cells,) * app.dims, form=form, schedule=schedule) for schedule in names)
            choice = next(choice for choice in choices if not bridge.illegal(choice))
            step = bridge.step_of(choice)
            assert decoded(bridge.Step, json.loads(encoded(step))) == step
            assert program_of(choice).ops


@pytest.mark.parametrize("stage", [-1, 1])
def test_a_stage_that_a_step_does_not_have_is_refused(stage):
    choice = bridge.Choice(app="laplace2d", cells=(16, 16))
    plan = bridge.make_plan(bridge.make_layout(choice), 0, bridge.exchange_spec(choice))
    for call in (
        lambda: bridge.exchange_spec(choice, stage),
        lambda: bridge.schedule_options(choice, stage),
        lambda: bridge.make_program("bulk", bridge.step_of(choice), plan, stage=stage),
    ):
        with pytest.raises(UsageError, match="stage"):
            call()


def test_each_thread_has_its_own_error_text():
    texts = {}

    def ask(name):
        with pytest.raises(UsageError) as error:
            bridge.find_app(name)
        texts[name] = str(error.value)

    threads = [threading.Thread(target=ask, args=(f"app{i}",)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(f"'{name}'" in text for name, text in texts.items())
    assert len(texts) == 8


def test_names_that_python_offers_are_those_of_the_core():
    assert bridge.app_names()[:3] == ["advection3d", "laplace2d", "laplace3d"]
    assert bridge.process_grid_rules() == ["cubic", "square", "prime-factors", "slabs"]
    assert bridge.find_app("advection3d").forms[0] == "dense"
    assert bridge.strategy_names()[0] == "reference"
    assert bridge.device_strategy_names()[0] == "ordered/staged"
    assert not set(bridge.device_strategy_names()) & set(bridge.strategy_names())
    names = bridge.strategy_names() + bridge.device_strategy_names()
    assert all(bridge.canonical_strategy(name) == name for name in names)
    with pytest.raises(UsageError, match="colours"):
        capi.names("colours")


@pytest.mark.parametrize("ask", [bridge.find_app, lambda name: bridge.step_of(bridge.Choice(name, (8, 8)))])
def test_unknown_apps_get_the_nearest_names(ask):
    with pytest.raises(UsageError, match="did you mean laplace2d"):
        ask("laplace2")


def test_choices_default_to_wrapping_everywhere():
    assert bridge.make_layout(bridge.Choice(app="laplace2d", cells=(8, 8), ranks=2)).periodic == (True, True)
    mixed = bridge.Choice(app="laplace2d", cells=(8, 8), periodic=(False, True))
    assert bridge.make_layout(mixed).periodic == (False, True)


def test_strategies_say_whether_they_need_shared_fields():
    assert bridge.needs_shared_fields("ordered/shared+p2p")
    assert not bridge.needs_shared_fields("ordered/shared:packed")
    assert not bridge.needs_shared_fields("direct/persistent")
    with pytest.raises(UsageError):
        bridge.needs_shared_fields("ordered/nothing")
