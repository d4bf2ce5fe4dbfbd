"""Starting the ranks and what they leave behind: pinning, the right mpiexec, records, resuming, comparing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from guest_cases import guest_cases
from haloscope import bridge, records
from haloscope.errors import UnavailableError
from haloscope.measure import campaign, launch
from haloscope.measure.request import Request
from programs import executable
from test_records import measurement, write

SMALL = ("--cells", "24", "--launches", "2", "--steps", "4", "--repetitions", "2")


def test_mpiexec_is_the_one_beside_the_compiler_of_the_build(monkeypatch):
    monkeypatch.delenv("HALOSCOPE_MPIEXEC", raising=False)
    beside = Path(launch.cmake_cache("MPI_CXX_COMPILER")).parent
    assert launch.mpiexec().parent == beside


def test_the_choice_of_auto_is_in_the_record_and_depends_on_no_earlier_program(measure, tmp_path, monkeypatch):
    monkeypatch.setenv("HALOSCOPE_CACHE", str(tmp_path / "cache"))
    [record] = measure("laplace2d --cells 24 --ranks 2 --strategy auto --launches 1 --steps 1000 --repetitions 2")
    assert record["request"]["strategy"] == "ordered/auto"
    assert re.match(r"auto: chose \S+, \d+ trials of \(exchange and step\) p2p ", record["transport_report"])
    assert not list((tmp_path / "cache").glob("auto-*"))


def test_an_mpiexec_of_the_users_choice_comes_first_and_must_exist(monkeypatch, tmp_path):
    mine = executable(tmp_path / "mpiexec", "exit 0\n")
    monkeypatch.setenv("HALOSCOPE_MPIEXEC", str(mine))
    assert launch.mpiexec() == mine
    monkeypatch.setenv("HALOSCOPE_MPIEXEC", str(tmp_path / "none"))
    with pytest.raises(UnavailableError, match="HALOSCOPE_MPIEXEC"):
        launch.mpiexec()


@pytest.mark.parametrize(
    ("version", "ranks", "threads", "cores", "expected"),
    [
        ("HYDRA build details", 2, 1, 2, ["-bind-to", "core:1"]),
        ("HYDRA build details", 2, 4, 16, ["-bind-to", "core:4"]),
        ("HYDRA build details", 2, 2, 2, ["-bind-to", "core:1"]),
        ("HYDRA build details", 4, 1, 2, []),
        ("mpiexec (OpenRTE) 4.1.4", 2, 2, 4, ["--map-by", "slot:PE=2", "--bind-to", "core"]),
        ("mpirun (Open MPI) 5.0.3", 4, 1, 2, ["--bind-to", "none", "--oversubscribe"]),
        ("slurm", 2, 1, 2, []),
    ],
)
def test_each_rank_gets_cores_of_its_own_as_far_as_they_go(
    monkeypatch, tmp_path, version, ranks, threads, cores, expected
):
    path = executable(tmp_path / "mpiexec", f"echo '{version}'\n")
    monkeypatch.setattr(launch, "cores_here", lambda: cores)
    monkeypatch.setattr(launch, "physical_cores", lambda: cores)
    monkeypatch.setattr(launch, "_to_loopback", lambda kind, path: [])
    words = launch.launcher_words(path, ranks, threads)
    assert words[:3] == [str(path), "-n", str(ranks)]
    assert [word for word in words[3:] if word != "--allow-run-as-root"] == expected
    assert ("--allow-run-as-root" in words) == ("Open" in version and os.geteuid() == 0)


HYDRA, OPEN_MPI_4, OPEN_MPI_5 = "HYDRA build details", "mpiexec (OpenRTE) 4.1.4", "mpirun (Open MPI) 5.0.3"


@pytest.mark.parametrize(
    ("version", "environment", "expected"),
    [
        (HYDRA, {}, ["-genv UCX_NET_DEVICES lo", "-genv FI_TCP_IFACE lo"]),
        (HYDRA, {"UCX_NET_DEVICES": "mlx5_0:1"}, ["-genv FI_TCP_IFACE lo"]),
        (HYDRA, {"UCX_TLS": "tcp", "FI_PROVIDER": "verbs"}, []),
        (HYDRA, {"SLURM_JOB_ID": "1"}, []),
        (HYDRA, {"HYDRA_HOST_FILE": "hosts"}, []),
        (HYDRA, {"HALOSCOPE_HOSTS": "node1"}, []),
        (OPEN_MPI_5, {}, ["--mca btl_tcp_if_include lo", "-x UCX_NET_DEVICES=lo", "-x FI_TCP_IFACE=lo"]),
        (
            OPEN_MPI_4,
            {},
            [
                "--mca btl_tcp_if_include lo",
                "--mca oob_tcp_if_include lo",
                "-x UCX_NET_DEVICES=lo",
                "-x FI_TCP_IFACE=lo",
            ],
        ),
        (
            OPEN_MPI_4,
            {"OMPI_MCA_btl": "self,vader", "UCX_TLS": "sm"},
            ["--mca oob_tcp_if_include lo", "-x FI_TCP_IFACE=lo"],
        ),
        (OPEN_MPI_5, {"PBS_JOBID": "1"}, []),
        ("slurm 23", {}, []),
    ],
)
def test_ranks_on_one_machine_listen_on_its_loopback_unless_the_user_or_a_batch_system_says_otherwise(
    monkeypatch, tmp_path, version, environment, expected
):
    for name in (*launch.ELSEWHERE, *launch.INTERFACES, *launch.INTERFACES.values(), "OMPI_MCA_btl", "OMPI_MCA_oob"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    words = " ".join(launch.launcher_words(executable(tmp_path / "mpiexec", f"echo '{version}'\n"), 2, 1))
    assert all(part in words for part in expected)
    assert len(re.findall(rf"[ =]{launch.LOOPBACK}\b", words)) == len(expected)


def test_ranks_on_one_machine_have_no_open_door_to_the_network():
    if launch.flavour(launch.mpiexec()) != "hydra":
        pytest.skip("looks at the ranks of MPICH")
    words = launch.launcher_words(launch.mpiexec(), 2, 1)
    process = subprocess.Popen([*words, sys.executable, "-c", LISTENERS], stdout=subprocess.PIPE, text=True)
    addresses = process.communicate(timeout=60)[0].split()
    assert addresses  # ranks that may exchange by TCP wait for it
    assert {address for address in addresses if address.startswith("127.") or address == "::1"} == set(addresses)


# A rank prints the addresses on which it listens itself: what it has from mpiexec is not its own.
LISTENERS = """
import os
descriptors = (f"/proc/self/fd/{n}" for n in os.listdir("/proc/self/fd"))
inherited = {os.readlink(d) for d in descriptors if os.path.exists(d)}
from mpi4py import MPI
import psutil
MPI.COMM_WORLD.Barrier()
for c in psutil.Process().net_connections():
    if c.status == "LISTEN" and os.readlink(f"/proc/self/fd/{c.fd}") not in inherited: print(c.laddr.ip, flush=True)
