"""What commands write: whole or not at all, over Haloscope's own files only, through links, with permissions as they
were.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import resource
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from guest_cases import guest_cases
from haloscope import outputs
from haloscope.model import profile
from haloscope.report import figures
from long_run import or_long
from test_any_file import GRID, PRICED, ROOT, measured, time_limit
from test_calibrate import Maker, cached
from test_importers import OUTPUTS
from test_records import write
from toy import TOY


def of_a_kernel() -> list[dict]:
    return Maker().kernel("laplace2d/star/f64", cached).made


@dataclasses.dataclass(frozen=True)
class Writer:
    """A command, the files that it writes over, and the records that it reads from r.jsonl."""

    words: tuple
    files: tuple[str, ...]
    records: Callable[[], list[dict]] = list


WRITERS = {
    "validate": Writer(
        ("validate", "r.jsonl", *PRICED, "--samples", "0", "-o", "v"), ("v.md", "v.svg", "v.png"), measured
    ),
    "report": Writer(("report", "r.jsonl", "-o", "p.html"), ("p.html",), measured),
    "simulate": Writer(
        ("simulate", *GRID, *PRICED, "--goal", "s.goal", "--extrap", "s.jsonl", "--plot", "s"),
        ("s.goal", "s.jsonl", "s.svg", "s.png"),
    ),
    "map": Writer(
        ("map", "laplace2d", *PRICED, "--blocks", "16", "--latency", "1us", "-d", "1", "--output", "m"),
        ("m.svg", "m.png"),
    ),
    "microbench": Writer(
        ("microbench", "--import", OUTPUTS / "imb-2021.txt", "--output", "i.jsonl"), ("i.svg", "i.png")
    ),
    "demo": Writer(
        ("demo", "--from", ROOT / "results/demo.jsonl", "--output", "d"), ("d/demo.svg", "d/demo.png", "d/page.html")
    ),
    "calibrate": Writer(("calibrate", "--from", "r.jsonl", "-o", "c.json"), ("c.json",), of_a_kernel),
} | {name: Writer(*case) for name, case in guest_cases("WRITERS").items()}
CASES = or_long(
    [(name, writer.files[-1]) for name, writer in WRITERS.items()],
    ((name, file) for name, writer in WRITERS.items() for file in writer.files[:-1]),
)


def drawn_by_another(file: Path) -> None:
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    figure.savefig(file)
    plt.close(figure)


# Files of other programs, in the formats that Haloscope writes.
OF_OTHERS = {
    ".goal": "num_ranks 2\nrank 0 {\nl1: calc 1 cpu 0\n}\nrank 1 {\n}\n",
    ".jsonl": '{"params": {"ranks": 2}, "callpath": "main", "metric": "time", "value": 1.5}\n',
    ".json": '{"traceEvents": [{"name": "sweep", "ph": "X", "ts": 0, "dur": 1, "pid": 0, "tid": 0}]}\n',
    ".html": "<!doctype html>\n<title>My thesis</title>\n",
    ".md": "# Predicted against measured: my thesis\n",
    ".sh": "#!/bin/bash\nsbatch mine.sbatch\n",
    ".sbatch": "#!/bin/bash\n#SBATCH --nodes=1\nsrun ./mine\n",
}


def put(file: Path) -> None:
    """Make a file of another program."""
    file.parent.mkdir(exist_ok=True)
    if file.suffix in OF_OTHERS:
        file.write_text(OF_OTHERS[file.suffix])
    else:
        drawn_by_another(file)


def held() -> dict[str, bytes]:
    """What the files below this folder hold, but for those that records were added to."""
    return {str(f): f.read_bytes() for f in Path().rglob("*") if f.is_file() and str(f) != "i.jsonl"}


@pytest.fixture(autouse=True)
def coarse_figures(monkeypatch):
    """Figures have few pixels, which take less time."""
    monkeypatch.setattr("haloscope.report.figures.DOTS_PER_INCH", 20)


@pytest.fixture
def run(haloscope):
    """Return a function that runs a writer in an empty folder and returns its code and its messages."""

    def start(name: str):
        writer = WRITERS[name]
        if not Path("r.jsonl").exists():
            write(Path("r.jsonl"), *writer.records())
        Path("i.jsonl").unlink(missing_ok=True)
        with time_limit():
            return haloscope(*writer.words)

    return start


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    """Return the folder that keeps what each writer has written, in a folder of its name."""
    return tmp_path_factory.mktemp("written")


@pytest.fixture
def write_first(run, kept):
    """Return a function that fills an empty folder with what a writer writes."""

    def fill(name: str) -> None:
        if not (kept / name).exists():
            assert run(name).code == 0
            shutil.copytree(".", kept / name)
        else:
            shutil.copytree(kept / name, ".", dirs_exist_ok=True)

    return fill


@pytest.mark.parametrize("name", WRITERS)
def test_a_command_writes_over_its_own_files(name, run):
    first = run(name)
    assert first.code == 0, first.err
    before = held()
    assert set(WRITERS[name].files) <= before.keys()
    again = run(name)
    assert again.code == 0, again.err
    assert held().keys() == before.keys()


@pytest.mark.parametrize(("name", "file"), CASES)
def test_a_file_of_another_program_stays_even_in_the_same_format(name, file, run, write_first):
    write_first(name)
    put(Path(file))
    before = held()
    result = run(name)
    assert result.code == 2 and f"{file} exists and was not written by haloscope" in result.err
    assert held() == before


@pytest.mark.parametrize(("name", "file"), CASES)
def test_a_pipe_is_refused_at_once(name, file, run):
    Path(file).parent.mkdir(exist_ok=True)
    os.mkfifo(file)
    result = run(name)
    assert result.code == 2 and f"{file} is not a regular file" in result.err


@contextlib.contextmanager
def most_bytes(count: int) -> Iterator[None]:
    """Have no file grow beyond `count` bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_all_files_as_they_were(name, run, write_first, monkeypatch):
    write_first(name)
    before = held()
    if name == "microbench":
        monkeypatch.setattr("haloscope.records.append", lambda path, found: None)
    with most_bytes(16):
        result = run(name)
    assert result.code == 1 and "cannot write" in result.err and "free some space" in result.err
    assert held() == before


