"""Replay of the 2021 study: every printed result that its data allow, and bars that can be missed."""

from __future__ import annotations

from collections import Counter

import pytest

from haloscope import studies
from haloscope.studies import checks
from haloscope_studies.schroeter2021 import precision, replay
from reports import section


@pytest.mark.ids("SA1", "SA3", "SB4", "SG2")
def test_all_printed_results_are_reached(haloscope):
    result = haloscope("study", "schroeter2021", "--replay")
    assert result.code == 0, result.err
    found = replay.replay()
    counts = Counter(check.id for check in found.checks)
    assert counts == {"SA3": 27, "SG2": 16, "SA1": 8, "SA5": 2, "SB4": 2, "SH1": 2, "SE6": 2, "SI1": 2}
    assert not found.missed and not found.surprises
    assert f"{len(found.checks)} of {len(found.checks)} results reach their bar." in result.out
    assert "not printed" in result.out and result.out.count("7.0753e-05") == 1
    assert len(section(result.out.replace("## ", "### "), "Winners by case and machine")) == 7


def change(monkeypatch, table: str, number: int, column: str, value: str) -> None:
    """Change one published value."""
    rows = [dict(row) for row in studies.published("schroeter2021", table)]
    rows[number][column] = value
    other = replay.published
    monkeypatch.setattr(replay, "published", lambda study, name: rows if name == table else other(study, name))


@pytest.mark.parametrize(
    ("table", "number", "column", "value", "made"),
    [
        ("reference_residuals", 4, "residuum", "2.332826e-04", replay.residuals),
        ("reference_residuals", 8, "target", "9.99e-5", replay.residuals),
        ("weak_scaling_precisions", 1, "residuum", "3.591015e-03", replay.weak_precisions),
        ("table_5_1", 3, "entries_per_matrix", "1999252368", replay.sizes),
        ("winner_matrix", 13, "winner", "P2P", replay.winners),
    ],
)
def test_a_wrong_number_misses_its_bar(monkeypatch, table, number, column, value, made):
    monkeypatch.setattr(precision, "residuals", quick_residuals(precision.residuals))
    before = [check.state for check in made()]
    change(monkeypatch, table, number, column, value)
    after = [check.state for check in made()]
    assert set(before) == {checks.MET} and Counter(after)[checks.MISSED] == 1


def quick_residuals(usual):
    """The published residuals of the largest grid, which take seconds to compute; all others as computed."""
    large = {5000: ("7.076793e-05", "7.075351e-05"), 5001: ("7.075351e-05", "7.073911e-05")}

    def found(method, interlines, iteration, function=1):
        if (method, interlines) == ("gauss-seidel", 512):
            return tuple(map(float, large[iteration]))
        return usual(method, interlines, iteration, function)

    return found


def test_an_overshoot_beyond_the_bound_misses_it(monkeypatch):
    assert [replay.most_extra(ranks) for ranks in (1, 4, 96)] == [2, 8, 192]
    monkeypatch.setattr(replay, "most_extra", lambda ranks: ranks)  # 5 of 4 ranks, 162 of 96
    assert [check.state for check in replay.overshoot()] == [checks.MISSED] * 2


def test_residuals_agree_to_one_unit_of_the_seventh_digit():
    assert replay.is_equal(9.990391e-9, 9.990392e-9) and not replay.is_equal(9.990390e-9, 9.990392e-9)
    assert replay.is_equal(1.000001, 1.0) and not replay.is_equal(1.000002, 1.0)
