"""hydro3d: physics against known solutions, what it exchanges against the modelled code's numbers, replays, bad
states.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import math
import re
import types
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haloscope import bridge, records
from haloscope.measure import campaign, space
from haloscope.measure.request import Request
from haloscope_studies.davis2017.measured import experiments
from long_run import or_long
from plan_cases import exchange, identity

DOCS = Path(__file__).resolve().parents[1] / "docs"
MASS, INTERNAL, KINETIC = 0, 1, 2  # places in the totals


@pytest.fixture
def gas(haloscope):
    """Return the record of one run of hydro3d."""

    def run(cells: str, initial: str, *settings: str, steps: int = 2000, words: tuple[str, ...] = ("--ranks", "1")):
        parameters = [word for setting in (f"initial={initial}", *settings) for word in ("--set", setting)]
        result = haloscope(
            "run",
            "hydro3d",
            "--cells",
            cells,
            "--steps",
            str(steps),
            "--repetitions",
            "1",
            "--launches",
            "1",
            *parameters,
            *words,
            "--output",
            "r.jsonl",
        )
        assert result.code == 0, result.err
        found = [r for r in records.read("r.jsonl").records if r["kind"] == "measurement"]
        assert {r["verification"]["status"] for r in found} == {"passed"}
        return found[-1]

    return run


def order(coarse: dict, fine: dict) -> float:
    """Return the order of convergence of the density between two grids, one twice as fine."""
    return math.log2(coarse["app"]["density_error"] / fine["app"]["density_error"])


def energy(totals: list[float]) -> float:
    return totals[INTERNAL] + totals[KINETIC]


def drift(record: dict) -> float:
    first, last = energy(record["app"]["first_totals"]), energy(record["app"]["last_totals"])
    return abs(last / first - 1)


def assert_mass_is_kept(record: dict) -> None:
    first, last = record["app"]["first_totals"], record["app"]["last_totals"]
    assert last[MASS] == pytest.approx(first[MASS], rel=1e-12)
    assert last[-1] == pytest.approx(first[-1], rel=1e-12)  # of material 1 alone


@pytest.mark.ids("DA6", "DA10")
def test_sods_tube_converges_to_the_exact_solution_with_first_order(gas):
    found = [gas(f"{n}x4x4", "sod", "end=0.2") for n in (50, 100)]
    for record in found:
        assert record["app"]["time"] == pytest.approx(0.2)
        assert_mass_is_kept(record)
        assert drift(record) < 1e-12
    assert found[-1]["app"]["density_error"] < 0.006
    assert order(*found) > 0.8


def test_a_tube_gives_the_same_along_every_dimension(gas):
    errors = []
    for axis, cells in enumerate(("60x4x4", "4x60x4", "4x4x60")):
        record = gas(cells, "sod", "end=0.2", f"axis={axis}", f"cell_size={','.join([str(1 / 60)] * 3)}")
        errors.append(record["app"]["density_error"])
    assert errors == pytest.approx([errors[0]] * 3, rel=1e-10)


def test_a_standing_wave_converges_with_second_order(gas):
    found = [gas(str(n), "wave", "end=1") for n in (12, 24)]
    assert order(*found) > 1.9


def test_sedovs_blast_approaches_the_self_similar_solution_and_stays_symmetric(gas):
    found = [gas(str(n), "sedov", "end=0.5") for n in (16, 32)]
    assert order(*found) > 0.4
    for record in found:
        assert_mass_is_kept(record)
        assert drift(record) < 1e-9
        along = [record["app"][f"density_along_{d}"] for d in "xyz"]
        assert along[1] == pytest.approx(along[0], rel=0.02) and along[2] == pytest.approx(along[0], rel=0.02)
        peak = max(range(len(along[0])), key=along[0].__getitem__)
        assert (peak + 0.5) / len(along[0]) == pytest.approx(0.5**0.4, abs=1.5 / len(along[0]))


def test_energy_that_the_remap_loses_is_missing_where_it_is_dropped_and_less_on_finer_grids(gas):
    drifts = [drift(gas(f"{n}x4x4", "sod", "end=0.2", "lost_motion=dropped")) for n in (50, 100)]
    assert 2e-3 > drifts[0] > drifts[1] > 1e-6


@pytest.mark.ids("DA6")
def test_a_replay_makes_as_many_steps_and_sub_cycles_as_were_recorded(gas):
    record = gas("6x6x6", "sod", "replay=157,18,10,32", words=("--ranks", "2"))
    assert record["outcome"]["steps"] == [217] and record["app"]["steps_by_cycles"] == [157, 18, 10, 32]
    stages = record["counts"]["stages"]
    assert stages["accelerate"] + stages["accelerate-again"] == 351
    assert record["counts"]["exchanges"] == 2 * 351 + 7 * 217


@pytest.mark.ids("DA6")
@pytest.mark.parametrize("growth", [1.0, 1.3])
def test_a_time_step_grows_by_no_more_than_its_limit_and_the_last_one_ends_at_the_target(gas, growth):
    """From a first step that is far below the limits of the state, only the limit of growth holds."""
    small = (f"growth={growth}", "first_step=0.001")
    times = [0.0, *(gas("20x4x4", "sod", *small, steps=steps)["app"]["time"] for steps in (1, 2, 3))]
    lengths = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert [b / a for a, b in itertools.pairwise(lengths)] == pytest.approx([growth] * 2, rel=1e-9)
    end = times[2] + 0.25 * lengths[2]
    assert gas("20x4x4", "sod", *small, f"end={end!r}")["app"]["time"] == pytest.approx(end, rel=1e-12)


@pytest.mark.ids("DA6")
def test_a_time_step_obeys_the_strictest_of_its_candidates(gas):
    """Sod's tube: at first only sound limits a step, as a part of a cell over the speed of sound."""
    sound, cell, courant = math.sqrt(1.4), 1 / 20, 0.5
    record = gas("20x4x4", "sod", "first_step=1", "growth=100", "most_cycles=1", f"courant={courant}", steps=1)
    assert record["app"]["time"] == pytest.approx(courant * cell / (math.sqrt(3) * sound), rel=0.05)
    halved = gas("20x4x4", "sod", "first_step=1", "growth=100", "most_cycles=1", "courant=0.25", steps=1)
    assert halved["app"]["time"] == pytest.approx(record["app"]["time"] / 2)