@pytest.mark.parametrize(("name", "file"), CASES)
def test_a_file_is_whole_or_as_it_was_whichever_of_several_fails(name, file, run, write_first, monkeypatch):
    """Each draft but that of this file gets onto the disk."""
    write_first(name)
    before, fsync = held(), os.fsync

    def fail(handle: int) -> None:
        fsync(handle)
        if writing == [file]:
            raise OSError(28, "No space left on device")

    writing, real = [], outputs.writing

    @contextlib.contextmanager
    def noted(path, kind):
        writing[:] = [str(path)]
        with real(path, kind) as draft:
            yield draft

    monkeypatch.setattr(outputs, "writing", noted)
    monkeypatch.setattr(os, "fsync", fail)
    result = run(name)
    assert result.code == 1 and f"cannot write {file}: No space left" in result.err
    assert held()[file] == before[file] and held().keys() == before.keys()


# ---- the gate itself -------------------------------------------------------------------------------------------------


def test_a_link_stays_and_the_file_that_it_leads_to_is_replaced_with_its_permissions(tmp_path):
    target, link = tmp_path / "real.md", tmp_path / "link.md"
    outputs.write_report(target, "old")
    target.chmod(0o640)
    link.symlink_to("real.md")
    outputs.write_report(link, "new")
    assert link.is_symlink() and "new" in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(f.name for f in tmp_path.iterdir()) == ["link.md", "real.md"]


def test_a_new_file_gets_the_permissions_that_the_user_has_set(tmp_path):
    old = os.umask(0o027)
    try:
        outputs.write_report(tmp_path / "new" / "a.md", "text")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new" / "a.md").stat().st_mode) == 0o640


def test_a_replaced_file_stays_that_of_its_owner(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    outputs.write_report(tmp_path / "a.md", "old")
    os.chown(tmp_path / "a.md", 12345, 12345)
    outputs.write_report(tmp_path / "a.md", "new")
    assert ((tmp_path / "a.md").stat().st_uid, (tmp_path / "a.md").stat().st_gid) == (12345, 12345)


def test_an_exception_in_the_middle_leaves_the_old_file_and_no_draft(tmp_path):
    outputs.write_report(tmp_path / "a.md", "old")
    before = (tmp_path / "a.md").read_text()

    def interrupted() -> None:
        with outputs.writing(tmp_path / "a.md", outputs.REPORT) as draft:
            draft.write("half of")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "a.md").read_text() == before and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("place", [".", "/dev/null", "/dev/zero"])
def test_a_folder_or_device_is_refused(place):
    with pytest.raises(outputs.UsageError, match="not a regular file"):
        outputs.write_report(Path(place), "text")


def test_links_in_a_circle_are_refused(tmp_path):
    (tmp_path / "a.md").symlink_to("b.md")
    (tmp_path / "b.md").symlink_to("a.md")
    with pytest.raises(outputs.UsageError, match=r"a\.md exists and cannot be read"):
        outputs.write_report(tmp_path / "a.md", "text")


def test_stems_that_differ_after_a_dot_are_different_files(tmp_path):
    names = {outputs.beside(tmp_path / stem, ".svg").name for stem in ("v0.20", "v0.1000", "v0")}
    assert names == {"v0.20.svg", "v0.1000.svg", "v0.svg"}
    for file, stem in {
        "m.1.jsonl": "m.1",
        "m.jsonl.xz": "m",
        "t.json": "t",
        "v0.20": "v0.20",
        ".jsonl": ".jsonl",
    }.items():
        assert outputs.stem_of(Path(file)) == Path(stem)


def test_a_figure_that_may_not_be_saved_is_closed(tmp_path):
    drawn_by_another(tmp_path / "f.png")
    drawn = plt.figure()
    with pytest.raises(outputs.UsageError, match=r"f\.png"):
        figures.save(drawn, tmp_path / "f")
    assert not plt.fignum_exists(drawn.number) and not (tmp_path / "f.svg").exists()


def test_figures_of_the_documentation_are_those_that_may_be_drawn_again():
    for file in (ROOT / "docs" / "figures").iterdir():
        outputs.refuse_foreign(file, outputs.FIGURE)


def test_traces_of_ranks_are_told_from_those_of_other_programs(tmp_path):
    """The rank program writes them, without a word of its own but a label."""
    label = {"args": {"labels": "clock -0.125 us +- 0.060 us"}, "name": "process_labels", "ph": "M", "pid": 0, "tid": 0}
    (tmp_path / "t.json").write_text(f"[\n{json.dumps(label)}\n]\n")
    outputs.refuse_foreign(tmp_path / "t.json", outputs.TRACE)


@pytest.mark.parametrize("backup", ["m.json~", "m.jsonl~"])
def test_a_calibration_keeps_the_old_one_in_no_place_of_a_file_of_others(backup, haloscope):
    profile.save(profile.load(TOY), "m.json")
    write(Path("m.jsonl"), *of_a_kernel())
    Path(backup).write_text("mine\n")
    before = held()
    result = haloscope("calibrate", "-o", "m.json", "--quick", "--sections", "reductions")
    assert result.code == 2 and f"{backup} exists and was not written by haloscope" in result.err
    assert held() == before
