"""What exchanges fetch from memory again: nothing inside the cache, more for merged fields than for serial ones beyond
it.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haloscope.fit import external_predictions
from haloscope.fit.external_table import Measured
from haloscope.model import predict
from toy import changed

NEVER, ALWAYS = 1e18, 1.0  # bytes of a cache that holds all, and of one that holds nothing
REFETCH = "refetch"


def exchange(fields=4, strategy="direct/p2p", cells=(16, 16, 16), **changes) -> Measured:
    """An exchange of 8 blocks of one socket."""
    row = {
        "line": 1,
        "node_grid": (1, 1, 1),
        "socket_grid": (1, 1, 1),
        "core_grid": (2, 2, 2),
        "threads": 1,
        "cells": cells,
        "halo": 1,
        "fields": fields,
        "element_bytes": 8,
        "strategy": strategy,
        "program": "p",
        "packs_all": False,
        "one_buffer": False,
        "cache_bytes": 1e6,
        "machine": "m",
        "median_s": 1.0,
    }
    return Measured(**{**row, **changes})


def predicted(toy, row: Measured, cache_bytes: float | None = None, transport="p2p", **costs) -> predict.Prediction:
    """The prediction with a memory of 10 GB/s, or without one; costs: of the transport."""

    def change(data):
        data["machine"] |= {"nodes": 64, "sockets_per_node": 1, "cores_per_socket": 8}
        data.setdefault("transports", {})[transport] = costs
        if cache_bytes is not None:
            data["memory"] = {"cache_bytes": cache_bytes, "bytes_per_s": 1e10}

    external_predictions.declare([row])
    return external_predictions.predict_row(row, external_predictions.with_kernels(changed(toy, change).data, [row]))


@pytest.mark.parametrize(
    "strategy", ["direct/p2p", "ordered/p2p", "direct:fields=serial/p2p", "ordered:fields=serial/p2p"]
)
def test_a_cache_that_holds_all_costs_what_no_memory_does(toy, strategy):
    row = exchange(strategy=strategy)
    without, held = predicted(toy, row), predicted(toy, row, NEVER, field_returns=1.0, buffer_visits=1.0)
    assert held.time_s == without.time_s
    assert without.terms[REFETCH] == held.terms[REFETCH] == 0


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.sampled_from(["direct/p2p", "ordered:fields=serial/p2p"]), st.floats(1e3, 1e7))
def test_a_smaller_cache_never_makes_an_exchange_faster(toy, fields, strategy, cache):
    row = exchange(fields=fields, strategy=strategy)
    smaller, larger = (predicted(toy, row, bytes, field_returns=0.5, buffer_visits=1.0) for bytes in (cache / 2, cache))
    assert smaller.time_s >= larger.time_s


def test_each_field_costs_as_much_memory_as_the_last_once_none_is_held(toy):
    one, four = (predicted(toy, exchange(fields=n), ALWAYS).terms[REFETCH] for n in (1, 4))
    assert four == pytest.approx(4 * one, rel=1e-6)


def test_fields_one_after_another_come_back_to_lines_that_the_cache_still_holds(toy):
    """One field of 8 blocks touches 0.3 MB of lines and messages, four of them 1.2 MB."""
    returns = {"field_returns": 1.0}
    merged, serial = (
        predicted(toy, exchange(strategy=s), 6e5, packs_all=True, **returns)
        for s in ("direct/p2p", "direct:fields=serial/p2p")
    )
    assert 0 < serial.terms[REFETCH] < 0.7 * merged.terms[REFETCH]
    none = [
        predicted(toy, exchange(strategy=s), 6e5, packs_all=True) for s in ("direct/p2p", "direct:fields=serial/p2p")
    ]
    assert none[0].terms[REFETCH] == pytest.approx(none[1].terms[REFETCH])  # without returns it is all the same


def test_one_buffer_for_all_fields_leaves_more_room_for_them(toy):
    row = exchange(strategy="direct:fields=serial/p2p")
    own, one = (predicted(toy, row, 1e6, one_buffer=flag).terms[REFETCH] for flag in (False, True))
    assert own > one


def test_small_pages_fill_the_cache_sooner(toy):
    row = exchange()

    def with_pages(data):
        data["machine"] |= {"sockets_per_node": 1, "cores_per_socket": 8}
        data["memory"] = {"cache_bytes": 1e6, "bytes_per_s": 1e10, "large_page_bytes": 2**21, "scatter": 2.0}

    external_predictions.declare([row])
    scattered = external_predictions.predict_row(
        row, external_predictions.with_kernels(changed(toy, with_pages).data, [row])
    )
    assert scattered.terms[REFETCH] > predicted(toy, row, 1e6).terms[REFETCH]


def test_what_is_read_from_fields_needs_no_packing_and_costs_its_rows(toy):
    row = exchange(strategy="direct/shared")
    costs = {"from_fields": True, "per_row_s": 1e-8}
    found = predicted(toy, row, transport="shared", **costs)
    assert found.terms["pack"] == found.terms["unpack"] == 0
    rows = 2 * 4 * 16 * 16 + 4 * (8 * 16 + 8)  # x faces of 4 fields; edges and corners that are short in x
    assert found.terms["message"] == pytest.approx(rows * 1e-8, rel=0.05)
    beyond = predicted(toy, row, ALWAYS, transport="shared", **costs)
    assert beyond.time_s > found.time_s


def test_a_bound_by_memory_is_said(toy):
    found = predicted(toy, exchange(), ALWAYS)
    slow = predicted(toy, exchange(), ALWAYS, field_returns=1000.0)
    assert found.time_s < slow.time_s
    assert slow.reason.startswith("memory-bound")
    assert slow.regime == "memory-bound"
