"""Messages alone, at the same time, and as an all-gather; walltime along a rank's path."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haloscope import bridge
from haloscope.errors import UnavailableError, UsageError
from haloscope.model import placement, profile
from haloscope.model.profile import Profile
from haloscope_studies.davis2017 import network
from haloscope_studies.davis2017.replay import contention, hydra_runs, results, terms, walltime

MINERVA = profile.load("minerva")
FREE = {"from_bytes": 0, "to_bytes": None, "latency_s": 0.0, "per_byte_s": 0.0}


def toy(latency=1.0, per_byte=0.0, **contention) -> Profile:
    """A profile whose messages all cost the same everywhere."""
    law = [{"from_bytes": 0, "to_bytes": None, "latency_s": latency, "per_byte_s": per_byte}]
    classes = {name: {"segments": law, "contention": contention} for name in ("node", "network")}
    machine = {"host": "h", "cpu": "c", "nodes": 9, "sockets_per_node": 2, "cores_per_socket": 6}
    return Profile({"name": "toy", "machine": machine, "network": {"classes": classes}})


@pytest.mark.ids("DC7")
@pytest.mark.parametrize(
    ("duplex", "ping_ping", "exchange"), [(2.0, 21.0, 41.0), (1.25, 13.5, 26.0), (1.0, 11.0, 21.0)]
)
def test_bytes_take_turns_and_latencies_overlap(duplex, ping_ping, exchange):
    """A message of 1 s and 10 s of bytes; of opposite messages, the second one takes duplex - 1 of its bytes' time."""
    p = toy(latency=1.0, per_byte=0.1, duplex=duplex)
    assert contention.batch_time(p, "node", [100], [100]) == pytest.approx(ping_ping)
    assert contention.batch_time(p, "node", [100] * 2, [100] * 2) == pytest.approx(exchange)
    assert contention.batch_time(p, "node", [0] * 2, [0] * 2) == pytest.approx(1.0)


@pytest.mark.ids("DC7")
def test_contention_is_calibrated_by_runs_with_several_pairs():
    factors = {2: 1.9, 4: 3.7, 8: 7.3}
    shared = network.fit_shared(factors)
    assert all(1 + shared * (pairs - 1) == pytest.approx(factor, rel=0.02) for pairs, factor in factors.items())
    with pytest.raises(UsageError, match="two or more concurrent pairs"):
        network.fit_shared({1: 1.0})


@given(st.lists(st.integers(0, 10**6), max_size=5), st.lists(st.integers(0, 10**6), max_size=5))
@settings(max_examples=50, deadline=None)
def test_more_messages_never_take_less_time_and_directions_are_alike(there, back):
    for where in ("node", "network"):
        both = contention.batch_time(MINERVA, where, there, back)
        assert both == pytest.approx(contention.batch_time(MINERVA, where, back, there))
        assert both >= contention.batch_time(MINERVA, where, there) - 1e-15
        assert contention.batch_time(MINERVA, where, [*there, 1000], back) > both - 1e-15


@pytest.mark.ids("DC8")
def test_an_all_gather_is_a_tree_whose_steps_round_upwards():
    p = toy(latency=0.0, per_byte=1.0)
    assert network.allgather_time(p, 8, 1, 12) == 0
    for ranks in (2, 8, 16, 256):
        assert network.allgather_time(p, 8, ranks, 12) == 8 * (ranks - 1)  # every other rank's data arrives once
    assert network.allgather_time(p, 8, 5, 12) == network.allgather_time(p, 8, 8, 12)
    counted = toy()
    assert [network.allgather_time(counted, 8, r, 12) for r in (2, 3, 12, 100)] == [1, 2, 4, 7]


# ---- terms and walltime ----------------------------------------------------------------------------------------------


@pytest.mark.ids("DC1")
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_an_iteration_has_as_many_terms_as_the_equations(n):
    counts = terms.load("hydra").counts(n)
    kernels = {t.name: c for t, c in counts.items() if t.kind == "kernel"}
    assert kernels["Mdivu"] == kernels["Leosdrv1"] == 2 * n and kernels["Lartvis1"] == n
    assert [kernels[k] for k in ("MDT1", "Mlagh_Init", "Mlagh7", "Purge", "Madvz2", "Madvmy1", "ShortPrint1")] == [
        1
    ] * 7
    assert [kernels[f"Mlagh{i}"] for i in range(1, 7)] == [n] * 6 and len(kernels) == 29
    assert sum(c for t, c in counts.items() if t.kind == "exchange") == 2 * n + 7
    app = terms.load("hydra")
    gathers = sum(c * g["count"] for t, c in counts.items() if t.kind == "gather" for g in app.gathers(t.name))
    assert gathers == 23 + 2 * n + 68


