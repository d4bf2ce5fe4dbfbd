"""Any content of a file: an exit code from 0 to 3, one line of error with a remedy, and no fault of the
program.
"""

from __future__ import annotations

import functools
import io
import json
import lzma
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from guest_cases import guest_cases
from haloscope import cli, files, records, studies
from haloscope.bridge import build
from haloscope.errors import HaloscopeError
from haloscope.fit import external_table
from haloscope.measure import hosts, importers, probes
from haloscope.model import profile
from haloscope.records import differences
from haloscope.report import figures
from long_run import LONG
from mutate import damaged, document_of, lines_of
from paths import ROOT
from test_any_input import time_limit
from test_external import COLUMNS, ROW
from test_files import FOUND
from test_importers import OUTPUTS
from test_records import measurement
from test_terminal import STEERS
from toy import TOY

RUNS = ROOT / "results/studies"
KEPT = sorted(file.parent.name for file in RUNS.glob("*/records.jsonl.xz")) if studies.names() else []
GRID = ("laplace2d", "--cells", "64", "-n", "2")
PRICED = ("--profile", TOY)
CSV = "\n".join(
    [COLUMNS, *(ROW.replace("1e-4", f"{n}e-4").replace("16x16x16", f"{12 + n}x16x16") for n in range(1, 10))]
)


@functools.cache
def kept(name: str, count: int) -> list[dict]:
    return records.read(ROOT / "results" / name).records[:count]


def measured() -> list[dict]:
    pairs = [
        measurement(f"d{d}", f"launch-{k}", (d * 0.1, d * 0.11), cells=[64, 64], depth=d)
        for d in (1, 2)
        for k in (1, 2)
    ]
    return pairs + kept("demo.jsonl", 3)


def emulated() -> list[dict]:
    network = {"hosts": 2, "latency_s": 5e-5, "bandwidth_bytes_per_s": 1.25e9, "jitter_s": 0.0}
    found = measured()[:4]
    for record in found:
        record["environment"]["emulated_network"] = network
    return found


def imported() -> list[dict]:
    return [record for name in ("imb-2021.txt", "stream.txt") for record in importers.read(OUTPUTS / name).records]


def of_records(make: Callable[[], list[dict]]) -> Callable[[Random], bytes]:
    return lambda random: lines_of(random, make())


@functools.cache
def lines_of_run(run: str) -> list[str]:
    """Return the records of a kept run of a study as text, its options first."""
    with lzma.open(RUNS / run / "records.jsonl.xz", "rt") as file:
        return file.readlines()


def of_a_part(run: str) -> Callable[[Random], bytes]:
    """Part of a run of a study: its first records, as an interrupted one leaves them, or any."""

    def make(random: Random) -> bytes:
        first, *others = lines_of_run(run)
        count = min(random.choice((5, 20, 60)), len(others))
        some = others[:count] if random.random() < 0.5 else random.sample(others, count)
        return lines_of(random, [json.loads(line) for line in (first, *some)])

    return make


def of_study(run: str) -> Callable[[Path], tuple]:
    return lambda file: ("study", run.partition("-")[0], "--from", file)


def of_text(name: str) -> Callable[[Random], bytes]:
    return lambda random: damaged(random, (OUTPUTS / name).read_bytes())


def of_profile(random: Random) -> bytes:
    return document_of(random, json.loads(TOY.read_text()))


