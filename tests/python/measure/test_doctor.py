"""`haloscope doctor` tries this allocation and names faults, slow parts and remedies."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import time

import pytest

from haloscope.errors import HaloscopeError, UnavailableError
from haloscope.measure import answers, doctor, launch
from haloscope.measure.doctor import (
    BROKEN,
    NOT_HERE,
    OK,
    WARNING,
    Check,
    check,
    launcher,
    mpi,
    node,
    process_view,
    runs,
)
from paths import ROOT
from programs import executable

PAGE = ROOT / "docs" / "use" / "doctor.md"
FOREIGN = (
    'test "$1" = --version && echo "mpirun (Stand-in) 1.2" && exit 0\n'
    'n=$2; shift 2; while [ $n -gt 1 ]; do "$@" & n=$((n - 1)); done; "$@"; code=$?; wait; exit $code\n'
)
HANGING = 'test "$1" = --version || sleep 60\n'


@pytest.fixture
def mpiexec(tmp_path, monkeypatch):
    """Return a function that makes a script the launcher."""

    def use(script: str) -> None:
        monkeypatch.setattr(launch, "launcher_words", lambda path, ranks, *others: [str(path), "-n", str(ranks)])
        monkeypatch.setenv("HALOSCOPE_MPIEXEC", str(executable(tmp_path / "mpiexec", script)))

    return use


# ---- a true run ------------------------------------------------------------------------------------------------------


def test_on_a_machine_in_order_all_is_tried_and_nothing_is_broken(haloscope, monkeypatch):
    monkeypatch.setattr(runs, "BLOCKS", (16, 64))
    result = haloscope("doctor", "--ranks", 2, "--device", "host", "--json")
    checks = {entry["name"]: entry for entry in json.loads(result.out)}
    assert {name for name, entry in checks.items() if entry["verdict"] == BROKEN} == set(), result.out
    assert result.code == 0
    for name in ("launcher", "shared memory", "clocks", "MPI functions", "device", "device memory in MPI", "exchange"):
        assert checks[name]["verdict"] == OK, checks[name]
    assert "one world of 2 ranks" in checks["launcher"]["found"]
    assert re.search(
        r"ordered/p2p: passed, messages of 2 KiB and 32 KiB, 2 ranks on 1 node", checks["exchange"]["found"]
    )
    assert "ordered/aware: passed" in checks["transport aware"]["found"]
    assert checks["pinning"]["verdict"] == (OK if launch.cores() > 1 else WARNING)
    shown = re.findall(r"^\| (.+?) +\| (?:ok|warning|broken|not here) ", PAGE.read_text(), re.MULTILINE)
    assert len(shown) >= 12 and set(shown) <= set(checks)
    assert all(entry["remedy"] for entry in checks.values() if entry["verdict"] in (WARNING, BROKEN))


# ---- launcher and MPI libraries --------------------------------------------------------------------------------------


def test_a_foreign_mpiexec_is_named_beside_the_library_of_the_ranks(mpiexec):
    mpiexec(FOREIGN)
    result = launcher.judge_launcher(2, *launcher.ask_launcher(2))
    assert result.verdict == BROKEN and "HALOSCOPE_MPIEXEC" in result.remedy
    assert "mpirun (Stand-in) 1.2) starts 2 worlds of 1 rank instead of one of 2" in result.found
    assert answers.information()["mpi_library"].split()[0] in result.found


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ('{"a": 1}\n{"a": 2}\n', [1, 2]),
        ('{"a": 1}{"a": 2}\n\n', [1, 2]),
        ('warning: {"a": 0}\n{"a": 1} {"a": 2} and more\n', [1, 2]),
        ('{"a": 1}\n{"a": ', [1]),
        ("{brace}\n", []),
    ],
)
def test_objects_are_read_from_an_output_also_where_processes_wrote_into_one_line(output, found):
    assert [entry["a"] for entry in answers.objects_of(output)] == found


@pytest.mark.skipif(not launcher.has_mpi4py(), reason="mpi4py is not installed")
def test_under_a_foreign_mpiexec_mpi4py_has_several_worlds_too(mpiexec):
    mpiexec(FOREIGN)
    result = launcher.judge_mpi4py(2, *launcher.ask_mpi4py(2))
    assert result.verdict == BROKEN and "2 worlds of 1 rank instead of one of 2" in result.found


@pytest.mark.parametrize(
    ("script", "text"),
    [("echo beyond repair; exit 7\n", "ended with code 7: beyond repair"), (HANGING, "no answer within 0.3 s")],
)
def test_an_mpiexec_that_fails_or_hangs_is_broken_and_what_needs_ranks_is_not_tried(mpiexec, monkeypatch, script, text):
    monkeypatch.setattr(check, "LIMIT_S", 0.3)
    monkeypatch.setattr(launcher, "mpiexec_version", lambda: "of unknown make")
    monkeypatch.setattr(launcher, "library_name", lambda: "Any MPI")
    mpiexec(script)
    result = launcher.judge_launcher(2, *launcher.ask_launcher(2))
    assert result.verdict == BROKEN and text in result.found
    views = node.process_views(node.plain_words(2))
    assert views == []
    for other in (
        node.judge_pinning("pinning", views),
        node.judge_room(views),
        node.judge_left_over(views),
        node.judge_shared_memory({}, views),
        node.judge_clocks({}),
        node.judge_huge_pages({}, views),
    ):
        assert (other.verdict, other.remedy) == (NOT_HERE, check.LAUNCHER_FIRST)


@pytest.mark.parametrize(
    ("answer", "verdict", "reason"),
    [
        ({"size": 2, "library": "MPICH 5"}, OK, "library's MPI, MPICH 5"),
        ({"size": 2, "library": "Open MPI 4", "problem": "another MPI is running"}, BROKEN, "Open MPI 4: another MPI"),
        ({"size": 2, "library": "A", "problem": "no library", "exit_code": 3}, NOT_HERE, "no library"),
        ({"size": 1, "library": "Open MPI 4, built by me"}, BROKEN, "1 world of 1 rank instead of one of 2"),
    ],
)
def test_mpi4py_must_run_on_the_mpi_of_the_library(answer, verdict, reason):
    result = launcher.judge_mpi4py(2, 0, json.dumps(answer) + "\n", "")
    assert result.verdict == verdict and reason in result.found


def test_an_mpi4py_that_cannot_be_imported_is_broken_by_its_last_words():
    result = launcher.judge_mpi4py(2, 1, "", "Traceback ...\nImportError: cannot load MPI library\n")
    assert result.verdict == BROKEN and "ended with code 1: ImportError: cannot load MPI library" in result.found


# ---- cores -----------------------------------------------------------------------------------------------------------


def view(cores, host="n1", there=range(4), numa=((0, 1), (2, 3)), **more) -> dict:
    """What a process sees of a node of four cores and two NUMA nodes."""
    return {"host": host, "cores": list(cores), "node_cores": list(there), "numa": [list(n) for n in numa], **more}


@pytest.mark.parametrize(
    ("views", "verdict", "pattern"),
    [
        ([view([0]), view([2])], OK, "2 ranks of n1 with 1 of 4 cores each, on 2 of 2 NUMA nodes"),
        ([view(range(4))], OK, "1 rank of n1 with 4 of 4 cores"),
        ([view([0]), view([1])], WARNING, "on 1 of 2 NUMA nodes"),
        ([view([0], numa=()), view([1], numa=())], OK, "2 ranks of n1 with 1 of 4 cores each"),
        ([view(range(4)), view(range(4))], WARNING, "not pinned: each may run on all 4 cores"),
        ([view([0, 1]), view([1, 2]), view([3])], WARNING, "2 of 3 ranks of n1 share cores"),
        ([view([0]), view([0])], BROKEN, "2 ranks on 1 core of n1, which has 4 cores for them"),
        ([view(range(4))] * 5, WARNING, "5 ranks on 4 cores of n1: they take turns"),
        ([view([0]), view([2]), view([0], "n2"), view([0], "n2")], BROKEN, "2 ranks on 1 core of n2"),
        ([view(range(4), host) for host in ("n1", "n1", "n2", "n2")], WARNING, "n1 are not pinned.*and 1 node more"),
    ],
)
def test_pinning_is_judged_by_the_cores_that_processes_may_use(views, verdict, pattern):
    result = node.judge_pinning("pinning", views)
    assert result.verdict == verdict and re.search(pattern, result.found), result
    assert bool(result.remedy) == (verdict != OK)


# ---- memory of a node ------------------------------------------------------------------------------------------------


def room(free: int, total: int = 8 << 30) -> list[dict]:
    return [view([0], memory_bytes=16 << 30, shared_memory={"bytes": total, "free_bytes": free} if total else {})]


@pytest.mark.parametrize(
    ("views", "verdict", "reason"),
    [
        (room(8 << 30), OK, "8 GiB of 8 GiB free on n1"),
        (room(60 << 20, 64 << 20), WARNING, "60 MiB of 64 MiB free on n1"),
        (room(0, 0), NOT_HERE, "n1 has none"),
    ],
)
def test_room_for_shared_fields_is_judged_by_the_memory_of_the_node(views, verdict, reason):
    result = node.judge_room(views)
    assert result.verdict == verdict and reason in result.found


def test_only_old_segments_of_mpi_that_nobody_uses_are_left_over(tmp_path):
    for name in ("mpich_shm_1_0", "mpich_shm_2_0", "mpich_shm_used", "sem.other", "vader_segment.n1.0"):
        (tmp_path / name).write_bytes(b"x" * 4096)
        if name != "mpich_shm_2_0":
            os.utime(tmp_path / name, (time.time() - 2 * process_view.OLD_S,) * 2)
    found = process_view.left_over(tmp_path, {str(tmp_path / "mpich_shm_used")})
    assert found["names"] == ["mpich_shm_1_0", "vader_segment.n1.0"]
    assert (found["count"], found["bytes"]) == (2, 8192)
    result = node.judge_left_over([view([0], left_over=found)])
    assert result.verdict == WARNING
    assert result.remedy == "rm /dev/shm/mpich_shm_1_0 /dev/shm/vader_segment.n1.0"
    many = node.judge_left_over([view([0], left_over=found | {"count": 90})])
    assert "90 segments" in many.found and "find /dev/shm" in many.remedy and "-name 'mpich_shm_*'" in many.remedy
    assert node.judge_left_over([view([0], left_over={"count": 0, "bytes": 0, "names": []})]).verdict == OK


def test_a_segment_that_a_process_has_mapped_is_seen_as_used(tmp_path):
    import mmap

    with (tmp_path / "mpich_shm_mine").open("w+b") as file:
        file.truncate(4096)
        with mmap.mmap(file.fileno(), 4096):
            assert str(tmp_path / "mpich_shm_mine") in process_view.mapped_files(tmp_path)


def test_numa_nodes_are_those_that_have_cores(tmp_path):
    for name, cores in (("node0", "0-2,8\n"), ("node1", "3\n"), ("node2", "\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cpulist").write_text(cores)
    assert process_view.numa_nodes(tmp_path) == [[0, 1, 2, 8], [3]]


@pytest.mark.parametrize(
    ("ok", "setting", "verdict", "remedy"),
    [
        (True, {"enabled": "madvise"}, OK, ""),
        (False, {"enabled": "never"}, WARNING, "echo madvise"),
        (False, {"enabled": "madvise"}, WARNING, "compact_memory"),
        (False, {}, NOT_HERE, ""),
    ],
)
def test_huge_pages_are_judged_by_a_field_that_was_touched(ok, setting, verdict, remedy):
    findings = {"huge-pages": {"ok": ok, "reason": "some of 64 MiB of a field on huge pages"}}
    result = node.judge_huge_pages(findings, [view([0], huge_pages=setting)])
    assert result.verdict == verdict and remedy in result.remedy and "some of 64 MiB" in result.found


def test_shared_memory_and_clocks_that_a_probe_finds_wrong_are_broken():
    findings = {
        "shared-load-store": {"probe": "shared-load-store", "ok": False, "reason": "a number is 0 instead of 1"},
        "clock": {"probe": "clock", "ok": False, "reason": "apart by 3 s"},
    }
    shared = node.judge_shared_memory(findings, [view([0]), view([1])])
    assert shared.verdict == BROKEN and "0 instead of 1" in shared.found and "'shared'" in shared.remedy
    assert node.judge_clocks(findings).verdict == BROKEN
    alone = node.judge_shared_memory({"shared-flags": {"ok": True}}, [view([0]), view([0], "n2")])
    assert alone.verdict == NOT_HERE


# ---- MPI functions and devices ---------------------------------------------------------------------------------------


def test_each_mpi_function_that_fails_is_named_with_the_strategies_that_it_rules_out():
    known = {"passed": ["start", "rma-fence-get"], "failed": {"rma-fence-put": "numbers were lost (4 ranks)"}}
    here = {
        "rma-fence-put": {"ok": True, "reason": ""},
        "partitioned": {"ok": False, "reason": "this MPI has no partitioned communication"},
        "shared-aligned": {"ok": False, "reason": "memory begins 8 bytes past a boundary"},
        "device-aware": {"ok": False, "reason": "judged apart"},
    }
    whole, *single = mpi.judge_functions(here, known)
    assert (whole.verdict, whole.found) == (BROKEN, "1 of 4 probes pass")
    verdicts = {c.name: c for c in single}
    assert set(verdicts) == {"MPI: rma-fence-put", "MPI: partitioned", "MPI: shared-aligned"}
    assert verdicts["MPI: rma-fence-put"].verdict == BROKEN
    assert "leaves out rma-fence" in verdicts["MPI: rma-fence-put"].remedy
    assert (
        verdicts["MPI: shared-aligned"].verdict == WARNING and "does without" in verdicts["MPI: shared-aligned"].remedy
    )
    assert verdicts["MPI: partitioned"].verdict == WARNING and "partitioned" in verdicts["MPI: partitioned"].remedy
    assert mpi.judge_functions({}, known)[0].verdict == NOT_HERE  # the known facts are not about this launcher


def test_an_mpi_that_dies_of_device_memory_is_a_warning_and_one_that_garbles_it_is_broken():
    died = {"probe": "device-aware", "ok": False, "reason": "it ended with code 139", "died": True}
    wrong = {"probe": "device-strided", "ok": False, "reason": "a number is 1 instead of 2"}
    whole = {"probe": "device-aware", "ok": True, "reason": "with a card"}
    crashed = mpi.judge_device_memory({"device-aware": died, "device-strided": died})
    assert crashed.verdict == WARNING and "code 139" in crashed.found and "'staged'" in crashed.remedy
    garbled = mpi.judge_device_memory({"device-aware": whole, "device-strided": wrong})
    assert garbled.verdict == BROKEN and "1 instead of 2" in garbled.found
    assert mpi.judge_device_memory({"device-aware": whole, "device-strided": whole}).verdict == OK
    assert mpi.judge_device_memory({}).verdict == NOT_HERE


def test_without_a_card_the_reason_of_each_back_end_is_said(monkeypatch):
    lacking = {"devices": [{"name": "cuda", "absent": "no CUDA", "devices": []}]}
    monkeypatch.setattr(answers, "information", lambda: lacking)
    [result] = mpi.examine_device(2, "")
    assert (result.verdict, result.found) == (NOT_HERE, "cuda: no CUDA") and "--device host" in result.remedy


def test_a_run_that_is_not_bit_for_bit_or_does_not_end_is_broken(monkeypatch, mpiexec):
    record = {"kind": "measurement", "verification": {"status": "failed"}}
    requests = runs.verified_requests(2, "ordered/p2p")
    result = runs.judge_runs("exchange", runs.Runs(requests, [record, record]))
    assert result.verdict == BROKEN and result.found == "verification failed"
    assert "haloscope run laplace3d --cells 128x128x256" in result.remedy
    monkeypatch.setattr(check, "LIMIT_S", 0.3)
    mpiexec(HANGING)
    hung = runs.judge_runs("exchange", runs.verified_runs(2, "ordered/p2p"))
    assert hung.verdict == BROKEN and "not done after 0.3 s" in hung.found


# ---- the command -----------------------------------------------------------------------------------------------------


def fail() -> Check:
    raise ValueError("no such luck")


def lack() -> Check:
    raise UnavailableError("there is none")


def stop() -> Check:
    raise HaloscopeError("mpiexec ended with code 7")


def test_what_an_examination_raises_is_its_result_and_the_others_go_on(haloscope, monkeypatch):
    planned = {"first": fail, "second": lack, "third": lambda: Check("third", OK, "all well"), "fourth": stop}
    monkeypatch.setattr(doctor, "plan", lambda ranks, device: planned)
    result = haloscope("doctor")
    assert result.code == 1
    assert re.search(r"\| first +\| broken +\|.*no such luck", result.out)
    assert re.search(r"\| second +\| not here +\| there is none", result.out)
    assert re.search(r"\| third +\| ok +\| all well", result.out)
    assert re.search(r"\| fourth +\| broken +\| mpiexec ended with code 7", result.out)
    assert result.out.endswith("2 broken, 0 warning, 1 ok, 1 not here\n")


def test_warnings_alone_end_with_code_0(haloscope, monkeypatch):
    slow = Check("pinning", WARNING, "slow", "do something")
    monkeypatch.setattr(doctor, "plan", lambda ranks, device: {"pinning": lambda: slow})
    assert json.loads(haloscope("doctor", "--json").out) == [dataclasses.asdict(slow)]
    assert haloscope("doctor").code == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--ranks", "0"), 2, "--ranks"),
        (("--device", "cdua"), 2, "did you mean cuda"),
        (("--rank", "2"), 2, "did you mean --ranks"),
    ],
)
def test_bad_words_are_refused_before_anything_is_tried(haloscope, words, code, message):
    result = haloscope("doctor", *words)
    assert result.code == code and message in result.err and result.out == ""


def test_without_a_build_nothing_can_be_tried(haloscope, monkeypatch, tmp_path):
    monkeypatch.setenv("HALOSCOPE_BUILD", str(tmp_path / "nothing"))
    result = haloscope("doctor")
    assert result.code == 3 and "make build" in result.err