@pytest.mark.ids("DA9")
@pytest.mark.parametrize("ranks", or_long([1, 2, 4], [8, 12]))
def test_all_variants_give_the_bits_of_one_rank(gas, ranks):
    expected = gas("12x12x12", "random", "replay=1,1")["verification"]["checksum"]
    requests = {variant.letter: request_of(variant, ranks) for variant in experiments.VARIANTS}
    assert len(requests) == 13
    once = {request.id: request for request in requests.values()}  # B and D are the same run
    found = campaign.Campaign(space.Space(list(once.values())), Path("variants.jsonl"), launches=1).run()
    bits = {record["id"]: record["verification"]["checksum"] for record in found if record["kind"] == "measurement"}
    assert {letter: bits[request.id] for letter, request in requests.items()} == dict.fromkeys(requests, expected)


def request_of(variant: experiments.Variant, ranks: int) -> Request:
    """Return the run of a variant; two threads a rank where it has threads. All but A do without the 100 gatherings of
    numbers in a step that the studied code has, each of which takes milliseconds where ranks share cores."""
    fields = {**experiments.STUDIED, **variant.choice, "ranks": ranks, "threads": 1 + (variant.pes == "threads")}
    settings = dict(fields["set"]) | {"initial": "random", "replay": "1,1"}
    if variant.letter != "A":
        settings.pop("collectives", None)
    fields["set"] = tuple(settings.items())
    choice = bridge.normal(bridge.Choice("hydro3d", (12, 12, 12), **fields))
    assert not bridge.illegal(choice)
    return Request.of(choice, steps=1, repetitions=1, warmup=0, verify=2)


@pytest.mark.ids("DE5")
def test_the_thread_that_starts_others_is_pinned_to_a_core(gas):
    words = ("--ranks", "1", "--threads", "2", "--piece", "1", "--temporaries", "freed")
    environment = gas("12x12x12", "random", "replay=1", words=words)["environment"]
    [cores] = environment["placement"]
    assert environment["oversubscribed"] or len(cores) == 1


