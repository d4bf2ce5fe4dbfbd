"""The border itself: errors come back as a status and a text, structs of older callers are read, handles stay apart."""

from __future__ import annotations

import json
import re
import threading

import pytest

from haloscope import core
from haloscope.core import capi
from haloscope.errors import UsageProblem
from haloscope.simulate import simulate
from toy import TOY


@pytest.fixture(scope="module")
def c():
    """Cffi and the library."""
    return capi.load()


def test_every_declared_function_is_in_the_library(c):
    functions = [name for name in dir(c[1]) if name.startswith("hs_")]
    assert len(functions) > 25
    for name in functions:
        assert callable(getattr(c[1], name))


def test_version_and_interface_number(c):
    assert capi.text(c[1].hs_version()).count(".") == 2
    assert c[1].hs_abi() == 6


def freed_handles(c) -> dict:
    """Return a handle of each kind that plans are made by, freed."""
    ffi, lib = c
    choice, layout, plan, program, step, profile = (
        ffi.new(f"hs_{kind}**") for kind in ("choice", "layout", "plan", "program", "step", "profile")
    )
    json_of_choice = json.dumps({"app": "laplace2d", "cells": [8, 8]}).encode()
    spec = ffi.new("hs_spec*")
    lib.hs_spec_init(spec)
    assert lib.hs_choice_create(json_of_choice, choice) == 0, capi.text(lib.hs_last_error())
    assert lib.hs_step_create_of(choice[0], step) == 0
    assert lib.hs_layout_create_of(choice[0], layout) == 0
    assert lib.hs_plan_create(layout[0], 0, spec, plan) == 0
    assert lib.hs_program_create_exchange(plan[0], 0, program) == 0
    assert lib.hs_profile_create(TOY.read_bytes(), profile) == 0
    found = {
        "choice": choice[0],
        "layout": layout[0],
        "plan": plan[0],
        "program": program[0],
        "step": step[0],
        "profile": profile[0],
    }
    for kind, handle in found.items():
        assert getattr(lib, f"hs_{kind}_free")(handle) == 0
    return found


def test_handles_that_were_freed_or_are_of_another_kind_are_errors_in_every_call(c):
    ffi, lib = c
    freed = freed_handles(c)
    new = ffi.new("hs_choice**")
    assert (
        lib.hs_choice_create(json.dumps({"app": "laplace2d", "cells": [8, 8]}).encode(), new) == 0
    )  # in a place that one had
    calls = 0
    for name in (name for name in dir(lib) if name.startswith("hs_")):
        function, kind_of = ffi.typeof(getattr(lib, name)), {}
        for place, parameter in enumerate(function.args):
            handle = re.fullmatch(r"hs_(\w+) \*", parameter.cname)
            if handle and handle[1] in {*freed, "advice", "simulation"}:
                kind_of[place] = handle[1]
        nothing = [ffi.NULL if parameter.kind == "pointer" else 0 for parameter in function.args]
        for place, kind in kind_of.items():
            for given in (*freed.values(), *([] if kind == "choice" else [new[0]])):
                arguments = list(nothing)
                arguments[place] = ffi.cast(function.args[place], given)
                assert getattr(lib, name)(*arguments) == lib.HS_USAGE, name
                assert "argument '" in capi.text(lib.hs_last_error()) or len(kind_of) > 1
                calls += 1
    assert calls > 150
    for kind, handle in freed.items():
        assert getattr(lib, f"hs_{kind}_free")(handle) == lib.HS_USAGE
        assert f"argument '{kind}' is no handle" in capi.text(lib.hs_last_error())
    assert lib.hs_choice_free(new[0]) == 0
    assert lib.hs_choice_free(ffi.NULL) == 0