@pytest.mark.ids("DC1", "DC12")
def test_the_tree_is_edited_in_a_file_without_touching_the_machine(tmp_path):
    data = copy.deepcopy(dict(terms.load("hydra").data))
    data["functions"]["MDT"].append({"exchange": "Madvm", "times": "2n+1"})
    (tmp_path / "mine.json").write_text(json.dumps(data))
    mine = terms.load(tmp_path / "mine.json")
    assert mine.counts(3)[terms.Term("exchange", "Madvm")] == 3 + 7
    run = hydra_runs.run("weak", 8)
    assert walltime.predict(mine, MINERVA, run).total > walltime.predict(terms.load("hydra"), MINERVA, run).total


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        (lambda d: d.update(schema="x"), "not an application description"),
        (lambda d: d.update(schema_version=9), "version 9"),
        (lambda d: d.pop("gathers"), "lacks gathers"),
        (lambda d: d.update(root="Iterations"), "did you mean Iteration"),
        (lambda d: d["functions"]["MDT"].append({"exchange": "Madw"}), "function MDT: unknown exchange 'Madw'"),
        (lambda d: d["functions"]["MDT"].append({"kernal": "x"}), "is not one term"),
        (lambda d: d["functions"]["MDT"].append({"kernel": "x", "times": "n*n"}), "not a count of a term"),
        (lambda d: d["functions"]["Lartvis"].append({"call": "MDT"}), "call each other without end"),
        (lambda d: d["boundaries"]["Madv"].update(faces="outer"), "boundary Madv: faces is one of"),
    ],
)
def test_descriptions_that_are_not_valid_say_why(edit, fault, tmp_path):
    data = copy.deepcopy(dict(terms.load("hydra").data))
    edit(data)
    (tmp_path / "bad.json").write_text(json.dumps(data))
    with pytest.raises(UsageError) as caught:
        terms.load(tmp_path / "bad.json")
    assert fault in str(caught.value)


def test_unknown_applications_are_refused():
    with pytest.raises(UsageError, match="unknown application 'hydr'; did you mean hydra"):
        terms.load("hydr")


@pytest.mark.ids("DC3")
def test_exchange_stages_are_those_of_table_5_6():
    from haloscope.studies import published

    kinds = {"cell_centred": "cell", "nodal": "node", "face_x": "face_x", "face_y": "face_y", "face_z": "face_z"}
    app = terms.load("hydra")
    for row in published("davis2017", "exchange_stages"):
        spec = app.exchange(row["stage"])
        mine = [q.centring for q in spec.quantities if q.type == row["data_type"]]
        assert mine == [centring for column, centring in kinds.items() for _ in range(int(row[column]))]
        assert spec.low == spec.high == (int(row["halo"]),) * 3


@pytest.mark.ids("DC9", "DC11")
def test_every_part_of_the_breakdown_has_its_own_cost_and_they_sum_exactly():
    packing = {"contiguous": {"1": [FREE | {"per_byte_s": 1e-10}]}}
    p = Profile({**MINERVA.data, "pack": packing})
    run = hydra_runs.run("weak", 8)
    found = walltime.predict(hydra_runs.validated(), p, run)
    assert found.total == sum(found.components.values())
    assert set(found.components) == {"compute", "point_to_point", "collectives", "update_boundary", "memory"}
    plans = {s: bridge.make_plan(run.layout, 0, hydra_runs.validated().exchange(s)) for s in ("Madvm", "Lartvis")}
    for stage, calls in (("Madvm", 3 * 217), ("Lartvis", 351)):
        sent = sum(m.bytes for m in plans[stage].sent())
        got = sum(m.bytes for m in plans[stage].messages if not m.out)
        exchange = found.parts["point_to_point"]
        assert exchange[f"{stage} pack"] == pytest.approx(calls * sent * 1e-10)
        assert exchange[f"{stage} unpack"] == pytest.approx(calls * got * 1e-10)
    base = walltime.predict(hydra_runs.validated(), MINERVA, run)
    for kind in ("boundary", "allocate", "free"):  # twice one cost shows in its part alone
        term = next(t for t in hydra_runs.validated().counts(2) if t.kind == kind)
        name = hydra_runs.validated().kernel_name(term)
        data = copy.deepcopy(MINERVA.data)
        for rows in data["kernels"][name].values():
            for row in rows:
                row["fixed_s"], row["per_cell_s"] = 2 * row["fixed_s"], 2 * row["per_cell_s"]
        more = walltime.predict(hydra_runs.validated(), Profile(data), run)
        part = term.name if kind == "boundary" else f"{kind} {term.name}"
        category = terms.CATEGORIES[kind]
        assert more.total - base.total == pytest.approx(base.parts[category][part])


@pytest.mark.ids("DC11")
def test_the_total_is_the_sum_over_the_tree_taken_iteration_by_iteration():
    app, run = hydra_runs.validated(), hydra_runs.run("strong", 16)
    unit = {
        term: walltime.predict(Only(app, term), MINERVA, replace(run, iterations={1: 1})).total
        for term in app.counts(4)
    }
    whole = sum(many * times * unit[t] for n, many in run.iterations.items() for t, times, _ in app.walk(n))
    assert walltime.predict(app, MINERVA, run).total == pytest.approx(whole, rel=1e-12)