@pytest.mark.ids("DA8")
def test_temporaries_that_are_freed_leave_the_same_bits_and_less_memory_in_use(gas):
    found = [
        gas("40x36x32", "random", "replay=0,3", words=("--ranks", "2", "--temporaries", how, "--form", "vector"))
        for how in ("kept", "freed")
    ]
    kept, freed = (r["counts"]["resident_bytes"] for r in found)
    fields = found[0]["counts"]["field_bytes"]
    assert found[0]["verification"]["checksum"] == found[1]["verification"]["checksum"]
    assert kept - freed > 0.05 * fields
    memory = {(t["stage"], t["name"]): t["calls"] for t in found[1]["timers"] if t["component"] == "memory"}
    assert memory["limits", "allocate"] == memory["cells-1", "allocate"] == memory["nodes-3", "free"] == 1
    assert found[1]["components_s"]["memory"]["min"] > 0 == found[0]["components_s"]["memory"]["max"]


@pytest.mark.ids("DA8", "DA9")
@pytest.mark.parametrize("words", [("--threads", "2"), ("--schedule", "split", "--strategy", "direct/persistent")])
def test_freed_temporaries_work_with_threads_and_overlap(gas, words):
    gas("15x14x13", "random", "replay=0,0,2", words=("--ranks", "2", "--temporaries", "freed", *words))


@pytest.mark.ids("DA9", "DE3", "DE4", "DE5", "DE6")
def test_variants_of_exchange_overlap_and_threads_give_the_same_bits(haloscope):
    words = "run hydro3d --cells 14x13x12 --ranks 2 --piece 0,1,3 --set initial=random --steps 2 --launches 1"
    common = (*words.split(), "--repetitions", 1, "--strategy", "direct:corners,fields=type/p2p")
    schedules = "bulk,divided,split"
    result = haloscope(*common, "--threads", "1,2", "--schedule", f"{schedules},comm-thread", "--output", "r.jsonl")
    assert result.code == 0, result.err
    found = [r for r in records.read("r.jsonl").records if r["kind"] == "measurement"]
    assert len(found) == 3 + 4 * 3  # one thread has no pieces, and comm-thread needs two
    assert {r["verification"]["status"] for r in found} == {"passed"}
    assert len({r["verification"]["checksum"] for r in found}) == 1
    # sums are added piece by piece, in the order of the pieces, on any thread
    sums = {r["request"].get("piece", 0): set() for r in found}
    for r in found:
        if r["request"]["schedule"] != "comm-thread" and r["request"]["threads"] == 2:
            sums[r["request"].get("piece", 0)].add((r["request"]["schedule"], tuple(r["app"]["last_totals"])))
    again = haloscope(*common, "--threads", 2, "--schedule", schedules, "--output", "s.jsonl")
    assert again.code == 0, again.err
    for r in records.read("s.jsonl").records:
        assert (r["request"]["schedule"], tuple(r["app"]["last_totals"])) in sums[r["request"].get("piece", 0)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--piece", "-1", "--threads", "2"), "use 1 or more, or 0"),
        (("--temporaries", "freed", "--memory", "shared"), "these fields are shared"),
        (("--temporaries", "freed", "--strategy", "ordered/shared"), "these fields are shared"),
    ],
)
def test_choices_that_cannot_be_are_refused_with_a_remedy(haloscope, words, message):
    result = haloscope("run", "hydro3d", "--cells", "8", "--ranks", "2", "--steps", "2", *words)
    assert result.code == 2 and message in result.err, result.err


@pytest.mark.ids("DA7")
def test_a_trace_shows_the_remap_along_x_y_z_in_even_steps_and_z_y_x_in_odd_ones(gas):
    gas("8x8x8", "random", steps=4, words=("--ranks", "1", "--trace", "t.json"))
    along = collections.defaultdict(list)
    for event in json.loads(Path("t.json").read_text()):
        timer = event.get("args", {}).get("what", "")
        if timer.startswith("remap-nodes"):
            along[event["args"]["step"]].append((event["ts"], timer[-1]))
    found = {step: "".join(d for _, d in sorted(events)) for step, events in along.items()}
    assert found == {step: "xyz" if step % 2 == 0 else "zyx" for step in found} and len(found) == 4


@pytest.mark.ids("DA5")
@pytest.mark.parametrize("cycles", [1, 2, 3])
def test_numbers_are_gathered_one_by_one_as_in_the_studied_code_or_reduced_together(gas, cycles):
    replay = "replay=" + "0," * (cycles - 1) + "4"
    merged, studied = (
        gas("9x8x7", "random", replay, f"collectives={how}", words=("--ranks", "2")) for how in ("merged", "studied")
    )
    faults = 2 * cycles  # a number in each of the two stages of a sub-cycle
    assert merged["counts"]["reductions"] == 4 * (3 + faults)
    assert studied["counts"]["reductions"] == 4 * (23 + faults + 68)
    assert studied["verification"]["checksum"] == merged["verification"]["checksum"]


