"""Predictions against measurements: errors, groups, coverage, regret, what is left out, and the command."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haloscope import bridge, records
from haloscope.advice import validate as model
from haloscope.measure.request import Request
from haloscope.model import predict, profile
from haloscope.records.regret import mean_regret
from test_records import measurement, spread, write
from toy import TOY, changed, kernel_row, make_uncertain

CHOICES = (
    {"strategy": "ordered/p2p"},
    {"strategy": "direct/p2p"},
    {"strategy": "ordered/persistent"},
    {"strategy": "ordered/p2p", "schedule": "split"},
    {"strategy": "ordered/p2p", "depth": 4},
)


def predicted(toy, **choice) -> predict.Prediction:
    return predict.predict(bridge.Choice("laplace2d", (256, 256), ranks=4, **choice), toy, samples=0)


def record(
    seconds: float, launch="launch-1", exchange=None, status="passed", crowded=False, cells=(256, 256), **choice
) -> dict:
    """A record of three equal repetitions, `seconds` per step; exchange: seconds in its phases, on average."""
    c = bridge.Choice("laplace2d", cells, ranks=4, **choice)
    fields = {name: getattr(c, name) for name in ("threads", "strategy", "schedule", "depth", "substeps")}
    fields |= {"tiles": 8, "form": "star", "real": "f64", "timers": True}
    made = measurement(
        Request.of(c).id, launch, [10 * seconds] * 3, cells=list(cells), ranks=4, process_grid=[2, 2], **fields
    )
    parts = {} if exchange is None else {"pack": exchange / 4, "wait": exchange * 3 / 4, "compute": 1.0}
    made["phases_s"] = {name: spread(part) for name, part in parts.items()}
    made["verification"]["status"] = status
    made["environment"] |= {"oversubscribed": crowded, "mpi_library": "none", "cpu": "toy"}
    made["time_s"]["step"] = spread(seconds)
    return made


def times(toy, factors) -> list[dict]:
    """One record per choice, `factor` times what is predicted."""
    return [record(f * predicted(toy, **c).time_s, **c) for c, f in zip(CHOICES, factors, strict=False)]


def test_the_records_made_here_are_valid():
    assert records.fault_of(record(1e-3, exchange=1e-4)) == ""


def test_a_machine_in_two_states_is_predicted_launch_by_launch(toy):
    """The states differ by more than their pace. Of an even number of launches the mean of the middle two counts."""

    def in_states(data):
        data["pace"] = {"4": {"bandwidth_s": 4e-5, "error": {"bandwidth_s": 0.001}}}
        quick = {
            name: copy.deepcopy(data[name]) for name in ("network", "pack", "kernels", "transports") if name in data
        }
        for kernel in quick["kernels"].values():
            for rows in kernel.values():
                for segment in rows:
                    segment["per_cell_s"] /= 2
        data["states"] = [quick | {"pace": {"4": {"bandwidth_s": 1e-5, "error": {"bandwidth_s": 0.001}}}}]

    machine = changed(toy, in_states)
    paces = {
        name: {"ranks": 4, "bandwidth_s": time, "error": {"bandwidth_s": 0.001}}
        for name, time in (("launch-1", 4e-5), ("launch-2", 1e-5), ("launch-3", 4e-5))
    }
    slow, quick = (
        predict.predict(bridge.Choice("laplace2d", (256, 256), ranks=4), machine.at_pace(paces[name]), samples=0)
        for name in ("launch-1", "launch-2")
    )
    assert quick.terms["compute"] < 0.7 * slow.terms["compute"]
    found = [record(1e-3, launch=name) | {"pace": pace} for name, pace in paces.items()]
    [three] = model.validate(found, machine, samples=0).pairs
    [two] = model.validate(found[:2], machine, samples=0).pairs
    assert three.prediction.time_s == slow.time_s and three.paced
    assert two.prediction.time_s == pytest.approx((slow.time_s + quick.time_s) / 2)
    assert sum(two.prediction.terms.values()) == pytest.approx(two.prediction.time_s)


@pytest.mark.ids("DD1")
def test_an_error_is_predicted_over_measured_with_its_sign(toy):
    found = model.validate(times(toy, (1.0, 1.25, 0.8)), toy, samples=0)
    by_strategy = {p.prediction.choice.strategy: p.error for p in found.pairs}
    assert by_strategy == pytest.approx({"ordered/p2p": 0.0, "direct/p2p": -0.2, "ordered/persistent": 0.25}, abs=1e-9)
    whole = model.grouped(found.pairs)[0]
    assert (whole.count, whole.signed, whole.median, whole.worst) == pytest.approx((3, 0.0, 0.2, 0.25), abs=1e-9)
    assert whole.p90 == pytest.approx(0.24)


@given(st.floats(0.2, 5.0))
@settings(max_examples=15, deadline=None)
def test_a_machine_slower_by_a_factor_divides_all_predictions_by_it(toy, factor):
    usual, slow = (model.validate(times(toy, (f, 1.5 * f)), toy, samples=0).pairs for f in (1.0, factor))
    errors = [{p.row.id: p.error for p in pairs} for pairs in (usual, slow)]
    for name, error in errors[0].items():
        assert 1 + errors[1][name] == pytest.approx((1 + error) / factor)


@pytest.mark.ids("DD1")
def test_the_exchange_is_compared_by_itself_where_phases_hold_it(toy):
    one = predicted(toy)
    [pair] = model.validate([record(one.time_s, exchange=2 * one.exchange_s)], toy, samples=0).pairs
    assert pair.error == pytest.approx(0.0, abs=1e-9)
    assert pair.exchange_error == pytest.approx(-0.5)
    assert [e.group for e in model.grouped([pair], exchange=True)] == ["all", "ordered/p2p", pair.exchange_regime]


def test_an_exchange_counts_once_whichever_rank_does_the_work(toy):
    """One rank does all the work while the other waits; or both do half of it."""
    alike, uneven = (record(1e-3, exchange=4e-4) for _ in range(2))
    uneven["phases_s"]["wait"].update(min=0.0, max=2 * uneven["phases_s"]["wait"]["mean"])
    uneven["phases_s"]["pack"].update(min=0.0, max=2 * uneven["phases_s"]["pack"]["mean"])
    found = [model.validate([r], toy, samples=0).pairs[0].exchange_s for r in (alike, uneven)]
    assert found[0] == found[1] == pytest.approx(4e-4)


def test_phases_of_a_communication_thread_and_of_no_timers_say_nothing_of_the_exchange(toy):
    silent = record(1e-3, exchange=1e-4, strategy="direct/p2p")
    silent["request"]["timers"] = False
    threaded = record(1e-3, exchange=1e-4, schedule="comm-thread", threads=2)
    pairs = model.validate([silent, threaded, record(1e-3)], toy, samples=0).pairs
    assert len(pairs) == 3
    assert [p.exchange_error for p in pairs] == [None] * 3
    assert model.grouped(pairs, exchange=True) == []


def test_what_a_step_is_bound_by_follows_from_its_largest_term(toy):
    large = record(1.0, cells=(8192, 8192))
    small = record(1.0, cells=(16, 16))
    found = {p.row.request["cells"][0]: p.regime for p in model.validate([large, small], toy, samples=0).pairs}
    assert found == {8192: "compute-bound", 16: "latency-bound"}


def test_nothing_is_dropped_silently(toy):
    """Every choice is compared, or counted with a reason; with too many threads it is compared apart."""
    wrong = record(1e-3, status="failed", depth=2)
    crowded = record(1e-3, crowded=True, threads=2)
    unknown = record(1e-3, strategy="ordered/rma-pscw")
    precise = record(1e-3, strategy="direct:merged/p2p") | {"outcome": {"steps": [5, 5, 5], "enough": True}}
    about = {"schema": "haloscope.record", "schema_version": 2, "launch": {"id": "a"}}
    skipped = about | {"kind": "skipped", "id": "s", "reason": "no such MPI", "exit_code": 3}
    bench = about | {"kind": "microbench", "id": "m"}
    found = model.validate([record(1e-3), wrong, crowded, unknown, precise, skipped, bench], toy, samples=0)
    assert (len(found.pairs), len(found.crowded)) == (2, 1)
    assert sorted(p.row.step.value for p in found.pairs) == pytest.approx([1e-3, 2e-3])  # of half as many steps
    assert sum(found.left_out.values()) == 4
    text = "\n".join(found.left_out)
    for words in (
        "differs from `reference`",
        "no cost of transport 'rma-pscw'",
        "skipped: no such MPI",
        "kind microbench",
    ):
        assert words in text


def test_coverage_counts_measurements_inside_and_tests_the_share(toy):
    wide = changed(toy, lambda data: make_uncertain(kernel_row(data), "per_cell_s", 0.1))
    inside = model.coverage(model.validate(times(toy, (1.0, 1.01, 0.99)), wide).pairs)
    assert (inside.inside, inside.count) == (3, 3) and inside.p_value > 0.05
    outside = model.coverage(model.validate(times(toy, (2.0, 3.0, 0.5)), wide).pairs)
    assert outside.inside == 0 and outside.p_value == pytest.approx(0.1**3)
    assert model.coverage(model.validate(times(toy, (1.0,)), toy).pairs) is None


factors = st.lists(st.floats(0.5, 2.0), min_size=2, max_size=len(CHOICES))


@given(factors)
@settings(max_examples=30, deadline=None)
def test_regret_is_one_exactly_for_the_fastest_and_never_less(toy, factors):
    [case] = model.cases(model.validate(times(toy, factors), toy, samples=0).pairs)
    assert case.count == len(factors)
    fastest = min(p.row.step.value for p in (case.pick, case.best))
    assert case.best.row.step.value == fastest
    assert case.regret.value >= 1
    assert (case.regret.value == 1) == (case.pick.row.step.value == fastest)
    assert -1 <= case.order <= 1


def test_order_and_regret_by_hand(toy):
    right = model.cases(model.validate(times(toy, (1.0,) * 5), toy, samples=0).pairs)[0]
    assert right.order == pytest.approx(1.0) and right.pick is right.best
    guess = {c["strategy"]: predicted(toy, **c).time_s for c in CHOICES[:3]}
    upside_down = [record(1e-3 / t, strategy=s) for s, t in guess.items()]
    wrong = model.cases(model.validate(upside_down, toy, samples=0).pairs)[0]
    assert wrong.order == pytest.approx(-1.0)
    assert wrong.regret.value == pytest.approx(max(guess.values()) / min(guess.values()))
    assert mean_regret([right.regret.value, wrong.regret.value]) == pytest.approx(wrong.regret.value**0.5)


def test_grids_are_cases_of_their_own(toy):
    found = [record(1e-3), record(2e-3, strategy="direct/p2p"), record(1e-3, cells=(128, 128))]
    [case] = model.cases(model.validate(found, toy, samples=0).pairs)
    assert "256x256" in case.name


def test_records_of_another_machine_are_warned_about(toy):
    other = record(1e-3)
    other["environment"]["cpu"] = "Zilog Z80"
    texts = model.validate([other], toy, samples=0).warnings
    assert len(texts) == 1 and "Zilog Z80" in texts[0] and "another CPU" in texts[0]
    assert model.validate([record(1e-3)], toy, samples=0).warnings == ()


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_reports_and_draws(haloscope, tmp_path, toy):
    found = [record(t.time_s, exchange=t.exchange_s, **c) for c in CHOICES for t in [predicted(toy, **c)]]
    file = write(tmp_path / "r.jsonl", *found, '{"cut of')
    result = haloscope("validate", file, "--profile", TOY, "-o", tmp_path / "out" / "v")
    assert result.code == 0
    assert "line 6" in result.err
    for words in (
        "## Time of a step",
        "## Time of the exchange itself",
        "| all ",
        "## Intervals",
        "the profile contains none",
        "geometric mean 1.000, worst 1.000",
        "the pick",
        "5 choices",
    ):
        assert words in result.out
    signature, _, text = (tmp_path / "out" / "v.md").read_text().partition("\n\n")
    assert signature == "<!-- Written by haloscope validate -->" and text.strip() in result.out
    for suffix in (".svg", ".png"):
        assert (tmp_path / "out" / f"v{suffix}").stat().st_size > 5000


def test_launches_of_the_same_name_in_two_files_are_two_launches(tmp_path):
    files = [str(write(tmp_path / f"{n}.jsonl", record(n * 1e-3))) for n in (1, 2)]
    [pair] = model.validate(records.read_together(files), profile.load(TOY), samples=0).pairs
    assert sorted(len(v) for v in pair.row.launches.values()) == [3, 3]


def test_records_that_cannot_be_predicted_still_end_well(haloscope, tmp_path):
    file = write(tmp_path / "r.jsonl", record(1e-3, strategy="ordered/rma-pscw"))
    result = haloscope("validate", file, "--profile", TOY, "-o", "v")
    assert result.code == 0 and "## Not compared" in result.out and "rma-pscw" in result.out
    assert not Path("v.svg").exists()


@pytest.mark.parametrize(
    ("content", "words", "expected"),
    [
        (None, ("--profile", TOY), "cannot read the record file"),
        ("", ("--profile", TOY), "no records in"),
        ("nonsense\n", ("--profile", TOY), "no records in"),
        ("", ("--profile", "minervaa"), "did you mean minerva"),
        ("", (), "--profile"),
    ],
)
def test_bad_input_is_a_clear_error(haloscope, tmp_path, content, words, expected):
    file = tmp_path / "r.jsonl"
    if content is not None:
        file.write_text(content)
    result = haloscope("validate", file, *words)
    assert result.code == 2 and expected in result.err and "Traceback" not in result.err