class Only(terms.Application):
    """An application of one term that occurs once."""

    def __init__(self, app: terms.Application, term: terms.Term):
        super().__init__(app.data)
        object.__setattr__(self, "term", term)

    def counts(self, loops):
        return {self.term: 1}


@pytest.mark.ids("DC10")
def test_rank_zero_is_the_default_and_the_worst_rank_is_that_of_all_ranks_tried():
    app = hydra_runs.validated()
    grid = (2, 3, 4)
    run = walltime.Run((41, 50, 63), grid, placement.place("fill", 24, 2, 6, 5), {1: 3, 2: 1})
    assert run.rank == 0
    totals = [walltime.predict(app, MINERVA, run.at(rank)).total for rank in range(24)]
    found = walltime.worst(app, MINERVA, run)
    assert found.total == max(totals) and totals[found.rank] == max(totals)
    assert len(walltime.representatives(run)) < 24
    with pytest.raises(UsageError, match="rank 24 is not one of 0 to 23"):
        walltime.predict(app, MINERVA, run.at(24))


@pytest.mark.ids("DC12")
def test_one_application_file_serves_four_machines():
    app, grid = terms.load("hydra").unpacked(), (4, 4, 4)
    found = {}
    for name in ("minerva", "hector", "hera", "dawndev"):
        machine = profile.load(name).machine
        where = placement.place("fill", 64, machine["sockets_per_node"], machine["cores_per_socket"])
        run = walltime.Run((300,) * 3, grid, where, hydra_runs.iterations(100))
        found[name] = walltime.predict(app, profile.load(name), run)
    assert len({one.total for one in found.values()}) == 4
    assert all(min(one.components.values()) > 0 for one in found.values())
    exchange = {name: one.components["point_to_point"] for name, one in found.items()}
    assert exchange["hera"] > exchange["minerva"]  # DDR against QDR InfiniBand


@pytest.mark.ids("DC12")
def test_kernels_of_another_machine_are_minervas_with_the_time_of_its_smallest_run():
    own = profile.load("minerva").data["kernels"]
    for name, ranks, compute_s in (("hera", 32, 703.71), ("dawndev", 64, 1573.35)):
        p = profile.load(name)
        found = walltime.predict(terms.load("hydra").unpacked(), p, hydra_runs.weak_run(p, ranks, 75)).components
        at_work = found["compute"] + found["update_boundary"] + found["memory"]
        assert at_work == pytest.approx(compute_s, rel=1e-3)
        ratios = [
            law["per_cell_s"] / base["per_cell_s"]
            for kernel, by_cores in p.data["kernels"].items()
            for law, base in zip(by_cores["4"], own[kernel]["1"], strict=True)
            if base["per_cell_s"]
        ]
        assert len(ratios) >= len(own) and max(ratios) == pytest.approx(min(ratios), rel=1e-3)


@pytest.mark.ids("DC12")
def test_walltimes_elsewhere_follow_from_the_smallest_run_but_for_waits_that_grow_with_the_ranks():
    """DawnDev stays within the 15 % of the thesis on 2048 ranks; on Hera the printed exchange more than doubles."""
    off = results.elsewhere_off()
    assert len(off) == 26
    assert all(abs(error) < 0.15 for (name, *_), error in off.items() if name == "dawndev")
    assert all(abs(error) < 0.15 for (name, _, ranks), error in off.items() if name == "hera" and ranks <= 128)
    assert min(off, key=off.__getitem__) in (("hera", 50, 2048), ("hera", 75, 2048))


def test_a_profile_without_packing_says_so():
    run = hydra_runs.run("weak", 8)
    app = terms.load("hydra").without("gather", *terms.load("hydra").data["gathers"])
    for kind in ("kernel", "boundary", "allocate", "free"):
        app = app.without(kind, *{t.name for t in app.counts(2) if t.kind == kind})
    with pytest.raises(UnavailableError, match="no section 'pack'"):
        walltime.predict(app, profile.load("hera"), run)


def test_parts_inside_a_node_and_across_may_overlap():
    run = hydra_runs.run("weak", 64)
    app = hydra_runs.validated()
    summed = walltime.predict(app, MINERVA, run).components["point_to_point"]
    overlapped = walltime.predict(app, MINERVA, replace(run, combine="max")).components["point_to_point"]
    assert overlapped < summed
    with pytest.raises(UsageError, match="unknown combination 'min'"):
        walltime.predict(app, MINERVA, replace(run, combine="min"))


@pytest.mark.ids("DC13")
@pytest.mark.parametrize("ranks", [2048, 100_000])
def test_of_very_many_ranks_few_have_to_be_priced(ranks):
    """What it takes, seconds, is figure `predict`."""
    grid = bridge.process_grid("prime-factors", ranks, (5000,) * 3)
    run = walltime.Run((5000,) * 3, grid, placement.place("fill", ranks, 2, 6), hydra_runs.iterations(100))
    assert len(walltime.representatives(run)) < 100
    worst = walltime.worst(hydra_runs.validated(), MINERVA, run)
    assert math.isfinite(worst.total)
    assert worst.total >= walltime.predict(hydra_runs.validated(), MINERVA, run.at(ranks - 1)).total
