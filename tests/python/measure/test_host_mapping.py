"""Mappings of ranks to hosts and sockets: their loads, the words of launchers, the cores of ranks, and refusals."""

from __future__ import annotations

import os
import subprocess

import pytest

from haloscope import errors
from haloscope.measure import host_mapping, launch
from haloscope.measure.host_mapping import HostMapping
from test_launch import executable


@pytest.mark.parametrize(
    ("rule", "ranks", "loads", "of_hosts"),
    [
        ("fill", 16, {6: 2, 4: 1}, [12, 4]),
        ("balanced", 16, {6: 2, 2: 2}, [8, 8]),
        ("by-socket", 16, {4: 4}, [8, 8]),
        ("by-socket", 5, {3: 1, 2: 1}, [5]),
    ],
)
def test_loads_of_sockets_and_hosts_follow_from_the_rule(rule, ranks, loads, of_hosts):
    mapping = HostMapping(rule, 2, 6)
    assert mapping.loads(ranks) == loads and list(mapping.loads(ranks)) == sorted(loads, reverse=True)
    assert mapping.of_hosts(ranks, available=2) == of_hosts


def test_ranks_that_need_more_hosts_are_refused_with_the_sockets_that_fit():
    with pytest.raises(errors.UsageError, match=r"need 3 hosts of 2 sockets with 6 ranks.*there are 2.*--sockets 2x8"):
        HostMapping("fill", 2, 6).of_hosts(32, available=2)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("HYDRA build details", ["-hosts", "node0:12,node1:4"]),
        ("mpirun (Open MPI) 5.0.3", ["--host", "node0:12,node1:4", "--bind-to", "none", "--oversubscribe"]),
    ],
)
def test_a_launcher_gets_the_ranks_of_each_host_and_pins_none(monkeypatch, tmp_path, version, expected):
    monkeypatch.setenv("HALOSCOPE_HOSTS", "node0,node1,node2")
    path = executable(tmp_path / "mpiexec", f"echo '{version}'\n")
    words = launch.launcher_words(path, 16, 1, [12, 4])
    assert [word for word in words[3:] if word != "--allow-run-as-root"] == expected


def test_slurm_maps_ranks_by_its_own_options(tmp_path):
    with pytest.raises(errors.UnavailableError, match="--mapping needs the mpiexec of MPICH or Open MPI"):
        launch.launcher_words(executable(tmp_path / "srun", "echo slurm 23\n"), 2, 1, [2])


@pytest.mark.parametrize("variable", ["PMI_RANK", "OMPI_COMM_WORLD_RANK"])
def test_a_rank_runs_on_its_part_of_the_allowed_cores(tmp_path, variable):
    cores = sorted(os.sched_getaffinity(0))
    half = len(cores) // 2
    words = HostMapping("by-socket", 2, 2).start_words(4, tmp_path)
    environment = {k: v for k, v in os.environ.items() if k not in ("PMI_RANK", "OMPI_COMM_WORLD_RANK")}

    def of(rank: int) -> list[int]:
        program = ["python3", "-c", "import os, sys; print(sorted(os.sched_getaffinity(0)), sys.argv[1:])", "a b", "--"]
        done = subprocess.run(
            [*words, *program], env=environment | {variable: str(rank)}, capture_output=True, text=True, check=True
        )
        assert done.stdout.endswith(" ['a b', '--']\n")
        return [int(core) for core in done.stdout[1 : done.stdout.index("]")].split(",")]

    parts = [cores[:half] or cores, cores[half:]]  # cores of one package are in the order of their numbers
    found = [of(rank) for rank in range(4)]
    assert found[0] == found[2] and found[1] == found[3]
    if len({host_mapping._package(core) for core in cores}) == 1:
        assert found[:2] == parts


def test_the_report_names_the_load_of_sockets_and_that_they_are_emulated():
    def line(**environment) -> str:
        mapping = {"rule": "fill", "sockets": 2, "cores": 6}
        record = {"request": {"ranks": 8}, "environment": {"mapping": mapping, **environment}}
        [text] = host_mapping.lines([record, record, {"environment": {}}])
        return text

    whole = "mapping fill to hosts of 2 sockets for 6 ranks: 8 ranks, 1 socket with 6, 1 socket with 2"
    assert line(cores=12, sockets=2) == whole
    assert line(cores=2, sockets=1) == f"{whole}; sockets are emulated: a host has 2 cores in 1 socket"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--mapping", "socket"), "unknown mapping 'socket'"),
        (("--mapping", "fill", "--sockets", "2"), "--sockets 2 is not sockets x ranks of each; give 2x6"),
        (("--sockets", "2x6"), "--sockets describes the hosts of a mapping; add --mapping fill"),
        (("--mapping", "fill", "--sockets", "1x2"), "4 ranks by 'fill' need 2 hosts of 1 sockets with 2 ranks each"),
    ],
)
def test_mappings_that_cannot_be_are_refused(haloscope, words, error):
    result = haloscope("run", "laplace2d", "--cells", "16x16", "-n", "4", "--steps", "1", "--launches", "1", *words)
    assert result.code == errors.USAGE and error in " ".join(result.err.split()), result.err
