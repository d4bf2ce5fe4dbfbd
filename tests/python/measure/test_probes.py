"""The probes find the defects that are known, survive crashes and hangs, ask once, and rule out what would go wrong."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path

import pytest

import other_mpi
from haloscope import bridge, records
from haloscope.bridge import build
from haloscope.errors import UnavailableError
from haloscope.measure import answers, launch, probes
from programs import executable, run
from test_launch import SMALL

FORMS = ("blocking", "nonblocking", "persistent")


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache of findings."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "haloscope"


def findings_on(name: str, cache: Path) -> dict:
    """What the probes find on another MPI."""
    mpi = other_mpi.get(name)
    done = mpi.python(
        "-c",
        "import json; from haloscope.measure import probes; print(json.dumps(probes.findings()))",
        XDG_CACHE_HOME=str(cache.parent),
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def failed(found: dict, prefix: str) -> set[str]:
    return {name for name in found["failed"] if name.startswith(prefix)}


def test_a_conforming_mpi_passes_every_probe(cache):
    if launch.flavour(launch.mpiexec()) != "hydra" or " 5." not in answers.information()["mpi_library"]:
        pytest.skip(f"expects MPICH 5, and this is {answers.information()['mpi_library']}")
    found = probes.findings()
    assert found["failed"] == {}
    assert {f"neighbor-cart-{form}" for form in FORMS} < set(found["passed"])
    assert found["notes"]["rma-memory-model"] == "unified"


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_open_mpi_5_swaps_the_blocks_of_periodic_dimensions_of_one_or_two_ranks(cache):
    found = findings_on("openmpi5", cache)
    assert found["mpi_library"].startswith("Open MPI v5.")
    assert failed(found, "neighbor") == {"neighbor-cart-nonblocking", "neighbor-cart-persistent"}
    assert "(1 rank)" in found["failed"]["neighbor-cart-persistent"] or "ranks" in str(found["failed"])
    assert "partitioned" in found["passed"]  # although it reports MPI 3.1


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_open_mpi_4_swaps_blocks_lacks_partitioned_calls_and_does_not_align_shared_memory(cache):
    found = findings_on("openmpi4", cache)
    assert found["mpi_library"].startswith("Open MPI v4.1")
    assert {"neighbor-cart-nonblocking", "partitioned", "shared-aligned"} <= set(found["failed"])
    assert "no partitioned communication" in found["failed"]["partitioned"]
    assert {"neighbor-cart-blocking", "neighbor-graph-blocking", "neighbor-graph-nonblocking"} < set(found["passed"])


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_open_mpi_4_refuses_the_strategies_that_its_probes_rule_out(cache, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mpi = other_mpi.get("openmpi4")
    done = mpi.haloscope(
        "run", "laplace2d", *SMALL, "--strategy", "direct/partitioned", XDG_CACHE_HOME=str(cache.parent)
    )
    assert done.returncode == 3
    assert "no partitioned communication" in done.stderr


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_mpich_4_swaps_blocks_in_all_forms_and_mixes_up_parallel_edges(cache):
    found = findings_on("mpich4", cache)
    assert "4.0" in found["mpi_library"]
    assert {f"neighbor-cart-{form}" for form in FORMS} < set(found["failed"])
    assert "neighbor-parallel-alltoall" in found["failed"]
    assert {f"neighbor-graph-{form}" for form in FORMS} < set(found["passed"])


def test_a_second_question_starts_no_job(cache, monkeypatch):
    monkeypatch.setattr(probes, "RANKS", (1,))
    first = probes.findings("start,rma-fence-put")
    assert set(first["passed"]) == {"start", "rma-fence-put"}
    monkeypatch.setattr(answers, "quietly", lambda *_: pytest.fail("a job was started"))
    assert probes.findings("start,rma-fence-put") == first
    assert len(list(cache.iterdir())) == 1


def test_a_new_mpi_library_or_build_is_asked_again(cache, monkeypatch, tmp_path):
    library = tmp_path / "libmpi.so"
    library.write_text("one")
    monkeypatch.setattr(probes, "mpi_library", lambda: library)
    before = probes._cache_file("all")
    assert probes._cache_file("all") == before
    library.write_text("another")
    assert probes._cache_file("all") != before


def test_findings_lie_where_the_environment_says(cache, tmp_path, monkeypatch):
    assert probes._cache_file("all").parent == cache
    monkeypatch.setenv("HALOSCOPE_CACHE", str(tmp_path / "own"))
    assert probes._cache_file("all").parent == tmp_path / "own"


def test_a_damaged_cache_is_asked_anew(cache, monkeypatch):
    monkeypatch.setattr(probes, "RANKS", (1,))
    probes.findings("start")
    [file] = cache.iterdir()
    file.write_text("{")
    assert probes.findings("start")["passed"] == ["start"]


def test_a_time_out_is_doubted_after_a_while(cache, monkeypatch):
    monkeypatch.setattr(probes, "RANKS", (1,))
    probes.findings("start")
    [file] = cache.iterdir()
    answer = {
        "mpi_library": "",
        "passed": ["start"],
        "failed": {"partitioned": f"{probes.TIMED_OUT} 15 s"},
        "notes": {},
    }
    file.write_text(json.dumps(answer))
    assert probes.findings("start") == answer
    os.utime(file, (0, 0))
    assert probes.findings("start")["failed"] == {}


def test_the_probe_of_huge_pages_finds_none_in_a_process_that_may_have_none():
    disable_thp = 41  # PR_SET_THP_DISABLE, which a program started from here inherits

    def forbid():
        ctypes.CDLL(None).prctl(disable_thp, 1, 0, 0, 0)

    found = json.loads(run(build.rank_program(), "--probe", "huge-pages", preexec_fn=forbid, timeout=60))
    assert not found["ok"] and found["reason"].startswith("0 of 64 MiB")


def test_probes_about_the_machine_run_only_when_they_are_named():
    named = ("clock", "huge-pages", "device-strided")
    answers_of = probes.by_name(probes.probe(2, "start," + ",".join(named)))
    assert [answers_of[name]["ok"] for name in ("clock", "device-strided")] == [True, True]
    assert not set(named) & set(probes._names("all"))
    assert "apart by at most" in answers_of["clock"]["reason"]


@pytest.mark.parametrize(("bad", "reason"), [("test-hang", "no answer within"), ("test-crash", "ended with code")])
def test_a_probe_that_hangs_or_crashes_fails_alone(cache, monkeypatch, bad, reason):
    monkeypatch.setattr(probes, "RANKS", (2,))
    monkeypatch.setattr(probes, "ALL_LIMIT_S", 3.0)
    monkeypatch.setattr(probes, "ONE_LIMIT_S", 3.0)
    found = probes.findings(f"start,{bad},test-fail,rma-memory-model")
    assert reason in found["failed"][bad]
    assert found["failed"]["test-fail"].startswith("it fails on request")
    assert set(found["passed"]) >= {"start"}
    assert len(found["passed"]) + len(found["failed"]) == 4


def test_nothing_is_concluded_and_kept_where_ranks_do_not_start(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("HALOSCOPE_MPIEXEC", str(executable(tmp_path / "mpiexec", "exit 7\n")))
    assert probes.findings()["passed"] == [] and probes.findings()["failed"] == {}
    assert not cache.exists()
    assert probes.lacking("direct/rma-fence") == ""


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("ordered/p2p", []),
        ("reference", []),
        ("direct/rma-lockall:rget", ["rma-lockall-put", "rma-rget"]),
        ("direct/neighbor", ["neighbor-graph-nonblocking"]),
        ("ordered/neighbor:persistent,packed", ["neighbor-graph-persistent"]),
        ("ordered/shared:packed+rma-pscw", ["shared-load-store", "shared-flags", "rma-pscw-put"]),
        ("direct/partitioned:late", ["partitioned"]),
    ],
)
def test_a_strategy_needs_the_probes_of_what_it_calls(strategy, expected):
    assert list(bridge.find_strategy(strategy).probes) == expected


def test_every_probe_that_a_strategy_names_exists():
    known = set(probes._names("all"))
    strategies = bridge.strategy_names() + bridge.device_strategy_names()
    needed = {name for strategy in strategies for name in bridge.find_strategy(strategy).probes}
    assert needed and needed <= known


@pytest.fixture
def fence_fails(monkeypatch):
    """As if this MPI had failed the probe of fences."""
    answer = {
        "mpi_library": "Any MPI",
        "passed": ["start"],
        "failed": {"rma-fence-put": "numbers were lost"},
        "notes": {},
    }
    monkeypatch.setattr(probes, "findings", lambda *_: answer)


def test_a_strategy_that_fails_its_probe_is_not_available_by_name(haloscope, fence_fails):
    result = haloscope("run", "laplace2d", *SMALL, "--strategy", "ordered/p2p,direct/rma-fence")
    assert result.code == 3
    assert "numbers were lost" in result.err
    assert not list(Path("results").rglob("*.jsonl"))
    with pytest.raises(UnavailableError, match="rma-fence"):
        raise UnavailableError(probes.lacking("direct/rma-fence"))


def test_a_glob_leaves_out_the_strategies_that_fail_their_probe_and_counts_them(haloscope, fence_fails):
    result = haloscope(
        "run", "laplace2d", *SMALL, "--launches", 1, "--strategy", "direct/rma-[fp]*", "--output", "r.jsonl"
    )
    assert result.code == 0, result.err
    found = records.read("r.jsonl").records
    skipped = [r for r in found if r["kind"] == "skipped"]
    assert skipped and all(r["exit_code"] == 3 and "numbers were lost" in r["reason"] for r in skipped)
    assert all("rma-fence" in r["request"]["strategy"] for r in skipped)
    measured = [r for r in found if r["kind"] == "measurement"]
    assert measured and all("rma-pscw" in r["request"]["strategy"] for r in measured)
    assert all(r["environment"]["probes"]["failed"] == {"rma-fence-put": "numbers were lost"} for r in measured)
    assert "not run" in result.out and "numbers were lost" in result.out


def test_info_shows_the_probes_and_the_strategies_they_rule_out(haloscope, fence_fails):
    facts = json.loads(haloscope("info", "--json").out)
    assert ["rma-fence-put", "no", "numbers were lost"] in facts["probes"]
    states = {entry["name"]: entry for entry in facts["transports"]}
    assert states["rma-fence"]["state"] == "no" and "numbers were lost" in states["rma-fence"]["about"]
    assert "rma-fence-put" in haloscope("info").out