@pytest.mark.ids("DA5")
def test_a_step_ends_with_the_gathers_that_the_studied_code_prints():
    """Davis 2017, chapter 4: ShortPrint gathers 7 integers, 42 numbers, 9 lists after their lengths, and 32
    characters.
    """
    step = bridge.step_of(bridge.Choice("hydro3d", (8, 8, 8), set=(("collectives", "studied"),)))
    last = collections.Counter(size for r in step.stages[-1].reductions for size in r.gathers)
    assert last == {4: 7 + 9, 8: 42 + 9, 32: 1}
    others = [r for stage in step.stages[:-1] for r in stage.reductions]
    assert [r.gathers for r in others] == [(8,) * 23] + [(4,)] * 4


def test_the_summary_keeps_mass_and_sketches_the_density(gas):
    found = [gas("40x5x4", "sod", f"end={end}", "collectives=studied") for end in (0.01, 0.2)]
    mass = [r["app"]["last_totals"][MASS] for r in found]
    assert mass[0] == pytest.approx(mass[1], rel=1e-12)
    early, late = (r["app"]["sketch"] for r in found)
    assert early[:8] == "m" * 8 and early[-8:] == "g" * 8  # densities 1 and 1/8
    assert list(late) == sorted(late, reverse=True) and len(set(late)) > 3  # the rarefaction, the contact, the shock


def test_more_cells_than_an_integer_counts_are_refused_where_integers_are_gathered():
    many = bridge.Choice("hydro3d", (1024, 1024, 1024), ranks=64)
    assert bridge.illegal(many) == ""
    reason = bridge.illegal(dataclasses.replace(many, set=(("collectives", "studied"),)))
    assert "use a smaller grid or collectives=merged" in reason


# ---- what is exchanged: Davis 2017, table 5.6 and equation 5.41 ------------------------------------------------------


def sent_in_a_step(choice: bridge.Choice, rank: int, cycles: int) -> tuple[int, int, int]:
    """Return how many exchanges, messages and bytes a rank has in a step."""
    layout, step = bridge.make_layout(choice), bridge.step_of(choice)
    again = {stage for loop in step.loops for stage in loop}
    total = collections.Counter()
    for number in range(len(step.stages)):
        plan = bridge.make_plan(layout, rank, bridge.exchange_spec(choice, number))
        times = cycles - 1 if number in again else 1
        total += collections.Counter(
            stages=times, sends=times * len(plan.sent()), bytes=times * sum(m.bytes for m in plan.sent())
        )
    return total["stages"], total["sends"], total["bytes"]


STUDIED = {"strategy": "ordered:corners,fields=type/p2p", "process_grid": "3x3x3", "ranks": 27}


@pytest.mark.ids("DA3", "DA5")
@pytest.mark.parametrize("cycles", [1, 2, 3, 4])
def test_an_interior_process_sends_what_the_modelled_code_sends(cycles):
    choice = bridge.Choice("hydro3d", (300, 300, 300), **STUDIED)
    stages, sends, size = sent_in_a_step(choice, 13, cycles)
    assert stages == 2 * cycles + 7
    assert sends == 18 * cycles + 66
    assert size == 2_203_488 * cycles + 80_435_520


@pytest.mark.ids("DA3", "DE3")
@pytest.mark.parametrize(
    ("strategy", "stage"),
    [(STUDIED["strategy"], stage) for stage in ("limits", "predict", "accelerate", "cells-1", "nodes-1")]
    + [("direct:corners,fields=type/p2p", stage) for stage in ("predict", "cells-1")],
)
def test_one_exchange_of_global_points_fills_all_26_ghost_regions_of_every_process(strategy, stage):
    choice = bridge.Choice("hydro3d", (9, 9, 10), **STUDIED | {"strategy": strategy})
    made, names = bridge.make_layout(choice), [one.name for one in bridge.step_of(choice).stages]
    spec = one_of_each_kind(bridge.exchange_spec(choice, names.index(stage)))
    plans = [bridge.make_plan(made, rank, spec) for rank in range(choice.ranks)]
    blocks = [made.owned(rank) for rank in range(choice.ranks)]  # of which every point below needs one
    layout = types.SimpleNamespace(owned=blocks.__getitem__, dims=made.dims, cells=made.cells, periodic=made.periodic)
    for plan, field in zip(plans, exchange(layout, plans), strict=True):
        filled = collections.defaultdict(set)
        for (q, point), value in field.items():
            assert value == identity(layout, plan.rank, point, spec.quantities[q])
            filled[q].add(side_of(point, plan.owned[q]))
        assert all(len(filled[q] - {(0, 0, 0)}) == 26 for q in range(len(spec.quantities)))


