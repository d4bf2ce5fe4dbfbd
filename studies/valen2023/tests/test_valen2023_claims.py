"""Numbers in the text of the 2023 thesis: recomputed from its tables, and from records."""

from __future__ import annotations

import dataclasses

import pytest

from haloscope import studies
from haloscope.studies import checks
from haloscope_studies.valen2023 import claims, comparisons, replay
from haloscope_studies.valen2023 import study as valen2023
from reports import made_up, section

TITLE = "Numbers in the text of the thesis"


def test_every_claim_is_recomputed_as_in_the_digest():
    known = studies.published("valen2023", "claims")
    assert len(known) == 19
    for row, (claim, number) in zip(known, claims.recomputed(), strict=True):
        assert claim.text == row["claim"]
        assert number == pytest.approx(float(row["recomputed_from_tables"]), abs=1e-4), claim.text
        for machine in comparisons.MACHINES:
            assert machine not in claim.text or claim.machine == machine
        assert "side" not in claim.text or f"side {claim.side}" in claim.text


def test_claims_that_the_tables_confirm_have_bars_and_the_others_reasons():
    bars, others = claims.replayed()
    assert (len(bars), len(others)) == (10, 9)
    assert all(bar.state == checks.MET for bar in bars)
    assert all(one.why and one.published and one.ours for one in others)
    found = replay.replay()
    assert set(bars) < set(found.checks) and found.reports == tuple(others)


def test_a_bar_fails_where_the_tables_give_another_number(monkeypatch):
    cells = comparisons.published_table("V100")
    slower = {
        key: dataclasses.replace(
            cell, times={**cell.times, "unpack": cell.times["unpack"] * (1 + 0.01 * (key[2] == 1))}
        )
        for key, cell in cells.items()
    }
    monkeypatch.setattr(comparisons, "published_table", lambda _: slower)
    bars, _ = claims.replayed()
    assert [bar.what for bar in bars if bar.state == checks.MISSED and "unpacking" in bar.what] == [
        "phased unpacking, V100, side 30000, depth 1 over 8"
    ]


def report(**changes) -> list[list[str]]:
    """Return the table of claims in the report of runs that take 2 s at depth 1 and 1 s at all others."""
    options = dataclasses.replace(valen2023.DEFAULTS["full"], sizes=(35000,), **changes)
    found = made_up(valen2023.plan(options).requests, lambda choice: (1 + (choice.depth == 1)) / 10)
    for record in found:
        record["request"] |= {"steps": options.steps, "process_grid": [options.ranks // 2, 2]}
    return section(valen2023.report(found, options), TITLE)


def test_claims_stand_next_to_runs_of_their_side_ranks_and_steps():
    rows = {row[0]: row for row in report()}
    assert len(rows) == 19
    first = rows["speed-up, A100, side 35000: ordered overlap depth 8 over ordered phased depth 1"]
    assert first[1:3] == ["1.1736", "1.17363"] and first[4].startswith(("1.9", "2.0"))
    assert all(bool(row[4]) == ("35000" in name or name == "ratio of the two") for name, row in rows.items())


@pytest.mark.parametrize("change", [{"steps": 128}, {"ranks": 2}, {"device": "host"}])
def test_other_runs_and_imitated_devices_stand_next_to_no_claim(change):
    assert all(row[4] == "" for row in report(**change))
