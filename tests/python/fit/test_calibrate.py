"""Calibration: fits find the costs that records were made with, leave out what records do not tell, and runs resume."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guest_cases import guest_cases
from haloscope import bridge, records
from haloscope.errors import UsageError
from haloscope.fit import calibrate, laws, points, states
from haloscope.measure.request import Request
from haloscope.model import profile, segments

LAUNCHES = 4
NOISE = 0.03


class Maker:
    """Makes records of a machine whose costs are known, with noise that differs by launch and by sample."""

    def __init__(self, seed: int = 0, noise: float = NOISE, cpu: str = "made up"):
        self.random = np.random.default_rng(seed)
        self.noise, self.cpu = noise, cpu
        self.made: list[dict] = []

    def samples(self, seconds: float, count: int = 3) -> list[float]:
        """Samples around a time."""
        return [float(s) for s in seconds * np.exp(self.random.normal(0, self.noise, count))]

    def environment(self, ranks: int) -> dict:
        """What records say of the machine."""
        return {
            "oversubscribed": False,
            "compiler": "GNU",
            "mpi_library": "MPI 1",
            "cpu": self.cpu,
            "cores": 4,
            "sockets": 2,
            "hosts": ["here"] * ranks,
        }

    def add(self, kind: str, name: str, launch: int, request: dict, **rest) -> None:
        """Add one record."""
        record = {
            "schema": "haloscope.record",
            "schema_version": records.SCHEMA_VERSION,
            "kind": kind,
            "id": name,
            "launch": {"id": f"launch-{launch}"},
            "request": request,
            "verification": {"status": "passed"},
            "environment": self.environment(request["ranks"]),
        }
        self.made.append(record | rest)
        assert records.fault_of(self.made[-1]) == ""

    def point(self, part: str, name: str, launch: int, point: dict, **request) -> None:
        """Add one calibration record of one point."""
        whole = {"part": part, "app": "laplace2d", "ranks": 2, "threads": 1, "depth": 1} | request
        self.add("calibration", name, launch, whole, points=[point])

    def network(self, cost, shared: float = 0.5, duplex: float = 1.25, gap: float | None = None) -> Maker:
        """Messages that cost `cost(bytes)` and occupy their way for that, or for the gap in place of the cost of
        none.
        """

        def batch(size: int, count: int) -> float:
            occupied = cost(size) if gap is None else cost(size) - cost(0) + gap
            others = shared * (count - 1) * occupied
            return cost(size) + others + (duplex - 1) * (occupied + others)

        for launch in range(LAUNCHES):
            request = {"transport": "p2p", "ranks": 2, "pairs": 1, "nodes": 0}
            sizes = []
            for size in (1, *(2**k for k in range(6, 23))):
                one = cost(size)
                sizes.append(
                    {
                        "bytes": size,
                        "window": 4,
                        "latency_s": self.samples(one),
                        "exchange_s": self.samples(batch(size, 1)),
                        "batch_s": self.samples(4 * one),
                        "both_batch_s": self.samples(4 * duplex * one),
                    }
                )
            self.add("microbench", "m", launch, request, sizes=sizes)
            for size, count in ((64, 2), (64, 8), (65536, 2), (65536, 8)):
                self.exchange("p2p", launch, batch(size, count), messages=count, size=size)
        return self

    def exchange(self, transport: str, launch: int, seconds: float, messages: int, size: int, run: int = 0) -> None:
        """An exchange of equal messages, of one contiguous run each or of runs of `run` bytes."""
        total = messages * size
        point = {
            "messages": messages,
            "bytes": total,
            "rows": total // run if run else messages,
            "rounds": 1,
            "gapped_bytes": total if run else 0,
            "exchange_s": self.samples(seconds),
        }
        self.point(
            "exchange",
            f"e,{transport},{messages},{size},{run}",
            launch,
            point,
            cells=[size, messages],
            strategy=f"ordered/{transport}",
            periodic=[run > 0, True],
            depth=1,
            fields=1,
        )

    def kernel(self, name: str, cost, ranks: int = 1) -> Maker:
        """Sweeps of blocks that cost `cost(cells)`."""
        app, form, real = name.split("/")
        for launch in range(LAUNCHES):
            for side in (16, 32, 48, 64, 96, 128, 256, 512, 768, 896, 1024, 2048):
                point = {"cells": side * side, "swept_cells": side * side, "sweep_s": self.samples(cost(side * side))}
                self.point(
                    "kernel",
                    f"k,{name},{side},{ranks}",
                    launch,
                    point,
                    app=app,
                    form=form,
                    real=real,
                    ranks=ranks,
                    cells=[side, side],
                )
        return self

    def pack(self, near: float, far: float) -> Maker:
        """Packing of rows of 8 and 32 bytes at fixed seconds per row, in blocks below and above 1 MB."""
        for launch in range(LAUNCHES):
            for block, row_s in ((1e5, near), (4e5, near), (4e6, far), (1.6e7, far)):
                for row_bytes, rows in ((8, 256), (8, 2048), (32, 512)):
                    point = {
                        "dimension": 0,
                        "bytes": rows * row_bytes,
                        "row_bytes": row_bytes,
                        "block_bytes": block,
                        "copy_bytes": 2 * rows * row_bytes,
                        "copy_s": self.samples(4 * rows * row_s),
                        "pack_s": self.samples(1.5 * rows * row_s),
                        "unpack_s": self.samples(0.5 * rows * row_s),
                    }
                    self.point("pack", f"p,{block},{row_bytes},{rows}", launch, point)
        return self


def protocols(size: float) -> float:
    """The cost of messages that change from one way to another at 16 kB."""
    return 5e-7 + 4e-10 * size if size < 16384 else 6e-6 + 1e-10 * size


def cached(cells: float) -> float:
    """The cost of sweeps that leave the cache at 2^18 cells."""
    return 1e-7 + 4e-10 * cells if cells < 2**18 else 8e-10 * cells


# ---- fits ------------------------------------------------------------------------------------------------------------


@pytest.mark.ids("DC6", "DC7")
def test_message_costs_and_their_protocol_switch_are_found_again():
    made = calibrate.fit_profile(Maker().network(protocols).made)
    low, high = made.data["network"]["classes"]["socket"]["segments"]
    assert low["to_bytes"] == high["from_bytes"] == 16384 and high["to_bytes"] is None
    assert low["latency_s"] == pytest.approx(5e-7, rel=0.05) and low["per_byte_s"] == pytest.approx(4e-10, rel=0.1)
    assert high["latency_s"] == pytest.approx(6e-6, rel=0.15) and high["per_byte_s"] == pytest.approx(1e-10, rel=0.05)
    contention = made.data["network"]["classes"]["socket"]["contention"]
    assert contention["shared"] == pytest.approx(0.5, rel=0.1) and contention["duplex"] == pytest.approx(1.25, rel=0.05)


@pytest.mark.ids("DC7")
def test_the_part_of_a_latency_that_messages_under_way_together_share_is_found():
    """A network of 1 ms: bytes take turns, latencies overlap, and each further message costs 30 us."""
    made = calibrate.fit_profile(Maker().network(lambda size: 1e-3 + 8e-8 * size, 1.0, 1.1, gap=3e-5).made)
    contention = made.data["network"]["classes"]["socket"]["contention"]
    assert contention["gap_s"] == pytest.approx(3e-5, rel=0.3)
    assert contention["shared"] == pytest.approx(1.0, rel=0.05) and contention["duplex"] == pytest.approx(1.1, rel=0.05)
    assert np.median(np.abs(made.contention.errors)) < NOISE


@pytest.mark.ids("DC5")
def test_sweeps_are_of_the_ranks_that_each_host_has_with_all_hosts_at_work():
    """Two hosts that slow each other down, as two namespaces of one machine do: in steps both sweep."""
    name = "laplace2d/star/f64"
    maker = Maker().kernel(name, cached, ranks=1).kernel(name, lambda cells: 1.5 * cached(cells), ranks=2)
    for record in maker.made:
        record["environment"]["hosts"] = ["a", "b"][: record["request"]["ranks"]]
    table = profile.Profile(calibrate.fit_profile(maker.made).data).kernel(name)
    assert set(table) == {1}
    assert laws.evaluate(table[1], 1024) == pytest.approx(1.5 * cached(1024), rel=0.1)


def test_a_launch_with_few_points_makes_few_samples_alone():
    counts = laws.resampled(["few"] * 2 + ["many"] * 30, resamples=2000)
    alone = (counts[:, 2:].sum(axis=1) == 0).mean()
    assert alone == pytest.approx((2 / 32) ** 2, abs=0.01)


@given(st.sampled_from((2, 4, 8, 16)), st.floats(0.2, 3), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_what_a_row_of_a_kernel_costs_is_found(lanes, of_a_vector, seed):
    """Cubes whose rows cost some vectors more than their begun ones."""
    noise = np.random.default_rng(seed).normal(0, 0.003, 100)
    rows = [
        laws.Row(
            f"launch-{launch}",
            side**3,
            (1e-7 + side**2 * 3e-9 * (of_a_vector + np.ceil(side / lanes))) * float(np.exp(noise[10 * launch + k])),
            side**2,
        )
        for launch in range(3)
        for k, side in enumerate((8, 11, 14, 17, 21, 24, 30, 39))
    ]
    found = laws.fit_row_cost(rows)
    assert found.lanes == lanes
    assert found.cells == pytest.approx(of_a_vector * lanes, rel=0.15, abs=0.1 * lanes)


def test_rows_that_cost_nothing_of_their_own_are_not_mentioned():
    made = calibrate.fit_profile(Maker().kernel("laplace2d/star/f64", cached).made)
    assert "rows" not in made.data


def test_sweeps_that_store_around_the_cache_have_costs_of_their_own():
    """They begin at a known size, between those that were measured: 512^2 and 1024^2 cells of 8 bytes."""
    name, limit = "laplace2d/star/f64", bridge.stream_from_bytes()
    made = calibrate.fit_profile(
        Maker().kernel(name, lambda cells: (4e-10 if 8 * cells < limit else 9e-10) * cells).made
    )
    found = profile.Profile(made.data)
    (inside,) = found.kernel(name)[1]
    (outside,) = segments.by_count(made.data["streaming"][name], "cells")[1]
    assert inside.slope == pytest.approx(4e-10, rel=0.05)
    assert outside.slope == pytest.approx(9e-10, rel=0.05)


@pytest.mark.ids("DC5")
def test_kernel_costs_are_found_for_each_number_of_active_cores():
    name = "laplace2d/star/f64"
    maker = Maker().kernel(name, cached).kernel(name, lambda cells: 1.5 * cached(cells), ranks=2)
    table = profile.Profile(calibrate.fit_profile(maker.made).data).kernel(name)
    assert sorted(table) == [1, 2]
    for active, factor in ((1, 1.0), (2, 1.5)):
        for cells in (300, 10000, 120000, 5e5, 4e6):  # 2^16 and 2^18 are measured: 2^17 may be on either side
            assert laws.evaluate(table[active], cells) == pytest.approx(factor * cached(cells), rel=0.06), (
                active,
                cells,
            )


def test_where_between_two_amounts_sweeps_leave_the_cache_is_taken_to_be_in_the_middle():
    name = "laplace2d/star/f64"
    [near, far] = calibrate.fit_profile(Maker().kernel(name, cached).made).data["kernels"][name]["1"]
    assert near["to_cells"] == far["from_cells"] == pytest.approx(2**17)
    late = calibrate.fit_profile(
        Maker().kernel(name, lambda cells: 1e-7 + max(4e-10 * cells, 3e-9 * cells - 5e-4)).made
    )
    [near, far] = late.data["kernels"][name]["1"]  # the lines meet beyond the middle
    ends = [law["fixed_s"] + law["per_cell_s"] * far["from_cells"] for law in (near, far)]
    assert ends[0] <= 1.05 * ends[1]


def test_rows_decide_what_strided_packing_costs_and_larger_blocks_cost_more():
    data = calibrate.fit_profile(Maker().pack(near=1e-9, far=3e-9).made).data
    assert 4e5 < data["beyond_cache"]["from_block_bytes"] < 4e6
    for place, row_s in ((data, 1e-9), (data["beyond_cache"], 3e-9)):
        [pack], [copy] = place["pack"]["strided"]["1"], place["copy"]["strided"]["1"]
        assert pack["per_row_s"] == pytest.approx(row_s, rel=0.05)  # the mean of packing and unpacking
        assert copy["per_row_s"] == pytest.approx(2 * row_s, rel=0.05)


@pytest.mark.parametrize(
    ("fixed", "per_row", "per_byte"), [(1e-7, 2e-9, 3e-11), (0, 1e-8, 0), (0, 0, 2e-10), (1e-6, 0, 0)]
)
def test_what_copies_cost_for_themselves_per_row_and_per_byte_is_found(fixed, per_row, per_byte):
    rows = [
        laws.Row(f"launch-{launch}", size, (fixed + per_row * number + per_byte * size) * factor, number)
        for launch, factor in enumerate((0.99, 1.0, 1.01))
        for number in (8, 100, 1000)
        for size in (100, 1e4, 1e5)
    ]
    law = laws.fit_rows("copies", rows)
    [segment] = segments.from_json(segments.to_json(law.segments))
    for row in rows:
        found = segment.fixed + segment.per_row * row.rows + segment.slope * row.amount
        assert found == pytest.approx(fixed + per_row * row.rows + per_byte * row.amount, rel=0.02)
    assert law.errors().max() < 0.03 and set(law.segments[0].interval) == {
        name for name, value in (("fixed", fixed), ("per_row", per_row), ("slope", per_byte)) if value
    }


def test_rows_of_one_length_are_paid_by_their_number():
    law = laws.fit_rows(
        "copies", [laws.Row(f"launch-{n % 3}", 8.0 * n, 4e-9 * n, n) for n in (10, 11, 12, 100, 200, 300)]
    )
    assert law.segments[0].per_row == pytest.approx(4e-9) and law.segments[0].slope == 0


def test_a_fixed_time_that_is_known_is_not_fitted_and_bytes_alone_may_be_asked_for():
    rows = [
        laws.Row(f"launch-{k}", size, 1e-6 + 2e-10 * size, size / 16384) for k in range(3) for size in (32768, 65536)
    ]
    [segment] = laws.fit_rows("copies", rows, ("slope",), 1e-6).segments
    assert segment.slope == pytest.approx(2e-10) and (segment.fixed, segment.per_row) == (1e-6, 0)


def test_amounts_that_are_about_equal_are_not_taken_for_a_fixed_time():
    """It would be ten times too much for a tenth of the amount."""
    random = np.random.default_rng(3)
    rows = [
        laws.Row(f"launch-{k}", size, float(3e-9 * size * np.exp(random.normal(0, 0.3))), size / 8)
        for k in range(5)
        for size in (1e5, 1.3e5)
    ]
    [segment] = laws.fit_rows("copies", rows).segments
    assert segment.fixed < 1e-4
    assert segment.per_row * 125 + segment.slope * 1000 + segment.fixed == pytest.approx(3e-6, rel=0.5)


def test_a_few_steps_that_were_disturbed_do_not_hide_a_cost():
    sizes = np.array([1e3, 1e4, 3e4, 1e5] * 5)
    seconds = 1e-6 + 1e-10 * sizes + 2e-10 * sizes
    seconds[3:8] *= 4
    launches = [f"launch-{k}" for k in range(5) for _ in range(4)]
    found = laws.fit_terms("x", {"slope": sizes}, 1e-6 + 1e-10 * sizes, seconds, launches)
    assert found.values["slope"] == pytest.approx(2e-10, rel=0.1)


def test_short_rows_of_which_no_two_lie_in_one_page_have_a_cost_of_their_own():
    made = Maker()
    for launch in range(LAUNCHES):
        for pitch, row_s in ((1024, 1e-9), (8192, 3e-9)):
            for rows in (256, 1024, 4096):
                point = {
                    "dimension": 0,
                    "bytes": 8 * rows,
                    "row_bytes": 8,
                    "pitch_bytes": pitch,
                    "block_bytes": 1e5,
                    "copy_bytes": 16 * rows,
                    "copy_s": made.samples(2 * rows * row_s),
                }
                made.point("pack", f"p,{pitch},{rows}", launch, point)
    found = calibrate.fit_profile(made.made).data["copy"]
    assert found["strided"]["1"][0]["per_row_s"] == pytest.approx(1e-9, rel=0.05)
    assert found["scattered"]["1"][0]["per_row_s"] == pytest.approx(3e-9, rel=0.05)


def test_blocks_that_cost_the_same_are_fitted_together():
    data = calibrate.fit_profile(Maker().pack(near=1e-9, far=1e-9).made).data
    assert "beyond_cache" not in data and len(data["pack"]["strided"]["1"]) == 1


def test_too_few_blocks_of_one_kind_are_fitted_with_the_others():
    maker = Maker().pack(near=1e-9, far=3e-9)
    few = [r for r in maker.made if r["points"][0]["block_bytes"] < 1e6 or r["id"] == "p,4000000.0,8,256"][:-3]
    data = calibrate.fit_profile(few).data
    assert "beyond_cache" not in data and data["copy"]["strided"]


def test_a_fixed_time_that_no_point_shows_is_left_out_and_named():
    rows = [laws.Row(f"l{k}", n, 1e-9 * n * (1 + 0.01 * (-1) ** k)) for k in range(4) for n in (1e5, 2e5, 4e5, 8e5)]
    law = laws.fit_law("pack/lines/1", rows, most=1)
    assert law.dropped == ((0, "fixed"),)
    assert law.segments[0].fixed == 0 and "fixed" not in law.segments[0].interval


def test_of_two_unsure_parameters_the_one_that_explains_more_is_kept():
    rows = [laws.Row("l1", 1, 4e-7), laws.Row("l1", 64, 4.3e-7)]
    law = laws.fit_law("x", rows)
    assert law.dropped == ((0, "slope"),) and law.segments[0].fixed == pytest.approx(4.15e-7, rel=0.02)


def test_one_amount_says_nothing_of_two_parameters():
    law = laws.fit_law("x", [laws.Row(f"l{k}", 1000, 1e-6 * (1 + 0.01 * k)) for k in range(4)])
    assert law.dropped == ((0, "fixed"),) and law.segments[0].slope == pytest.approx(1.015e-9, rel=0.01)


@settings(max_examples=25, deadline=None)
@given(st.floats(1e-7, 1e-4), st.floats(1e-11, 1e-8), st.integers(0, 10**6))
def test_fits_never_go_below_zero_and_stay_near_the_points(fixed, slope, seed):
    random = np.random.default_rng(seed)
    rows = [
        laws.Row(f"l{k}", n, float((fixed + slope * n) * np.exp(random.normal(0, 0.05))))
        for k in range(3)
        for n in (8, 256, 4096, 65536, 2**20, 2**23)
    ]
    law = laws.fit_law("x", rows)
    assert all(s.fixed >= 0 and s.slope >= 0 for s in law.segments)
    assert np.median(law.errors()) < 0.1


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    held = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        rows = [
            laws.Row(f"l{k}", n, float((2e-6 + 1e-9 * n) * np.exp(random.normal(0, 0.05))))
            for k in range(5)
            for n in (64, 512, 2048, 8192, 32768)
        ]
        [segment] = laws.fit_law("x", rows, most=1).segments
        held += [segment.interval["fixed"][0] <= 2e-6 <= segment.interval["fixed"][1]]
        held += [segment.interval["slope"][0] <= 1e-9 <= segment.interval["slope"][1]]
    assert np.mean(held) > 0.85


def test_the_profile_satisfies_its_schema_and_survives_a_file(tmp_path):
    maker = Maker().network(protocols).pack(1e-9, 3e-9).kernel("laplace2d/star/f64", cached)
    data = calibrate.fit_profile(maker.made, "made", "here").data
    profile.save(data, tmp_path / "p.json")
    back = profile.load(tmp_path / "p.json")
    assert back.data == json.loads(json.dumps(data)) and back.name == "made"
    assert back.machine == {"host": "here", "cpu": "made up", "nodes": 1, "sockets_per_node": 2, "cores_per_socket": 2}
    assert any("section 'reductions' is left out" in note for note in data["notes"])


def test_records_of_two_machines_are_refused():
    both = Maker().network(protocols).made + Maker(cpu="another").network(protocols).made
    with pytest.raises(UsageError, match="2 machines"):
        calibrate.fit_profile(both)
    with pytest.raises(UsageError, match="no measured point"):
        calibrate.fit_profile([])


def test_failed_checks_do_not_count():
    maker = Maker().network(protocols)
    for record in maker.made:
        record["verification"]["status"] = "failed"
    with pytest.raises(UsageError, match="no measured point"):
        calibrate.fit_profile(maker.made)


# ---- states of the machine -------------------------------------------------------------------------------------------


def beside(records: list[dict], bandwidth_s: float) -> list[dict]:
    """The same records, beside which a large message took so long."""
    return [
        r | {"pace": {"ranks": r["request"]["ranks"], "bandwidth_s": bandwidth_s, "error": {"bandwidth_s": 0.01}}}
        for r in records
    ]


def in_launch(records: list[dict], more: int) -> list[dict]:
    """The same records of other launches."""
    return [r | {"launch": {"id": f"{r['launch']['id']}-{more}"}} for r in records]


def test_a_machine_that_had_two_states_has_costs_for_both_and_says_so():
    slow = beside(Maker(seed=1).network(lambda size: 1e-6 + 6e-10 * size).made, 4e-5)
    quick = beside(Maker(seed=2).network(lambda size: 5e-7 + 2e-10 * size).made, 1.4e-5)
    data = calibrate.fit_profile([*in_launch(slow, 1), *in_launch(slow, 2), *quick]).data
    [other] = data["states"]
    for place, latency, slope in ((data, 1e-6, 6e-10), (other, 5e-7, 2e-10)):
        [segment] = place["network"]["classes"]["socket"]["segments"]
        assert segment["latency_s"] == pytest.approx(latency, rel=0.05)
        assert segment["per_byte_s"] == pytest.approx(slope, rel=0.05)
    assert not {"name", "machine", "schema", "notes"} & set(other)
    assert any(
        "another state for 33% of the records" in note and "large messages -65 %" in note for note in data["notes"]
    )


@pytest.mark.parametrize(
    "times",
    [[2e-5] * 30, np.geomspace(1e-5, 4e-5, 30), [2e-5] * 15 + [2.6e-5] * 15, [2e-5] * 29 + [8e-5]],
    ids=["steady", "wandering", "nearly the same", "once"],
)
def test_a_machine_without_two_clear_states_has_one(times):
    found = [{"pace": {"ranks": 2, "bandwidth_s": float(time)}} for time in times]
    assert states.split(found) == [found]


@settings(deadline=None)
@given(st.lists(st.floats(1e-6, 1e-3), max_size=40))
def test_every_record_is_of_a_state(times):
    found = [{"pace": {"ranks": 2, "bandwidth_s": time}, "id": k} for k, time in enumerate(times)]
    parted = states.split(found)
    assert sorted(r["id"] for state in parted for r in state) == list(range(len(found)))
    assert (len(parted) <= 2 and all(map(len, parted))) or not found


def test_a_state_in_which_something_was_not_measured_is_not_told_apart():
    maker = Maker().pack(1e-9, 3e-9)
    found = [*beside(maker.made, 1e-5), *beside(Maker().network(protocols).made, 4e-5)]
    data = calibrate.fit_profile(found).data
    assert "states" not in data and {"network", "pack"} <= set(data)


def test_records_beside_which_no_message_was_timed_count_in_every_state():
    alone = Maker().kernel("laplace2d/star/f64", cached).made
    found = states.split(
        [*alone, *beside(Maker().network(protocols).made, 1e-5), *beside(Maker().network(protocols).made, 4e-5)]
    )
    assert len(found) == 2 and all(record in state for state in found for record in alone)


# ---- what is measured ------------------------------------------------------------------------------------------------


def test_one_rank_has_nothing_to_say_of_messages():
    for section in points.NEEDS_PEERS:
        assert list(points.points(section, 1, 4, points.QUICK)) == []
    assert points.points("pack", 1, 4, points.QUICK) and points.points("kernels", 1, 4, points.QUICK)


def test_all_hosts_sweep_at_once_each_with_as_many_ranks():
    assert {p.ranks for p in points.points("kernels", 8, 8, points.QUICK, hosts=2)} == {2, 4, 8}
    assert {p.ranks for p in points.points("kernels", 8, 8, points.QUICK)} == {1, 2, 4, 8}
    packing = points.points("pack", 8, 8, points.QUICK, hosts=2)
    assert {(p.threads, p.ranks) for p in packing} == {(1, 8), (2, 4), (4, 2)}  # no rank has cores of two hosts


def test_every_point_has_a_name_of_its_own_and_is_legal():
    planned = points.all_points(points.SECTIONS, 4, 4, points.FULL)
    names = [(p.id, p.ranks) for p in planned]
    assert len(set(names)) == len(names)
    for p in planned:
        if isinstance(p, points.Point):
            assert p.line()["id"] == p.id and bridge.illegal(p.choice) == "", p.line()


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [("laplace2d",), ("advection3d", "laplace3d"), *guest_cases("CALIBRATED").values()])
def test_every_step_that_is_measured_has_its_kernels_measured(asked):
    """Else the time beyond the kernels, which is what steps are measured for, is not known."""
    planned = points.all_points(points.SECTIONS, 2, 2, dataclasses.replace(points.QUICK, apps=asked))
    swept = {p.choice.app for p in planned if isinstance(p, points.Point) and p.part == "kernel"}
    stepped = {p.choice.app for p in planned if isinstance(p, Request)}
    assert set(asked) <= swept
    assert stepped
    assert stepped <= swept


def test_a_short_calibration_writes_records_and_a_profile_that_predicts(haloscope, monkeypatch):
    few = dataclasses.replace(
        points.QUICK,
        packed=(((64, 64), 1), ((64, 32), 1), ((32, 96), 1), ((128, 32), 4)),
        message_bytes=(1, 64, 4096, 65536),
    )
    monkeypatch.setattr(points, "QUICK", few)
    result = haloscope("calibrate", "-o", "m.json", "--quick", "--sections", "network,pack,reductions", "--launches", 1)
    assert result.code == 0, result.err
    found = profile.load("m.json")
    assert all(laws.evaluate(found.network_class("socket")["segments"], size) > 0 for size in (1, 4096, 65536))
    assert {1, 2} >= set(found.packing("strided")) >= {1}
    assert {call: rows[0]["ranks"] for call, rows in found.section("reductions").items()} == {
        "allreduce": 2,
        "allgather": 2,
    }
    file = records.read("m.jsonl")
    assert not file.bad_lines and {r["kind"] for r in file.records} == {"microbench", "calibration"}
    assert "| network/socket" in result.out and "profile: m.json" in result.out
    again = haloscope("calibrate", "-o", "again.json", "--from", "m.jsonl", "--verbose")
    assert again.code == 0 and "measured (us)" in again.out
    assert profile.load("again.json").data["network"] == found.data["network"]


def test_a_calibration_that_was_cut_off_goes_on_where_it_ended(haloscope):
    words = ("calibrate", "-o", "m.json", "--quick", "--sections", "reductions", "--launches", 3)
    assert haloscope(*words).code == 0
    lines = Path("m.jsonl").read_text().splitlines()
    assert len(lines) == 3
    Path("m.json").unlink()
    Path("m.jsonl").write_text("\n".join(lines[:2]) + "\n" + lines[2][:40])  # killed in the middle of a line
    assert haloscope(*words).code == 0
    now = records.read("m.jsonl")
    assert [r["launch"]["time_utc"] for r in now.records[:2]] == [
        json.loads(line)["launch"]["time_utc"] for line in lines[:2]
    ]
    assert len(now.records) == 3 and len(now.bad_lines) == 1 and Path("m.json").exists()


def test_a_complete_calibration_starts_anew_and_keeps_the_old_one(haloscope):
    words = ("calibrate", "-o", "m.json", "--quick", "--sections", "reductions", "--launches", 1)
    assert haloscope(*words).code == 0
    before = Path("m.jsonl").read_text()
    assert haloscope(*words).code == 0
    assert Path("m.jsonl~").read_text() == before and Path("m.json~").exists()
    assert len(records.read("m.jsonl").records) == 1


def test_with_one_rank_what_needs_two_is_left_out_with_a_note(haloscope, monkeypatch):
    few = dataclasses.replace(points.QUICK, squares=(16, 64, 256), cubes=(8, 32))
    monkeypatch.setattr(points, "QUICK", few)
    result = haloscope(
        "calibrate", "-o", "m.json", "--quick", "--ranks", 1, "--launches", 1, "--sections", "network,kernels"
    )
    assert result.code == 0, result.err
    found = profile.load("m.json").data
    assert "network" not in found and "kernels" in found
    assert any("'network' needs 2 ranks" in note for note in found["notes"])


def test_wrong_input_is_refused_with_what_to_do(haloscope):
    for words, text in (
        (("-o", "m.txt"), "-o machine.json"),
        (("-o", "m.json", "--sections", "netwrk"), "did you mean network"),
        (("-o", "m.json", "--ranks", 1, "--sections", "network"), "--ranks 2"),
        (("-o", "m.json", "--ranks", 0), "0"),
        ((), "--output"),
    ):
        result = haloscope("calibrate", *words)
        assert result.code == 2 and text in result.err, (words, result.err)
    Path("file").write_text("")
    result = haloscope("calibrate", "-o", "file/m.json", "--sections", "reductions")
    assert result.code == 1 and "cannot write" in result.err
