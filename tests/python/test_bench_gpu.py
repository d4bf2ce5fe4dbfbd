"""bench/gpu.py runs to its end on devices made of the CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from haloscope import build, launch, records

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """What a run on the host back end printed, and the folder of its records."""
    folder = tmp_path_factory.mktemp("gpu")
    built = build.rank_program().parent
    words = [sys.executable, str(ROOT / "bench" / "gpu.py"), "--device", "host", "--build", str(built), "--every", "29",
             "--output", str(folder)]  # fmt: skip
    mpi = Path(launch.mpiexec(built)).parent
    environment = os.environ | {"PATH": f"{mpi}:{os.environ['PATH']}"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, folder


def test_every_configuration_that_it_checks_is_right(measured):
    text, folder = measured
    records = [json.loads(line) for line in (folder / "verified.jsonl").read_text().splitlines()]
    assert len(records) > 20
    assert all(record["verification"]["status"] == "passed" for record in records)
    assert f"{len(records)} of {len(records)} configurations byte-identical" in text


def test_its_table_shows_every_kernel_and_the_steps(measured):
    text, folder = measured
    kernels = [json.loads(line) for line in (folder / "kernels.jsonl").read_text().splitlines()]
    assert not [line for line in kernels if "error" in line]
    for form in ("laplace2d star", "laplace3d star", "advection3d dense", "advection3d separable"):
        assert f"| {form}" in text
    assert "fused, 8 steps" in text and "pack, 6 faces" in text and "| steps | ranks |" in text
    assert (folder / "table.md").read_text().splitlines()[0] in text


def test_it_takes_the_records_of_a_calibration_along(measured):
    _, folder = measured
    found = [r for r in records.read(folder / "calibration.jsonl").records if r["kind"] == "calibration"]
    assert found and all(r["verification"]["status"] != "failed" for r in found)