# For each reader: what its files are made of, and the commands that read one.
COMMANDS: dict[str, tuple[Callable[[Random], bytes], Callable[[Path], tuple]]] = {
    "validate": (of_records(measured), lambda f: ("validate", f, *PRICED, "--samples", "5", "-o", f.with_name("v"))),
    "compare": (of_records(measured), lambda f: ("compare", f, f)),
    "report": (of_records(measured), lambda f: ("report", f, *PRICED, "-o", f.with_name("p.html"))),
    "map": (of_records(emulated), lambda f: ("map", "laplace2d", *PRICED, "--measured", f)),
    "microbench": (of_records(imported), lambda f: ("microbench", "--from", f, "--figure", f.with_name("m"))),
    "demo": (of_records(lambda: kept("demo.jsonl", 24)), lambda f: ("demo", "--from", f, "--output", f.parent)),
    "calibrate": (of_records(measured), lambda f: ("calibrate", "--from", f, "-o", f.with_name("new.json"))),
    "predict": (of_profile, lambda f: ("predict", *GRID, "--depth", "2", "--profile", f)),
    "advise": (of_profile, lambda f: ("advise", *GRID, "--depth", "1,2", "--profile", f)),
    "whatif": (of_profile, lambda f: ("whatif", *GRID, "--profile", f)),
    "simulate": (of_profile, lambda f: ("simulate", *GRID, "--profile", f)),
    "external": (lambda random: damaged(random, CSV.encode()), lambda f: ("validate", "--external", f)),
    "IMB": (of_text("imb-2021.txt"), lambda f: ("microbench", "--import", f, "--output", f.with_name("o.jsonl"))),
    "OSU": (of_text("osu.txt"), lambda f: ("microbench", "--import", f, "--output", f.with_name("o.jsonl"))),
    "SKaMPI": (of_text("skampi.txt"), lambda f: ("microbench", "--import", f, "--output", f.with_name("o.jsonl"))),
    "STREAM": (of_text("stream.txt"), lambda f: ("microbench", "--import", f, "--output", f.with_name("o.jsonl"))),
} | guest_cases("FILES_OF_COMMANDS")
STUDIED = {f"study {run}": (of_a_part(run), of_study(run)) for run in KEPT}
COMMANDS |= STUDIED
SLOW = ("map", "validate", "demo", "report", *STUDIED)  # predict or resample much


def answer(words, capsys) -> None:
    capsys.readouterr()
    with time_limit(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        code = cli.main([str(word) for word in words])
    captured = capsys.readouterr()
    # A study whose records have a failed check ends with 1. A fault of the command line itself is an exception here.
    assert code in (0, 2, 3) or (code == 1 and words[0] == "study")
    assert not STEERS.search(captured.out + captured.err)
    if code:
        assert captured.err.splitlines()
    assert all(line.startswith("haloscope: ") for line in captured.err.splitlines()), captured.err


@pytest.fixture(autouse=True)
def no_figures(monkeypatch):
    """Figures are put together but not drawn, which takes longest, unless everything is to be tried."""
    if not LONG:
        monkeypatch.setattr(figures, "save", lambda figure, stem: figures.plt.close(figure) or [stem, stem])


@pytest.mark.parametrize("name", COMMANDS)
def test_any_file_gets_an_answer(name, tmp_path, monkeypatch, capsys):
    make, words = COMMANDS[name]
    monkeypatch.chdir(tmp_path)

    @settings(
        max_examples=100 if LONG else 2 if name in SLOW else 5,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],
    )
    @given(seed=st.integers(0, 10**9))
    def holds(seed):
        file = tmp_path / "file.json"
        file.write_bytes(make(Random(seed)))
        (tmp_path / "o.jsonl").unlink(missing_ok=True)
        (tmp_path / "new.json").unlink(missing_ok=True)
        answer(words(file), capsys)

    holds()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_files_that_are_changed_are_good_before(name, tmp_path, monkeypatch, capsys):
    make, words = COMMANDS[name]
    monkeypatch.chdir(tmp_path)
    for function in ("changed", "damaged"):
        for module in ("mutate", __name__):
            monkeypatch.setattr(f"{module}.{function}", lambda random, value: value, raising=False)
    file = tmp_path / "file.json"
    file.write_bytes(make(Random(1)))
    capsys.readouterr()
    code = cli.main([str(word) for word in words(file)])
    captured = capsys.readouterr()
    known = (("calibrate", 2), ("external", 2), ("conjugate gradients", 3))  # 3: next to a study of skipped runs
    assert code == 0 or (name, code) in known, captured.err


