"""The replay of the 2017 study: every checklist row that its printed data allow, and what the command prints."""

from __future__ import annotations

import csv
import re

import pytest

from haloscope import studies
from haloscope.model import network, placement, profile
from haloscope.studies import DATA, checks
from haloscope.studies.davis2017 import checks as davis2017_checks
from haloscope.studies.davis2017 import hydra_runs, whatif
from haloscope.studies.davis2017 import results as davis2017_results
from haloscope.studies.davis2017 import study as davis2017
from haloscope.studies.davis2017.walltime import predict

ROWS = [f"C{i}" for i in range(1, 14)] + ["D1", "D3", "F1", "F2", "F3", "F4", "F5", "H2"]


@pytest.fixture(scope="module")
def replayed() -> checks.Replay:
    return davis2017.replay()


@pytest.mark.ids(*(f"D{row}" for row in ROWS))
def test_every_row_is_replayed_and_reaches_its_bar(replayed):
    assert list(dict.fromkeys(c.id for c in replayed.checks)) == ROWS
    assert [c for c in replayed.checks if c.state == checks.MISSED] == []


def test_exceptions_are_only_the_documented_defects_and_say_why(replayed):
    found = [c for c in replayed.checks if c.state == checks.EXCEPTION]
    assert all(c.note for c in found)
    assert {re.sub(r"\d+ ranks", "", c.what).strip() for c in found} == {
        "model's exchange, weak,",
        "model's exchange, strong,",
        "printed components, weak,",
        "error, dawndev 50^3 weak,",
        "sockets, , node balanced",
    }
    ranks = [int(re.search(r"(\d+) ranks", c.what)[1]) for c in found if c.what.startswith("model's")]
    assert ranks == [16, 32, 64, 128, 256] * 2


@pytest.mark.ids("DD1")
def test_signed_errors_are_recomputed_for_all_fifty_runs(replayed):
    part = replayed.text.split("## Walltime", 1)[1].split("\n## ", 1)[0]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines() if line.startswith("|")][2:]
    assert len(lines) == 50
    off = [abs(float(row[6][:-1]) - float(row[7][:-1])) for row in lines]
    assert sorted(off)[-2] <= 0.05 < max(off) < 0.4  # one misprint
    assert all(bool(row[8]) == (row[0] == "minerva") for row in lines)


@pytest.mark.ids("DC8")
def test_collectives_have_the_derived_values():
    p, app = profile.load("minerva"), hydra_runs.validated()
    wanted = (0.003, 0.006, 0.009, 0.012, 0.025, 0.038, 0.051, 0.066)
    found = [predict(app, p, hydra_runs.run("weak", r)).components["collectives"] for r in hydra_runs.PROCESSES[1:]]
    assert found == pytest.approx(wanted, abs=0.0005)


@pytest.mark.ids("DC7")
def test_the_models_exchange_is_replayed_within_seven_percent_up_to_eight_processes():
    p, app = profile.load("minerva"), hydra_runs.validated()
    for scaling in ("weak", "strong"):
        for ranks in (2, 4, 8):
            found = predict(app, p, hydra_runs.run(scaling, ranks)).components["point_to_point"]
            assert found == pytest.approx(hydra_runs.model_column(scaling, ranks, "point_to_point"), rel=0.07)


@pytest.mark.ids("DD3")
def test_costs_of_one_node_predict_more_nodes_within_fifteen_percent():
    for c in davis2017_results.held_out():
        assert abs(float(re.search(r"([+-][\d.]+)%", c.ours)[1])) < 15


@pytest.mark.ids("DF2")
def test_node_hours_weigh_time_by_nodes():
    assert whatif.cost_ratio(427.39, 6, 700.35, 1) == pytest.approx(3.66, abs=0.005)


@pytest.mark.ids("DF4")
def test_crossings_are_found_to_the_rank_or_denied():
    rising, flat = (lambda p: 10.0 + p), (lambda p: 1000.0)
    for least in (1, 3, 989):
        assert whatif.crossover(rising, flat, least, 10**6) == 990
        assert whatif.crossover(flat, rising, least, 10**6) in (990, 991)
    assert whatif.crossover(rising, flat, 1, 989) is None
    curve = whatif.logarithmic([2, 8, 32], [1.0, 3.0, 5.0])
    assert curve(128) == pytest.approx(7.0)


@pytest.mark.ids("DF1")
def test_fewer_ranks_per_socket_take_more_nodes_and_less_time():
    found = davis2017_results._occupancies(64)
    assert [case.nodes for case in found] == [32, 16, 8, 6]
    assert [case.prediction.total for case in found] == sorted(case.prediction.total for case in found)


@pytest.mark.ids("DH2")
def test_every_published_table_loads_and_has_no_hole():
    for file in (DATA / "davis2017").glob("*.csv"):
        rows = studies.published("davis2017", file.stem)
        header = next(csv.reader(file.open(newline="")))
        assert rows and all(list(row) == header and None not in row.values() for row in rows), file


def test_a_missed_bar_ends_the_command_with_code_1(haloscope, monkeypatch):
    bad = checks.Check("C1", "a result", "1", "2", "equal", checks.MISSED)
    monkeypatch.setattr(davis2017, "replay", lambda: checks.Replay(checks.table([bad]), (bad,)))
    result = haloscope("study", "davis2017", "--replay")
    assert result.code == 1 and "MISSED" in result.out


def test_the_command_prints_the_tables_and_ends_well(haloscope):
    result = haloscope("study", "davis2017", "--replay")
    assert result.code == 0 and "| C13 " in result.out and "| H2 " in result.out
    assert re.search(r"\d+ of \d+ results reach their bar, 0 miss it, 14 are exceptions", result.out)


def test_without_replay_it_says_that_the_app_is_missing(haloscope):
    result = haloscope("study", "davis2017")
    assert result.code == 3 and "hydro3d" in result.err and "--replay works" in result.err


def test_a_study_that_has_nothing_to_replay_names_those_that_have(haloscope):
    result = haloscope("study", "schroeter2021", "--replay")
    assert result.code == 2 and "davis2017" in result.err


def _slower_messages(monkeypatch):
    monkeypatch.setattr(network, "message_time", lambda p, where, size: 2e-6 + 4e-10 * size)


def _one_gather_less(monkeypatch):
    less = hydra_runs.validated()
    monkeypatch.setattr(davis2017_checks.terms, "load", lambda name: less)


def _one_pair_more(monkeypatch):
    monkeypatch.setattr(placement.PairCounts, "worst", ((9, 9, 9), (9, 9, 9)))


@pytest.mark.parametrize(
    ("wrong", "seen_by"),
    [
        (_slower_messages, davis2017_checks.collectives),
        (_one_gather_less, davis2017_checks.terms_of_an_iteration),
        (_one_pair_more, davis2017_checks.pair_counts),
        (_one_pair_more, davis2017_checks.recovered_exchange),
    ],
)
def test_a_wrong_model_misses_its_bars(wrong, seen_by, monkeypatch):
    right = [c.state for c in seen_by()]
    wrong(monkeypatch)
    assert checks.MISSED not in right
    assert checks.MISSED in [c.state for c in seen_by()]
