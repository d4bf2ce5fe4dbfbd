"""Figure `subnormal`: when it is judged."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from bench import __main__ as bench


@pytest.mark.parametrize(("slow", "flushed", "holds"), [(9.0, 1.1, True), (9.0, 1.2, False), (1.1, 1.2, None)])
def test_flushing_to_zero_is_judged_where_the_cpu_slows_down_without_it(monkeypatch, capsys, slow, flushed, holds):
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[1] / "bench")
    subnormal = importlib.import_module("subnormal")
    [short, _] = subnormal.CASES

    def of_work(factor: float):
        rows = [[1.0] * short.blocks for _ in range(short.steps // short.window)]
        for block in short.bands[short.steps]:
            rows[-1][block] = factor
        return short.of_work(rows) * 3

    subnormal.report(short, of_work(slow), of_work(flushed))
    usual, zero = (bench.judged([json.loads(line)]) for line in capsys.readouterr().out.splitlines())
    assert (usual["value"], usual["holds"]) == (pytest.approx(slow), None)
    assert (zero["value"], zero["holds"]) == (pytest.approx(flushed), holds)
    assert [f["notes"] == subnormal.NO_SLOWER for f in (usual, zero)] == [holds is None] * 2
