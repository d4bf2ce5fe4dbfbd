"""The border itself: errors come back as a status and a text, structs of older callers are read, handles stay apart."""

from __future__ import annotations

import threading

import pytest

from haloscope import core
from haloscope.core import capi
from haloscope.errors import UsageProblem


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
    assert c[1].hs_abi() == 2


def test_null_arguments_are_errors_not_crashes(c):
    ffi, lib = c
    null = ffi.NULL
    calls = [
        lib.hs_names(b"apps", null, null, null),
        lib.hs_names(null, null, null, null),
        lib.hs_app_find(null, null),
        lib.hs_strategy_canonical(null, null),
        lib.hs_strategy_shared_fields(null, null),
        lib.hs_illegal(null, null),
        lib.hs_process_grid(null, 1, 1, null, null),
        lib.hs_choice_nodes(null, null),
        lib.hs_layout_create(1, null, null, null, null),
        lib.hs_layout_create_of(null, null),
        lib.hs_layout_get(null, null),
        lib.hs_layout_coords(null, 0, null),
        lib.hs_layout_owned(null, 0, null),
        lib.hs_layout_neighbour(null, 0, null, null),
        lib.hs_layout_owner(null, null, null),
        lib.hs_layout_classes(null, null, null),
        lib.hs_spec_of(null, null),
        lib.hs_plan_create(null, 0, null, null),
        lib.hs_plan_get(null, null),
        lib.hs_plan_boxes(null, 0, null, null),
        lib.hs_plan_traffic(null, 0, null),
        lib.hs_plan_peers(null, null, 0, null, null),
        lib.hs_plan_totals(null, null, null),
        lib.hs_schedule_options_of(null, null),
        lib.hs_program_create(b"bulk", null, null, null),
        lib.hs_program_create_exchange(null, 0, null),
        lib.hs_program_create_from(null, null),
        lib.hs_program_get(null, null),
        lib.hs_program_traffic(null, null, 0, null),
        lib.hs_check(null, null, 1, null, null, null),
    ]
    assert set(calls) == {lib.HS_USAGE}
    for free in (lib.hs_layout_free, lib.hs_plan_free, lib.hs_program_free):
        free(null)
    for init in (lib.hs_choice_init, lib.hs_spec_init, lib.hs_schedule_options_init):
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
    ffi, lib = c
    choice, options = ffi.new("hs_choice*"), ffi.new("hs_schedule_options*")
    lib.hs_choice_init(choice)
    device = ffi.new("char[]", b"host")
    choice.cells, choice.device = (8, 8, 8), device
    reason = ffi.new("const char**")
    assert lib.hs_illegal(choice, reason) == lib.HS_OK
    assert "with --device use" in capi.text(reason[0])
    choice.struct_size = ffi.offsetof("hs_choice", "device")
    assert lib.hs_illegal(choice, reason) == lib.HS_OK
    assert capi.text(reason[0]) == ""
    assert lib.hs_schedule_options_of(choice, options) == lib.HS_OK
    assert not options.device and not options.staged and options.pack_first


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
    program = core.make_program("bulk", plan, core.schedule_options(choice))
    assert plan.messages
    del plan
    assert program.ops


def test_names_that_python_offers_are_those_of_the_core():
    assert core.app_names() == ["advection3d", "laplace2d", "laplace3d", "poisson2d"]
    assert core.process_grid_rules() == ["white", "valen", "davis", "lines"]
    assert core.forms("advection3d")[0] == "dense"
    assert core.strategy_names()[0] == "reference"
    assert core.device_strategy_names()[0] == "ordered/staged"
    assert not set(core.device_strategy_names()) & set(core.strategy_names())
    names = core.strategy_names() + core.device_strategy_names()
    assert all(core.canonical_strategy(name) == name for name in names)
    with pytest.raises(UsageProblem, match="kind of names"):
        core.api._names("colours")


@pytest.mark.parametrize("ask", [core.forms, core.reals, core.blocked_forms, core.find_app])
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
