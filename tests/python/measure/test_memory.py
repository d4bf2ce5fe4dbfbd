"""What fields take of a machine's memory, found before anything starts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haloscope.bridge.choice import Choice
from haloscope.measure import campaign, memory
from haloscope.measure.request import Request
from haloscope.measure.space import Space


def request(cells=(64, 48), verify=0, **more) -> Request:
    return Request.of(Choice("laplace2d", cells, **{"ranks": 2, "process_grid": "2x1"} | more), verify=verify)


def test_fields_are_all_points_with_halos_of_all_slots():
    assert memory.field_bytes(request().choice) == (64 + 2 * 2) * (48 + 2) * 2 * 8
    assert memory.field_bytes(request(depth=3, real="f32").choice) == (64 + 2 * 6) * (48 + 6) * 2 * 4


def test_what_is_verified_needs_the_fields_twice():
    assert memory.needed_bytes(request(verify=5)) == 2 * memory.needed_bytes(request())


ON_CARD = {"device": "cuda", "strategy": "ordered/staged"}


@pytest.mark.parametrize(
    ("more", "unverified"),
    [
        (ON_CARD, 0),
        (ON_CARD | {"device": "host"}, 1),
        ({"device": "cuda", "schedule": "box", "strategy": "ordered/p2p"}, 1),
        ({"device": "host", "schedule": "box", "strategy": "ordered/p2p"}, 2),
    ],
    ids=["card", "imitated", "card-in-walls", "imitated-in-walls"],
)
def test_fields_on_a_device_take_memory_of_the_host_where_they_lie_in_it(more, unverified):
    fields = memory.field_bytes(request().choice)
    assert memory.needed_bytes(request(**more)) == unverified * fields
    assert memory.needed_bytes(request(verify=5, **more)) == (unverified + 1) * fields


def test_a_grid_that_only_a_card_can_hold_is_refused_only_with_what_verifies_it():
    large = request((10**6, 10**6), **ON_CARD)
    assert memory.refusal(large, 10**9) == ""
    verified = request((10**6, 10**6), verify=5, **ON_CARD)
    assert memory.refusal(verified, 10**9).endswith("or fewer, or --verify 0, which needs none")


def test_the_ranks_hold_at_least_that(measure):
    [record] = measure("laplace2d --cells 64x48 --process-grid 2x1 --steps 1 --launches 1")
    assert record["counts"]["field_bytes"] >= memory.field_bytes(request().choice)


@given(st.integers(1000, 10**6), st.integers(1000, 10**6), st.integers(10**8, 10**12), st.booleans())
def test_what_is_said_to_fit_does(x, y, free, verified):
    wanted = request((x, y), verify=3 * verified)
    refusal = memory.refusal(wanted, free)
    assert bool(refusal) == (memory.needed_bytes(wanted) > free)
    if refusal and (found := re.search(r"--cells (\d+)x(\d+)", refusal)):
        smaller = request((max(2, int(found[1])), max(2, int(found[2]))), verify=3 * verified)
        assert memory.refusal(smaller, int(free * 1.3)) == ""


def test_what_does_not_fit_is_set_aside_and_the_rest_stays(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 10**6)
    space = memory.set_aside(Space([request(), request((4096, 4096))]))
    assert [r.choice.cells for r in space.requests] == [(64, 48)]
    [(refused, reason)] = space.refused
    assert refused.choice.cells == (4096, 4096) and "are free here; use --cells" in reason


def test_a_grid_too_large_for_this_machine_is_refused_before_anything_starts(haloscope, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 10**6)
    result = haloscope("run", "laplace2d", "--cells", "4096", "--output", "r.jsonl")
    assert result.code == 2 and re.search(r"take \d+ MiB with what verifies them, and 0\.954 MiB are free", result.err)


@pytest.mark.parametrize(("measured", "code"), [(True, 0), (False, 1)])
def test_what_failed_and_was_measured_by_a_resumed_run_has_not_failed(measured, code):
    failed = {"kind": "failed", "id": "a", "launch": {"id": "launch-1"}}
    right = {
        "kind": "measurement",
        "id": "a" if measured else "b",
        "launch": {"id": "launch-1"},
        "verification": {"status": "passed"},
    }
    assert campaign.exit_code([failed, right]) == code