def one_of_each_kind(spec: bridge.ExchangeSpec) -> bridge.ExchangeSpec:
    """Return an exchange of one quantity of each centring, type and width with layers: the others go the same way."""
    widths = spec.widths or ((spec.low, spec.high),) * len(spec.quantities)
    with_layers = [(q, (low, high)) for q, (low, high) in zip(spec.quantities, widths, strict=True) if any(low + high)]
    kinds = {(q.centring, q.type, width): (q, width) for q, width in with_layers}
    quantities, widths = zip(*kinds.values(), strict=True)
    return dataclasses.replace(spec, quantities=quantities, widths=widths)


def side_of(point, box) -> tuple[int, ...]:
    """Return the side of a box on which a point lies, by dimension: -1, 0 inside, 1."""
    return tuple((p >= hi) - (p < lo) for p, lo, hi in zip(point, box.lo, box.hi, strict=True))


@pytest.mark.ids("DA3")
def test_bytes_that_a_run_sends_are_those_of_its_plans(gas):
    words = ("--ranks", "4", "--strategy", STUDIED["strategy"])
    record = gas("13x11x10", "random", "replay=0,0,4", words=words)
    choice = bridge.Choice.from_json(record["request"])
    sent = [sent_in_a_step(choice, rank, 3) for rank in range(4)]
    assert record["counts"]["messages"] == 4 * sum(messages for _, messages, _ in sent)
    assert record["counts"]["message_bytes"] == 4 * sum(size for *_, size in sent)


def test_less_is_sent_where_only_what_the_sweeps_need_is_exchanged():
    choice = bridge.Choice("hydro3d", (300, 300, 300), **STUDIED)
    needed = bridge.Choice("hydro3d", (300, 300, 300), **STUDIED, set=(("exchange", "needed"),))
    assert sent_in_a_step(needed, 13, 2)[2] < 0.8 * sent_in_a_step(choice, 13, 2)[2]


@pytest.mark.ids("DA4")
def test_only_processes_at_the_grids_edges_update_boundaries():
    choice = bridge.Choice("hydro3d", (30, 30, 30), **STUDIED)
    layout = bridge.make_layout(choice)
    for number in range(len(bridge.step_of(choice).stages)):
        spec = bridge.exchange_spec(choice, number)
        assert not bridge.make_plan(layout, 13, spec).copies
        if any(max(side) for sides in spec.widths or ((spec.low, spec.high),) for side in sides):
            assert bridge.make_plan(layout, 0, spec).copies


@pytest.mark.ids("DA1")
def test_blocks_are_those_of_the_studied_runs():
    grids = {2: "1x1x2", 4: "1x2x2", 8: "2x2x2", 16: "2x2x4", 32: "2x4x4", 64: "4x4x4", 128: "4x4x8", 256: "4x8x8"}
    for ranks, grid in grids.items():
        layout = bridge.make_layout(bridge.Choice("hydro3d", (150, 150, 150), ranks=ranks))
        assert "x".join(map(str, layout.ranks)) == grid
    blocks = bridge.make_layout(bridge.Choice("hydro3d", (53, 20, 20), process_grid="3x2x4", ranks=24))
    assert blocks.ranks == (3, 2, 4)
    assert [blocks.owned(rank).shape[0] for rank in range(3)] == [18, 18, 17]


@pytest.mark.ids("DA2")
def test_stages_exchange_as_many_layers_as_the_modelled_code():
    choice = bridge.Choice("hydro3d", (30, 30, 30), **STUDIED)
    layers = []
    for number in range(len(bridge.step_of(choice).stages)):
        spec = bridge.exchange_spec(choice, number)
        [sides] = {tuple(side) for one in spec.widths or ((spec.low, spec.high),) for side in one}
        layers.append(sides[0])
        assert len(set(sides)) == 1
    assert layers == [1, 1, 1, 1, 1, 2, 3, 2, 3, 2, 3]