MPI.COMM_WORLD.Barrier()
"""


def test_a_missing_program_is_not_available_here(haloscope, monkeypatch, tmp_path):
    monkeypatch.setenv("HALOSCOPE_BUILD", str(tmp_path / "nothing"))
    result = haloscope("run", "laplace2d", *SMALL)
    assert result.code == 3
    assert "make build" in result.err
    assert not list(Path("results").rglob("*.jsonl"))


@pytest.mark.ids("V16")
def test_a_sweep_over_ranks_leaves_one_sound_record_per_configuration_and_launch(haloscope):
    result = haloscope(
        "run", "laplace2d", *SMALL, "--ranks", "1,2", "--depth", "1,2", "--output", "r.jsonl", "--statistic", "all"
    )
    assert result.code == 0, result.err
    file = records.read("r.jsonl")
    assert not file.bad_lines
    found = file.records
    assert len(found) == 8
    assert {(r["request"]["ranks"], r["request"]["depth"], r["launch"]["id"]) for r in found} == {
        (ranks, depth, f"launch-{k}") for ranks in (1, 2) for depth in (1, 2) for k in (1, 2)
    }
    assert all(r["verification"]["status"] == "passed" for r in found)
    for title in ("rank 0 (us)", "min (us)", "mean (us)", "max (us)"):
        assert title in result.out


def test_resuming_measures_only_what_is_missing(haloscope):
    words = ("run", "laplace2d", *SMALL, "--depth", "1,2", "--output", "r.jsonl")
    assert haloscope(*words).code == 0
    lines = Path("r.jsonl").read_text().splitlines()
    Path("r.jsonl").write_text("\n".join([*lines[:-1], lines[-1][:50]]))  # as if killed while writing the last one
    result = haloscope(*words, "--resume")
    assert result.code == 0
    after = records.read("r.jsonl")
    assert [number for number, _ in after.bad_lines] == [4]
    assert "line 4" in result.err
    keys = [(r["id"], r["launch"]["id"]) for r in after.records]
    assert len(keys) == 4 == len(set(keys))
    assert [json.loads(line) for line in lines[:-1]] == after.records[:3]


def test_what_was_measured_otherwise_is_not_taken_for_what_is_asked(haloscope):
    words = ("run", "laplace2d", *SMALL, "--launches", 1, "--output", "r.jsonl")
    small = ("microbench", "--pattern", "pingpong", "--transport", "p2p", "--quick", "--launches", 1)
    small += ("--output", "m.jsonl", "--bytes")
    assert haloscope(*words).code == 0
    assert haloscope(*small, 8).code == 0
    assert haloscope(*words, "--resume").code == 0
    for other, part in {
        (*words, "--repetitions", 9): "repetitions",
        (*words, "--warmup", 2): "warmup 1, and 2",
        (*words, "--timers", "off"): "timers True",
        (*small, "8,64"): "bytes [8], and (8, 64)",
    }.items():
        result = haloscope(*other, "--resume")
        assert result.code == 2 and f" with {part}" in result.err, result.err
        assert "choose another --output" in result.err


@pytest.mark.parametrize(
    "words",
    [
        ("microbench", "--pattern", "stream", "--quick"),
        *guest_cases("RESUMED").values(),
    ],
)
def test_what_was_measured_as_asked_is_not_measured_again(haloscope, words):
    words = (*words, "--launches", 1, "--output", "r.jsonl")
    assert haloscope(*words).code == 0
    before = Path("r.jsonl").read_text()
    result = haloscope(*words, "--resume")
    assert result.code == 0 and Path("r.jsonl").read_text() == before, result.err


def test_without_resume_a_second_run_adds_launches(measure):
    measure("laplace2d", *SMALL)
    found = measure("laplace2d", *SMALL)
    assert [r["launch"]["id"] for r in found] == [f"launch-{k}" for k in (1, 2, 3, 4)]


@pytest.mark.ids("V25")
def test_counted_messages_and_bytes_are_the_plans(measure):
    words = ("--ranks", 2, "--depth", 2, "--strategy", "ordered/p2p,direct/p2p", "--launches", 1)
    for record in measure("laplace2d", *SMALL, *words):
        request = record["request"]
        choice = bridge.Choice(
            app="laplace2d", cells=tuple(request["cells"]), ranks=2, strategy=request["strategy"], depth=2
        )
        totals = bridge.plan_totals(bridge.make_layout(choice), bridge.exchange_spec(choice))
        counts = record["counts"]
        assert counts["exchanges"] == request["steps"] / 2
        assert counts["messages"] == totals.messages * counts["exchanges"]
        assert counts["message_bytes"] == totals.bytes * counts["exchanges"]


@pytest.mark.ids("V6", "V7", "V12", "V25")
@pytest.mark.parametrize(("exchange", "messages"), [("ordered", 4), ("direct:corners", 8)])
def test_two_by_two_ranks_send_what_the_thesis_counts_packed_by_us_or_by_mpi(measure, exchange, messages):
    height, length, depth = 10, 12, 2  # per rank
    found = measure(
        f"laplace2d --cells {2 * length}x{2 * height} --real f32 -d {depth} -i 4 -n 4 --repetitions 1 --launches 1 "
        f"--strategy {exchange}/p2p,{exchange}/p2p:datatype"
    )
    assert len(found) == 2 and len({r["verification"]["checksum"] for r in found}) == 1
    for record in found:
        counts, exchanges = record["counts"], 4 / depth
        assert record["verification"]["status"] == "passed"
        assert counts["messages"] == 4 * messages * exchanges
        assert counts["message_bytes"] == 4 * exchanges * (8 * depth * (height + length) + 16 * depth**2)


@pytest.mark.ids("W7")
def test_the_rate_counts_53_operations_per_point_whatever_the_kernel_does(measure):
    found = measure("advection3d", *SMALL, "--form", "*", "--launches", 1)
    assert {r["request"]["form"] for r in found} == {"dense", "separable"}
    for record in found:
        assert record["counts"]["flops"] == 53 * 24**3 * 4
        assert record["gflops"] == pytest.approx(53 * 24**3 / record["time_s"]["step"]["median"] / 1e9, rel=0.01)


@pytest.mark.ids("W21")
def test_the_length_of_a_measurement_is_set_by_seconds_and_recorded_as_steps(measure):
    """A rule with a test of its own, in C++, decides the number of steps."""
    [record] = measure("laplace2d --cells 128 --depth 3 --seconds 0.02 --repetitions 3 --launches 1")
    assert record["request"]["seconds"] == 0.02 and len(record["time_s"]["repetitions"]) == 3
    assert record["request"]["steps"] > 0 and record["request"]["steps"] % 3 == 0
    assert record["counts"]["exchanges"] == record["request"]["steps"] / 3


@pytest.mark.ids("V14")
def test_the_timers_of_a_phased_run_add_up_to_its_execution_with_the_rest_reported(measure):
    [record] = measure("laplace2d --cells 256 --steps 40 --barrier --launches 1")
    parts = {name: spread["rank0"] for name, spread in record["phases_s"].items()}
    execution = record["time_s"]["step"]["mean"]
    assert {"pack", "send", "wait", "unpack", "compute", "desync", "rest"} <= set(parts)
    assert all(part > 0 for name, part in parts.items() if name not in ("inner", "outer"))
    assert parts["inner"] == parts["outer"] == 0
    assert sum(parts.values()) <= execution * 1.001


@pytest.mark.ids("V14")
@pytest.mark.parametrize(("schedule", "threads"), [("split", 1), ("comm-thread", 2)])
def test_all_timers_but_inner_fit_into_the_execution_of_an_overlapped_run(measure, schedule, threads):
    [record] = measure(
        "laplace2d --cells 512 --ranks 1 --periodic x --process-grid 1x1 --steps 40 --launches 1 "
        f"--schedule {schedule} --threads {threads}"
    )
    parts = {name: spread["rank0"] for name, spread in record["phases_s"].items()}
    assert parts["inner"] > 0 and "compute" not in {name for name, s in parts.items() if s > 0}
    assert sum(s for name, s in parts.items() if name != "inner") <= record["time_s"]["step"]["mean"] * 1.001


def test_more_threads_than_cores_are_marked_and_not_ranked(haloscope):
    threads = launch.cores() + 1
    result = haloscope("run", "laplace2d", *SMALL, "--threads", f"1,{threads}", "--ranks", "1", "--output", "r.jsonl")
    assert result.code == 0
    marked = {r["request"]["threads"]: r["environment"]["oversubscribed"] for r in records.read("r.jsonl").records}
    assert marked == {1: False, threads: True}
    assert [line.split("|")[1].strip() for line in result.out.splitlines() if "| bulk" in line] == ["1", "-"]


def test_compare_pairs_two_files_by_configuration(haloscope, tmp_path):
    a = write(
        tmp_path / "a.jsonl",
        *(measurement("x", f"launch-{k}", [2.0, 2.02, 1.98]) for k in range(4)),
        *(measurement("same", f"launch-{k}", [1.0, 1.02, 0.98]) for k in range(4)),
        measurement("only a"),
    )
    b = write(
        tmp_path / "b.jsonl",
        *(measurement("x", f"launch-{k}", [1.0, 1.02, 0.98]) for k in range(4)),
        *(measurement("same", f"launch-{k}", [1.01, 0.99, 1.0]) for k in range(4)),
    )
    result = haloscope("compare", a, b)
    assert result.code == 0
    lines = {line.split("|")[1].strip(): line for line in result.out.splitlines() if line.startswith("|")}
    assert "2.000" in lines["x"] and "B is 2 x faster" in lines["x"]
    assert "cannot tell apart" in lines["same"]
    assert "only in" in result.out and "only a" in result.out


def test_compare_can_ignore_what_differs_and_refuses_what_then_is_ambiguous(haloscope, tmp_path):
    a = write(tmp_path / "a.jsonl", measurement("a"))
    b = write(tmp_path / "b.jsonl", measurement("b", schedule="split"))
    assert haloscope("compare", a, b).code == 2
    assert haloscope("compare", a, b, "--ignore", "schedule").code == 0
    both = write(tmp_path / "c.jsonl", measurement("a"), measurement("b", schedule="split"))
    result = haloscope("compare", both, b, "--ignore", "schedule")
    assert result.code == 2 and "ignore fewer" in result.err
    assert "did you mean schedule" in haloscope("compare", a, b, "--ignore", "schedul").err


def test_info_names_mpi_compiler_transports_and_why_others_are_absent(haloscope):
    facts = json.loads(haloscope("info", "--json").out)
    assert facts["machine"]["MPI"] and facts["machine"]["compiler"] and facts["machine"]["CPU"]
    states = {entry["name"]: entry for kind in ("devices", "transports", "schedules", "apps") for entry in facts[kind]}
    assert all(states[name]["state"] == "yes" for name in ("p2p", "bulk", "laplace2d", "reference", "auto"))
    assert all(entry["about"] for entry in states.values())  # of what is absent, why
    assert "| p2p" in haloscope("info").out


def test_the_exit_code_says_whether_anything_could_be_measured():
    request = Request.of(bridge.Choice("laplace2d", (8, 8)))
    lacking, wrong = (records.skipped(request, "reason", code, "launch-1") for code in (3, 2))
    good, bad = measurement(), measurement()
    bad["verification"]["status"] = "failed"
    assert campaign.exit_code([good, lacking]) == 0
    assert campaign.exit_code([wrong, lacking]) == 3
    assert campaign.exit_code([wrong]) == 2
    assert campaign.exit_code([good, bad]) == 1