def test_null_arguments_are_errors_not_crashes(c):
    ffi, lib = c
    null = ffi.NULL
    calls = [
        lib.hs_list(b"apps", null),
        lib.hs_list(null, null),
        lib.hs_app_describe(null, null, null),
        lib.hs_app_declare(null),
        lib.hs_strategy_describe(null, null),
        lib.hs_choice_create(null, null),
        lib.hs_choice_json(null, null),
        lib.hs_illegal(null, null),
        lib.hs_process_grid(null, 1, 1, null, null),
        lib.hs_choice_nodes(null, null),
        lib.hs_step_create_of(null, null),
        lib.hs_step_create(2, null, null),
        lib.hs_step_json(null, null),
        lib.hs_layout_create(1, null, null, null, null),
        lib.hs_layout_create_of(null, null),
        lib.hs_layout_get(null, null),
        lib.hs_layout_coords(null, 0, null),
        lib.hs_layout_owned(null, 0, null),
        lib.hs_layout_neighbour(null, 0, null, null),
        lib.hs_layout_owner(null, null, null),
        lib.hs_layout_classes(null, null, null),
        lib.hs_spec_of(null, 0, null),
        lib.hs_plan_create(null, 0, null, null),
        lib.hs_plan_get(null, null),
        lib.hs_plan_boxes(null, 0, null, null),
        lib.hs_plan_traffic(null, 0, null),
        lib.hs_plan_peers(null, null, 0, null, null),
        lib.hs_plan_totals(null, null, null),
        lib.hs_schedule_options_of(null, 0, null),
        lib.hs_program_create(b"bulk", null, 0, null, null, null),
        lib.hs_program_create_exchange(null, 0, null),
        lib.hs_program_create_from(null, null),
        lib.hs_program_get(null, null),
        lib.hs_program_traffic(null, null, 0, null),
        lib.hs_check(null, null, 1, null, null, null),
        lib.hs_profile_create(null, null),
        lib.hs_predict(null, null, null, 0, 0, null),
        lib.hs_candidates(null, null, 0, null),
        lib.hs_advice_create(null, null, null, null, 0, null, 0, null),
        lib.hs_advice_json(null, null),
        lib.hs_advice_candidate(null, 0, null),
        lib.hs_best(null, null, null),
        lib.hs_choice_places(null, null, null, null, null),
        lib.hs_place_ranks(1, 1, 1, null, null, null),
        lib.hs_sweep_names(null, null),
        lib.hs_simulation_create(null, null, null, 0.0, 0.0, null),
        lib.hs_simulation_json(null, null),
        lib.hs_simulation_classes(null, null),
        lib.hs_simulation_class(null, 0, null),
        lib.hs_simulation_program(null, 0, 0, null),
        lib.hs_simulation_run(null, null, null, null),
    ]
    assert set(calls) == {lib.HS_USAGE}
    handles = ("choice", "step", "layout", "plan", "program", "profile", "simulation")
    for free in (getattr(lib, f"hs_{kind}_free") for kind in handles):
        free(null)
    structs = ("spec", "schedule_options", "setting", "simulation_options")
    for init in (getattr(lib, f"hs_{struct}_init") for struct in structs):
        init(null)


def test_structs_of_an_older_caller_keep_defaults_for_what_they_lack(c):
    ffi, lib = c
    spec = ffi.new("hs_spec*")
    lib.hs_spec_init(spec)
    assert spec.struct_size == ffi.sizeof("hs_spec")
    spec.order = (0, 0, 0)  # beyond what the older struct had, so not read
    spec.struct_size = ffi.offsetof("hs_spec", "order")
    layout = core.Layout((8, 8), (2, 2))
    totals = ffi.new("hs_totals*")
    assert lib.hs_plan_totals(layout._handle, spec, totals) == lib.HS_OK
    assert totals.messages == 16


def test_choices_and_options_of_a_caller_that_knows_no_devices_are_for_the_cpu(c):
    ffi, _ = c
    on_device = {"cells": [8, 8, 8], "device": "host"}
    assert capi.result_text("hs_illegal", choice_of(on_device)) == ""  # by default messages move what a device has
    assert "with --device use" in capi.result_text("hs_illegal", choice_of(on_device | {"strategy": "ordered/p2p"}))
    plain = choice_of({"cells": [8, 8, 8]})
    assert capi.result_text("hs_illegal", plain) == ""
    options = capi.filled("hs_schedule_options_of", "hs_schedule_options", plain, 0)
    assert not options.device and not options.staged and options.pack_first
    step = capi.handle("hs_step_create_of", "hs_step", plain)
    spec = capi.filled("hs_spec_of", "hs_spec", plain, 0)
    plan = capi.handle("hs_plan_create", "hs_plan", core.Layout((8, 8, 8), (1, 1, 1))._handle, 0, spec)
    options.device = 1
    for known in (True, False):
        options.struct_size = ffi.sizeof(options[0]) if known else ffi.offsetof("hs_schedule_options", "device")
        program = capi.handle("hs_program_create", "hs_program", b"bulk", step, 0, plan, options)
        assert bool(capi.filled("hs_program_get", "hs_program_data", program).device) is known


def choice_of(fields: dict):
    """A choice of advection3d, as the library holds it."""
    return capi.handle("hs_choice_create", "hs_choice", json.dumps({"app": "advection3d"} | fields).encode())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no JSON"),
        ('{"app": "laplace2d", "cells": [8, 8], "depht": 2}', "did you mean depth"),
        ('{"app": "laplace2d", "cells": [8, 8], "ranks": "four"}', "ranks"),
        ('{"app": "laplace2d", "cells": [8, 8], "strategy": "orderd/p2p"}', "did you mean ordered/p2p"),
    ],
)
def test_choices_that_cannot_be_are_refused_with_the_nearest_names(c, text, said):
    ffi, lib = c
    assert lib.hs_choice_create(text.encode(), ffi.new("hs_choice**")) == lib.HS_USAGE
    assert said in capi.text(lib.hs_last_error())


def test_a_step_survives_the_way_to_json_and_back():
    for name in core.app_names():
        app = core.find_app(name)
        for form in app.forms:
            step = core.step_of(core.Choice(name, (24,) * app.dims, form=form))
            text = capi.result_text("hs_step_json", step._handle)
            again = capi.handle("hs_step_create", "hs_step", app.dims, text.encode())
            assert capi.result_text("hs_step_json", again) == text