@pytest.mark.ids("DA2")
@given(cells=st.tuples(*[st.integers(8, 40)] * 3))
@settings(max_examples=10)
def test_arrays_have_the_sizes_of_their_centrings(cells):
    choice = bridge.Choice("hydro3d", cells, process_grid="2x1x1", ranks=2)
    quantities = bridge.step_of(choice).quantities
    layout = bridge.make_layout(choice)
    spec = bridge.ExchangeSpec(quantities=quantities, low=(0, 0, 0), high=(0, 0, 0))
    plan = bridge.make_plan(layout, 1, spec)
    more = {"cell": (0, 0, 0), "node": (1, 1, 1), "face_x": (1, 0, 0), "face_y": (0, 1, 0), "face_z": (0, 0, 1)}
    for quantity, owned in zip(quantities, plan.owned, strict=True):
        expected = tuple(n + m for n, m in zip((cells[0] // 2, *cells[1:]), more[quantity.centring], strict=True))
        assert owned.shape == expected, quantity.name
    assert {q.centring for q in quantities} == set(more)


# ---- forms -----------------------------------------------------------------------------------------------------------


@pytest.mark.ids("DE7")
def test_every_variant_names_its_baseline_and_its_control():
    lines = (DOCS / "hydro.md").read_text().split("| form | variant |")[1].split("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert {re.match(r"`(\w+)`", form)[1] for form, *_ in rows} == set(bridge.find_app("hydro3d").forms)
    assert [variant for _, variant, *_ in rows] == ["A", "B", "C", "D", "E", "M"]
    assert all(baseline and control for _, variant, _, baseline, control in rows if variant != "A")


def test_the_fused_form_exchanges_the_same_and_makes_fewer_sweeps():
    fused, vector = (bridge.Choice("hydro3d", (300, 300, 300), form=form, **STUDIED) for form in ("fused", "vector"))
    assert sent_in_a_step(fused, 13, 2) == sent_in_a_step(vector, 13, 2)
    sweeps = [sum(len(stage.sweeps) for stage in bridge.step_of(choice).stages) for choice in (fused, vector)]
    assert sweeps[0] < 0.7 * sweeps[1]


# ---- bad input -------------------------------------------------------------------------------------------------------


def test_a_state_that_is_not_physical_names_cell_step_and_time_step_and_keeps_what_was_measured(haloscope):
    words = (
        "run",
        "hydro3d",
        "--cells",
        "16",
        "--ranks",
        "1,2",
        "--repetitions",
        "1",
        "--launches",
        "1",
        "--set",
        "initial=sedov",
        "--set",
        "blast_radius=0",
        "--output",
        "r.jsonl",
    )
    assert haloscope(*words, "--steps", "3").code == 0
    result = haloscope(*words, "--steps", "400", "--set", "linear_viscosity=100", "--set", "courant=1", "--resume")
    assert result.code == 1
    for part in ("not physical", "of cell (", "in step", "with a time step of"):
        assert part in result.err, result.err
    assert sum(r["kind"] == "measurement" for r in records.read("r.jsonl").records) == 2


@pytest.mark.parametrize(
    ("settings", "code", "message"),
    [
        (("least_step=1",), 1, "collapses"),
        (("replay=1,1,1,1,1",), 2, "most_cycles"),
        (("replay=1.5",), 2, "whole numbers"),
        (("replay=0,0",), 2, "no steps"),
        (("cell_size=1,2",), 2, "x, y and z"),
        (("gamma=1",), 2, "gamma"),
    ],
)
def test_settings_that_cannot_be_are_refused(haloscope, settings, code, message):
    words = [word for setting in settings for word in ("--set", setting)]
    result = haloscope("run", "hydro3d", "--cells", "8", "--ranks", "1", "--steps", "2", "--launches", "1", *words)
    assert result.code == code and message in result.err, result.err


def test_a_grid_smaller_than_the_halo_is_refused(haloscope):
    result = haloscope("run", "hydro3d", "--cells", "2x8x8", "--ranks", "1")
    assert result.code == 2 and "3 layers in x" in result.err