def of_requests(random: Random) -> bytes:
    return lines_of(
        random, [{"kind": record["kind"], "id": record["id"], "request": request_of(record)} for record in REQUESTED]
    )


def request_of(record: dict) -> dict:
    """Return the request of a record without `grid`, which the ranks note."""
    return {name: value for name, value in record["request"].items() if name != "grid"}


def check_requests(file: Path) -> None:
    """Have the rank program judge each line: it answers with texts, or refuses the file."""
    done = subprocess.run([build.rank_program(), "--check", file], check=False, capture_output=True, text=True)
    assert done.returncode in (0, 2), done
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(isinstance(answer, str) and not STEERS.search(answer) for answer in answers)
    if done.returncode or any(answers):
        raise HaloscopeError(next(filter(None, answers), done.stderr))


def of_packed(random: Random) -> bytes:
    """Records in xz, damaged before they were packed or after that."""
    if random.random() < 0.5:
        return lzma.compress(lines_of(random, measured()), preset=0)
    return damaged(random, lzma.compress(lines_of(random, measured()), preset=0))


def named(name: str, read: Callable[[Path], object]) -> Callable[[Path], object]:
    """A reader of files of a name."""
    return lambda file: read(file.replace(file.with_name(name)))


def of_array(random: Random) -> bytes:
    return damaged(random, npy(NUMBERS.astype(random.choice(("f8", "f4", "i4", "c16", ">f8", "?")))))


def compares(name: str, good: bytes, **rules) -> Callable[[Path], None]:
    """A comparison of a file that a program has written with a good one, each of both as the base."""

    def compare(file: Path) -> None:
        folders = [file.with_name(word) for word in ("good", "written")]
        for folder, data in zip(folders, (good, file.read_bytes()), strict=True):
            folder.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
        how = differences.Rules(printed=False, files=(name,), **rules)
        for base, other in (folders, folders[::-1]):
            differences.check_base(how, base, "", "1 rank")
            for found in differences.compare_runs(how, (base, ""), (other, "")):
                assert found.relative >= 0 and found.absolute >= 0, "no NaN"
                differences.summarize([found])

    return compare


def npy(array: np.ndarray) -> bytes:
    data = io.BytesIO()
    np.save(data, array)
    return data.getvalue()


REQUESTED = [measurement(depth=2), *kept("demo.jsonl", 3), *guest_cases("REQUESTED").values()]
NUMBERS = np.arange(24.0).reshape(2, 3, 4)
READERS: dict[str, tuple[Callable[[Random], bytes], Callable[[Path], object]]] = {
    "records": (of_records(measured), records.read),
    "profile": (of_profile, profile.load),
    "hosts": (lambda random: damaged(random, b"node1 slots=2\nnode2:2\n# none\n"), lambda f: hosts.read(str(f))),
    "IMB": (of_text("imb-2021.txt"), importers.read),
    "OSU": (of_text("osu.txt"), lambda f: ("microbench", "--import", f, "--output", f.with_name("o.jsonl"))),
    "SKaMPI": (of_text("skampi.txt"), importers.read),
    "STREAM": (of_text("stream.txt"), importers.read),
    "external": (lambda random: damaged(random, CSV.encode()), external_table.read),
    "requests": (of_requests, check_requests),
    "compressed records": (of_packed, named("file.jsonl.xz", records.read)),
    "arrays": (of_array, compares("u.npy", npy(NUMBERS))),
    "raw arrays": (
        lambda random: damaged(random, NUMBERS.tobytes()),
        compares("u.raw", NUMBERS.tobytes(), type="f8", shape=(4, 3, 2), tolerance=differences.Tolerance(0.1, 0.5)),
    ),
    "cache": (lambda random: document_of(random, FOUND), lambda f: files.kept(f, probes._is_whole)),
} | guest_cases("FILES_OF_READERS")
