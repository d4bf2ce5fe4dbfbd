"""Published ping-pongs of Davis 2017, as programs print them."""

from __future__ import annotations

from pathlib import Path

import pytest

from haloscope import studies
from haloscope.measure import importers
from haloscope.records.curves import group_curves
from haloscope.report import contention
from test_importers import curves


def published_of(machine: str) -> list[dict]:
    rows = [r for r in studies.published("davis2017", "pingpong") if r["machine"] == machine]
    return [r | {"message_bytes": int(r["message_bytes"]), "time_us": float(r["time_us"])} for r in rows]


@pytest.mark.ids("DC7")
def test_published_times_of_several_pairs_give_the_factors_of_the_thesis(tmp_path):
    """DawnDev, 16 KiB: four pairs per link take 3.5 to 3.9 times one pair; two pairs in a node 1.56 times one."""
    link = contention_of(tmp_path, "inter")
    assert set(link) == {64, 128, 256} and all(3.5 <= round(f, 1) <= 3.9 for f in link.values()), link
    assert contention_of(tmp_path, "intra") == {2: pytest.approx(1.56, abs=0.005)}


def contention_of(folder: Path, placement: str) -> dict[int, float]:
    """Write DawnDev's table as IMB prints such runs, and return the factors at 16 KiB by pairs."""
    text = []
    for row in published_of("dawndev"):
        if row["placement"] == placement:
            pairs = int(row["pairs"])
            who = "#processes = 2" if pairs == 1 else f"( {pairs} groups of 2 processes each running simultaneous )"
            text.append(
                f"# Benchmarking {'Multi-' * (pairs > 1)}PingPong \n# {who} \n"
                f" #bytes #repetitions t[usec] Mbytes/sec\n {row['message_bytes']} 1000 {row['time_us']} 0.00\n"
            )
    (folder / placement).write_text("".join(text))
    table = group_curves(importers.read(folder / placement).records)
    return {c.curve.pairs: c.factors[16384].value for c in contention.measured(table)}


@pytest.mark.ids("DB4")
def test_a_round_trip_of_skampi_is_the_published_one():
    published = {(r["benchmark"], r["message_bytes"], r["quantity"]): r["time_us"] for r in published_of("hera")}
    pair = curves("skampi.txt")[0]
    assert 2 * pair.time(16384).value * 1e6 == pytest.approx(published["SKaMPI send-recv", 16384, "round_trip"])