@pytest.mark.parametrize("stage", [-1, 1])
def test_a_stage_that_a_step_does_not_have_is_refused(stage):
    choice = core.Choice(app="laplace2d", cells=(16, 16))
    plan = core.make_plan(core.make_layout(choice), 0, core.exchange_spec(choice))
    for call in (
        lambda: core.exchange_spec(choice, stage),
        lambda: core.schedule_options(choice, stage),
        lambda: core.make_program("bulk", core.step_of(choice), plan, stage=stage),
    ):
        with pytest.raises(UsageProblem, match="stage"):
            call()


@pytest.mark.parametrize("size", [0, 4, 10_000])
def test_structs_of_unknown_size_are_refused(c, size):
    ffi, lib = c
    spec = ffi.new("hs_spec*")
    lib.hs_spec_init(spec)
    spec.struct_size = size
    layout = core.Layout((8, 8), (2, 2))
    assert lib.hs_plan_totals(layout._handle, spec, ffi.new("hs_totals*")) == lib.HS_USAGE
    assert "struct_size" in capi.text(lib.hs_last_error())


def test_numbers_outside_an_enumeration_are_refused(c):
    ffi, lib = c
    layout = core.Layout((8, 8), (2, 2))
    for field, value in (("pattern", 2), ("merge", -1)):
        spec = ffi.new("hs_spec*")
        lib.hs_spec_init(spec)
        setattr(spec, field, value)
        assert lib.hs_plan_totals(layout._handle, spec, ffi.new("hs_totals*")) == lib.HS_USAGE


def test_each_thread_has_its_own_error_text():
    texts = {}

    def ask(name):
        with pytest.raises(UsageProblem) as error:
            core.find_app(name)
        texts[name] = str(error.value)

    threads = [threading.Thread(target=ask, args=(f"app{i}",)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(f"'{name}'" in text for name, text in texts.items())
    assert len(texts) == 8


def test_plans_outlive_their_layout_and_programs_their_plan():
    choice = core.Choice(app="laplace2d", cells=(16, 16), ranks=4)
    plan = core.make_plan(core.make_layout(choice), 0, core.exchange_spec(choice))
    program = core.make_program("bulk", core.step_of(choice), plan, core.schedule_options(choice))
    assert plan.messages
    del plan
    assert program.ops


def test_names_that_python_offers_are_those_of_the_core():
    assert core.app_names() == ["advection3d", "laplace2d", "laplace3d", "poisson2d", "cg3d", "hydro3d"]
    assert core.process_grid_rules() == ["cubic", "square", "prime-factors", "slabs"]
    assert core.find_app("advection3d").forms[0] == "dense"
    assert core.strategy_names()[0] == "reference"
    assert core.device_strategy_names()[0] == "ordered/staged"
    assert not set(core.device_strategy_names()) & set(core.strategy_names())
    names = core.strategy_names() + core.device_strategy_names()
    assert all(core.canonical_strategy(name) == name for name in names)
    with pytest.raises(UsageProblem, match="colours"):
        capi.list_text("colours")


@pytest.mark.parametrize("ask", [core.find_app, lambda name: core.step_of(core.Choice(name, (8, 8)))])
def test_unknown_apps_get_the_nearest_names(ask):
    with pytest.raises(UsageProblem, match="did you mean laplace2d"):
        ask("laplace2")


def test_choices_default_to_wrapping_everywhere():
    assert core.make_layout(core.Choice(app="laplace2d", cells=(8, 8), ranks=2)).periodic == (True, True)
    assert core.make_layout(core.Choice(app="laplace2d", cells=(8, 8), periodic=(False, True))).periodic == (
        False,
        True,
    )


def test_strategies_say_whether_they_need_shared_fields():
    assert core.needs_shared_fields("ordered/shared+p2p")
    assert not core.needs_shared_fields("ordered/shared:packed")
    assert not core.needs_shared_fields("direct/persistent")
    with pytest.raises(UsageProblem):
        core.needs_shared_fields("ordered/nothing")


@pytest.mark.parametrize("array", ["ops", "after", "sweeps", "set_messages", "set_starts"])
def test_a_program_without_an_array_that_its_counts_promise_is_refused(c, array, toy):
    ffi, lib = c
    cast = simulate.Cast(core.Choice("laplace2d", cells=(64, 64), ranks=4, schedule="split"), toy)
    program = capi.handle("hs_simulation_program", "hs_program", cast.handle, 0, 0)
    data, made = capi.filled("hs_program_get", "hs_program_data", program), ffi.new("hs_program**")
    assert lib.hs_program_create_from(data, made) == lib.HS_OK
    lib.hs_program_free(made[0])
    setattr(data, array, ffi.NULL)
    assert lib.hs_program_create_from(data, made) == lib.HS_USAGE
    assert f"'{array}' is NULL" in ffi.string(lib.hs_last_error()).decode()
