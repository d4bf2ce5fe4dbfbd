"""Emulated clusters: hosts of one machine with a network between them, and ranks that are spread over them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haloscope import records, scratch
from haloscope.errors import UnavailableError, UsageError
from haloscope.measure import cluster, hosts, launch
from haloscope.model import link
from haloscope.options.hosts import options_without
from programs import executable, has_ended, run

needs_namespaces = pytest.mark.skipif(bool(cluster.missing()), reason=cluster.missing() or "there are namespaces")
COMMAND = (sys.executable, "-m", "haloscope.cli")
SAY = """
import json, os, socket, sys
name = socket.gethostname()
open("/dev/shm/of-" + name, "w").close()
shared = [file for file in os.listdir("/dev/shm") if file.startswith("of-")]
open(sys.argv[1] + name, "w").write(json.dumps([shared, sorted(os.sched_getaffinity(0))]))
"""


# ---- how users write it ----------------------------------------------------------------------------------------------


@given(st.floats(0, 1e4), st.sampled_from(sorted(link.SECONDS)))
def test_a_time_is_read_as_it_is_written(number, unit):
    assert link.time_of(f"{number!r}{unit}") == pytest.approx(number * link.SECONDS[unit], rel=1e-14)
    assert link.time_of(f" {number!r} {unit.upper()} ") == link.time_of(f"{number!r}{unit}")


@given(st.floats(0, 1e4), st.sampled_from(sorted(link.BYTES_PER_S)))
def test_a_rate_is_read_as_it_is_written_bits_and_bytes_apart(number, unit):
    assert link.rate_of(f"{number!r}{unit}") == pytest.approx(number * link.BYTES_PER_S[unit], rel=1e-14)
    assert link.rate_of(f"{number!r} {unit}/s") == link.rate_of(f"{number!r}{unit}")


@pytest.mark.parametrize("text", ["", "fast", "5", "-5us", "5 parsec", "1e", "us", "..us"])
def test_what_is_no_time_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match="is not a time; write it as 50us"):
        link.time_of(text)


@pytest.mark.parametrize("text", ["1", "1gb", "1GBIT", "-1Gbit"])
def test_what_is_no_rate_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match="is not a bandwidth; write it as 1Gbit"):
        link.rate_of(text)


@pytest.mark.parametrize("count", [-1, 0, 1, 201])
def test_a_cluster_has_two_hosts_or_more(count):
    with pytest.raises(UsageError, match="use 2 to 200"):
        link.Link(count)


def test_the_network_says_what_it_is():
    network = link.Link(2, 50e-6, 125e6, 5e-6)
    assert network.text == "emulated network of 2 hosts: latency 50 us, 1 Gbit/s, jitter 5 us"
    assert link.Link(**json.loads(network.to_json())) == network


def test_options_of_the_cluster_need_one(haloscope):
    done = haloscope("run", "laplace2d", "--cells", "24", "--latency", "50us")
    assert done.code == 2
    assert "add --lab 2" in done.err


def test_a_command_is_given_again_without_the_options_of_the_cluster():
    words = ["run", "app", "--lab", "2", "--latency=5us", "--cells", "24", "--jitter", "1us", "--resume"]
    assert options_without(words, ("--lab", "--latency", "--jitter")) == ["run", "app", "--cells", "24", "--resume"]


# ---- where ranks run -------------------------------------------------------------------------------------------------


def test_hosts_come_from_a_list_or_from_a_file_as_that_of_mpiexec(tmp_path):
    file = tmp_path / "hosts"
    file.write_text("# the cluster\nnode1 slots=2\n\nnode2:4\nnode1\n")
    assert hosts.read(str(file)) == hosts.read("node1,node2") == ["node1", "node2"]
    for wrong in (
        "node one",
        "node1,,node2",
        "1,2",
        "-1",
        "",
        "n[2-1]",
        "n[1-2,5-3]",
        "n[1-2",
        "[1-2]",
    ):  # ssh takes 1 for the address 0.0.0.1, -1 for an option
        with pytest.raises(UsageError, match="names no hosts"):
            hosts.read(wrong)


def test_hosts_come_from_the_lists_of_slurm_and_of_launchers(tmp_path):
    (tmp_path / "hosts").write_text("node[1-2]:4\nlogin\n")
    assert hosts.read(str(tmp_path / "hosts")) == ["node1", "node2", "login"]
    assert hosts.read("node[01-03,07],x") == ["node01", "node02", "node03", "node07", "x"]
    assert hosts.read("r[1-2]n[8,10]:2,a*4") == ["r1n8", "r1n10", "r2n8", "r2n10", "a"]
    with pytest.raises(UsageError, match="names no hosts"):
        hosts.read("n[1-99999]m[1-99999]")  # more than memory holds


def test_hosts_of_a_command_are_those_of_its_ranks_alone(monkeypatch):
    monkeypatch.delenv(hosts.VARIABLE, raising=False)
    with hosts.host_list("a,b"):
        assert hosts.names() == ["a", "b"]
        with hosts.host_list(None):
            assert hosts.names() == ["a", "b"]
    assert hosts.names() == []


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("HYDRA build details", ["-hosts", "a,b", "-ppn", "2", "-bind-to", "core:4"]),
        ("mpirun (Open MPI) 5.0.3", ["--host", "a:2,b:2", "--map-by", "slot:PE=4", "--bind-to", "core"]),
        (
            "slurm 23.02.1",
            [
                "--nodes=2",
                "--nodelist=a,b",
                "--ntasks-per-node=2",
                "--cpus-per-task=4",
                "--cpu-bind=cores",
                "--distribution=block:block",
            ],
        ),
    ],
)
def test_ranks_are_spread_over_hosts_in_blocks_each_pinned_there(monkeypatch, tmp_path, version, expected):
    path = executable(tmp_path / "mpiexec", f"echo '{version}'\n")
    monkeypatch.setenv(hosts.VARIABLE, "a,b")
    monkeypatch.setattr(launch, "cores_here", lambda: 8)
    monkeypatch.setattr(launch, "physical_cores", lambda: 8)
    words = launch.launcher_words(path, 3, 4)
    assert words[:3] == [str(path), "-n", "3"]
    assert [word for word in words[3:] if word != "--allow-run-as-root"] == expected
    assert launch.cores() == 16


# ---- the cluster itself ----------------------------------------------------------------------------------------------


def test_a_machine_without_the_tools_says_what_to_install(monkeypatch):
    monkeypatch.setattr(cluster.shutil, "which", lambda tool: None if tool == "ip" else f"/bin/{tool}")
    with pytest.raises(UnavailableError, match="needs iproute2"):
        cluster.Cluster(link.Link()).__enter__()


@needs_namespaces
@pytest.mark.parametrize("user", ["root", "anybody"])
def test_hosts_have_names_shared_memory_and_cores_of_their_own(monkeypatch, tmp_path, user):
    if user == "anybody":
        monkeypatch.setattr(cluster.os, "geteuid", lambda: 1000)  # then a user namespace comes first
        if cluster.missing():
            pytest.skip(cluster.missing())
    words = [str(launch.mpiexec()), "-n", "2", sys.executable, "-c", SAY, f"{tmp_path}/"]
    with cluster.Cluster(link.Link()) as made:
        subprocess.run(made.command(words), env=os.environ | made.environment(), check=True, timeout=60)
    cores = [sorted(share) for share in cluster._shares(sorted(os.sched_getaffinity(0)), 2)]
    for k in range(2):
        assert json.loads((tmp_path / f"node{k}").read_text()) == [[f"of-node{k}"], cores[k]]


@needs_namespaces
def test_more_ranks_than_hosts_come_in_blocks(monkeypatch):
    with cluster.Cluster(link.Link(3)) as made:
        for name, value in made.environment().items():
            monkeypatch.setenv(name, value)
        words = [*launch.launcher_words(launch.mpiexec(), 5, 1), "sh", "-c", "echo $PMI_RANK $(hostname)"]
        output = run(*made.command(words), timeout=60)
    assert sorted(output.split("\n"))[1:] == ["0 node0", "1 node0", "2 node1", "3 node1", "4 node2"]


def round_trip(size: int, network: link.Link) -> float:
    """Seconds of a message of `size` bytes to another host and of one byte back."""
    server = (
        "import socket; s = socket.create_server(('node1', 9000)); print('up', flush=True); c, _ = s.accept()\n"
        f"n = 0\nwhile n < {size}: n += len(c.recv(1 << 20))\nc.sendall(b'1')"
    )
    client = (
        f"import socket, time; c = socket.create_connection(('node1', 9000)); t = time.time(); "
        f"c.sendall(bytes({size}))\n"
        "c.recv(1); print(time.time() - t)"
    )
    with cluster.Cluster(network) as made:
        other = subprocess.Popen(
            made.command([sys.executable, "-c", server], host=1), stdout=subprocess.PIPE, text=True
        )
        assert other.stdout.readline() == "up\n"
        seconds = run(*made.command([sys.executable, "-c", client]), timeout=60)
        other.wait(timeout=10)
    return float(seconds)


@needs_namespaces
def test_no_message_is_faster_than_the_latency_allows():
    assert round_trip(1, link.Link(latency_s=0.02)) >= 0.04


@needs_namespaces
def test_no_message_is_faster_than_the_bandwidth_allows():
    assert round_trip(1_000_000, link.Link(bandwidth_bytes_per_s=10e6)) >= 0.1


@needs_namespaces
def test_a_command_is_run_here_and_its_exit_code_is_that_of_the_cluster(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cluster.inside(["sh", "-c", "pwd > place; exit 7"], link.Link()) == 7
    assert Path("place").read_text().strip() == str(tmp_path)


@needs_namespaces
def test_nothing_is_left_when_the_command_is_killed(tmp_path):
    words = [*COMMAND, "lab", "--", "sh", "-c", "echo $$ > number; hostname; exec sleep 60"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout.readline() == "node0\n"
        children = run("ps", "-o", "pid=", "--ppid", process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for number in {(tmp_path / "number").read_text(), *children.split()}:
            assert has_ended(int(number), 10), number
    assert str(process.pid) in {path.name.split("-")[3] for path in scratch.sweep(scratch.LAB)}


@needs_namespaces
def test_a_run_in_a_cluster_is_right_and_its_records_say_that_the_network_is_emulated(haloscope, tmp_path):
    words = (
        "run laplace2d --lab 2 --latency 50us --bandwidth 1Gbit --cells 24 --launches 1 --steps 4 --repetitions 1 "
        "--depth 1,2 --strategy ordered/p2p,direct/shared+p2p --output r.jsonl"
    )
    output = run(*COMMAND, *words.split(), cwd=tmp_path, timeout=120)
    assert "emulated network of 2 hosts: latency 50 us, 1 Gbit/s" in output
    found = records.read(tmp_path / "r.jsonl").records
    assert len(found) == 4
    for record in found:
        assert record["verification"]["status"] == "passed"
        assert record["environment"]["hosts"] == ["node0", "node1"]
        assert link.Link(**record["environment"]["emulated_network"]) == link.Link(2, 50e-6, 125e6)


def test_this_machine_is_left_as_it_was():
    assert not socket.gethostname().startswith("node0")
    assert hosts.names() == []
    assert link.current() is None
