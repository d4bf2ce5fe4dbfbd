"""Results of poisson2d stay what they were: checksums of 8 configurations, recorded at commit 4dd6244."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from test_checksums import check_results

RECORDED = [json.loads(line) for line in Path(__file__).with_name("checksums.jsonl").open()]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_results_of_poisson2d_have_the_bytes_that_they_had_before(ranks, tmp_path):
    check_results([r for r in RECORDED if r["request"]["ranks"] == ranks], tmp_path / "r.jsonl")


def test_every_recorded_configuration_is_run():
    assert len(RECORDED) == 8 and {r["request"]["ranks"] for r in RECORDED} == {1, 2, 3}
