"""Job scripts for Slurm: golden files, and what cannot be spread over nodes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from haloscope.errors import HaloscopeError, UsageError
from haloscope.measure import slurm, space
from programs import ended, executable

GOLDEN = Path(__file__).parent / "golden"


def job(**changes) -> slurm.Job:
    requests = space.expand(
        "laplace2d",
        {"cells": [(96, 96)], "ranks": [8], "strategy": ["direct/p2p", "ordered/p2p"]},
        {"steps": 10, "repetitions": 1},
    ).requests
    plain = {
        "name": "golden-2x4",
        "about": "Two nodes with four ranks each",
        "requests": tuple(requests),
        "nodes": 2,
        "minutes": 90,
    }
    return slurm.Job(**(plain | changes))


@pytest.mark.ids("SG7")
@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("golden-2x4", {}),
        ("golden-cluster", {"name": "golden-cluster", "partition": "compute", "account": "ab0123", "repeats": 5}),
        (
            "golden-threads",
            {
                "name": "golden-threads",
                "nodes": 1,
                "binding": "threads",
                "distribution": "cyclic",
                "oversubscribe": True,
            },
        ),
    ],
)
def test_a_job_script_is_the_golden_one(name, changes):
    assert job(**changes).script() == (GOLDEN / f"{name}.sbatch").read_text()


@pytest.mark.ids("SG7")
def test_the_requests_of_a_job_are_the_golden_ones():
    assert job().lines() == (GOLDEN / "golden-2x4.requests.jsonl").read_text()


@pytest.mark.ids("SG7")
def test_written_scripts_are_valid_shell_and_repeat_each_run_with_its_own_launch(tmp_path):
    files = slurm.write([job()], tmp_path)
    assert sorted(f.name for f in files) == ["golden-2x4.requests.jsonl", "golden-2x4.sbatch", "submit.sh"]
    for script in ("golden-2x4.sbatch", "submit.sh"):
        assert subprocess.run(["bash", "-n", tmp_path / script], check=False).returncode == 0
    calls = tmp_path / "calls"
    executable(tmp_path / "srun", f'echo "$@" >> {calls}')
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HALOSCOPE_RANK": "/opt/haloscope-rank"}
    subprocess.run(["bash", "golden-2x4.sbatch"], cwd=tmp_path, env=environment, check=True)
    lines = calls.read_text().splitlines()
    assert [line.split("--launch-id ")[1].split()[0] for line in lines] == ["launch-1", "launch-2", "launch-3"]
    assert all("--cpu-bind=cores" in line and "--ntasks-per-node=4" in line for line in lines)
    assert all("/opt/haloscope-rank --requests golden-2x4.requests.jsonl" in line for line in lines)


def test_without_the_program_s_path_a_job_ends_with_what_to_set(tmp_path):
    slurm.write([job()], tmp_path)
    environment = {k: v for k, v in os.environ.items() if k != "HALOSCOPE_RANK"}
    result = ended("bash", "golden-2x4.sbatch", cwd=tmp_path, env=environment)
    assert result.returncode != 0 and "HALOSCOPE_RANK" in result.stderr


def test_ranks_that_do_not_fill_the_nodes_evenly_are_refused():
    with pytest.raises(UsageError, match="8 ranks cannot be spread evenly over 3 nodes"):
        job(nodes=3).script()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HaloscopeError, match="file/jobs"):
        slurm.write([job()], tmp_path / "file" / "jobs")
