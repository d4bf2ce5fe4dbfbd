"""Files that others may have written: what is read, what is refused and why, what a cache takes and what it makes."""

from __future__ import annotations

import json
import lzma
import os
import resource
import socket
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guest_cases import guest_cases
from haloscope import files, records
from haloscope.errors import UsageError
from haloscope.fit import external_table
from haloscope.measure import hosts, importers, probes
from haloscope.model import profile
from test_records import measurement, write

# Every reader of a file that a user names.
READERS = {
    "records": records.read,
    "profile": profile.load,
    "table": external_table.read,
    "output": importers.read,
} | guest_cases("READERS")
RECORD = json.dumps(measurement()) + "\n"


def packed(path: Path, text: str) -> Path:
    path.write_bytes(lzma.compress(text.encode()))
    return path


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_regular_file_is_refused_at_once(reader, tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path("/dev/zero"), Path("/dev/tty0")):
        if path.exists():
            with pytest.raises(UsageError, match="cannot read"):
                READERS[reader](path)


@pytest.mark.parametrize("reader", READERS)
def test_a_file_of_more_bytes_than_are_read_is_refused(reader, tmp_path, monkeypatch):
    monkeypatch.setattr(files.bytes_of, "__defaults__", (100,))
    monkeypatch.setattr(files.text_of, "__defaults__", (100, False))
    monkeypatch.setattr(importers, "MOST_BYTES", 100)
    path = tmp_path / "long.json"
    path.write_text(" " * 101)
    with pytest.raises(UsageError, match="more than 100 bytes"):
        READERS[reader](path)


def test_a_file_of_hosts_is_bounded_too(tmp_path):
    path = tmp_path / "hosts"
    with path.open("wb") as file:
        file.truncate(hosts.MOST_BYTES + 1)
    with pytest.raises(UsageError, match="more than"):
        hosts.read(str(path))


@pytest.mark.parametrize("text", ["", "a", RECORD * 50])
def test_a_compressed_file_is_read_as_the_plain_one(text, tmp_path):
    assert files.bytes_of(packed(tmp_path / "a.xz", text)) == text.encode()


def test_compressed_streams_one_after_another_are_one_text(tmp_path):
    path = tmp_path / "two.xz"
    path.write_bytes(lzma.compress(b"one ") + lzma.compress(b"two"))
    assert files.bytes_of(path) == b"one two"


def test_a_small_file_that_unpacks_to_much_is_refused_before_it_fills_the_memory(tmp_path):
    bomb = tmp_path / "bomb.jsonl.xz"
    with lzma.open(bomb, "wb", preset=0) as file:
        for _ in range(130):
            file.write(b" " * (1 << 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UsageError, match="unpacked"):
        records.read(bomb)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < 2 * files.LEAST_UNPACKED


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b + b"\n", lambda b: b[:40] + b"\xff" + b[41:], lambda b: b"no"]
)
def test_a_damaged_compressed_file_is_refused_with_the_reason(damage, tmp_path):
    path = packed(tmp_path / "a.jsonl.xz", RECORD)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UsageError, match="xz file"):
        records.read(path)


# ---- compressed files are not written to -----------------------------------------------------------------------------

APPENDING = {
    "run": ("run", "laplace2d", "--cells", "64", "--ranks", "1"),
    "run again": ("run", "laplace2d", "--cells", "64", "--ranks", "1", "--resume"),
    "microbench": ("microbench", "--quick"),
    "tune": ("tune", "laplace2d", "--cells", "64", "--ranks", "1"),
    "tune again": ("tune", "laplace2d", "--cells", "64", "--ranks", "1", "--resume"),
} | guest_cases("APPENDING")


@pytest.mark.parametrize("command", APPENDING)
def test_no_command_adds_records_to_a_compressed_file(command, haloscope, tmp_path):
    path = packed(tmp_path / "a.jsonl.xz", RECORD)
    before = path.read_bytes()
    result = haloscope(*APPENDING[command], "--output", path)
    assert result.code == 2
    assert "xz -d" in result.err
    assert path.read_bytes() == before


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


IRREGULAR = {
    "pipe": os.mkfifo,
    "socket": make_socket,
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/full"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", IRREGULAR)
@pytest.mark.parametrize("command", APPENDING)
def test_no_command_adds_records_to_what_is_no_regular_file_or_waits_for_it(command, kind, haloscope):
    IRREGULAR[kind](Path("r.jsonl"))
    result = haloscope(*APPENDING[command], "--output", "r.jsonl")
    assert result.code == 2
    assert "r.jsonl" in result.err and "--output" in result.err


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "write_to", [records.prepare, records.refuse_foreign, records.try_to_write, lambda path: records.append(path, [{}])]
)
def test_nothing_that_writes_records_waits_for_the_reader_of_a_pipe(write_to, tmp_path):
    os.mkfifo(tmp_path / "r.jsonl")
    with pytest.raises(UsageError, match=r"r\.jsonl: it is not a regular file; choose another file with --output"):
        write_to(tmp_path / "r.jsonl")


@pytest.mark.parametrize("command", ["run", "tune"])
def test_no_command_begins_a_file_whose_name_says_that_it_is_compressed(command, haloscope, tmp_path):
    result = haloscope(*APPENDING[command], "--output", tmp_path / "new.jsonl.xz")
    assert result.code == 2
    assert not (tmp_path / "new.jsonl.xz").exists()


@pytest.mark.parametrize(
    "write_to", [records.prepare, records.refuse_foreign, records.try_to_write, lambda path: records.append(path, [{}])]
)
def test_nothing_that_writes_records_takes_a_compressed_file(write_to, tmp_path):
    path = packed(tmp_path / "a.jsonl.xz", RECORD)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="xz -d"):
        write_to(path)
    assert path.read_bytes() == before


# ---- JSON ------------------------------------------------------------------------------------------------------------


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("text", ["1", nested(64), '{"a": ' + nested(63) + "}", "[1e300, -12345678901234567]"])
def test_json_of_usual_depth_and_numbers_is_read_as_it_is(text):
    assert files.json_of(text) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (nested(65), "more than 64"),
        ('{"a": ' * 64 + "[]" + "}" * 64, "more than 64"),
        (nested(300_000), "more than 64"),
        ("[" * 300_000, "more than 64|Expecting value"),
        ("[NaN]", "NaN is not a number"),
        ("-Infinity", "-Infinity is not a number"),
        ("1e999", "too large"),
        ("1" * 5000, "too large"),
        ("{", "Expecting"),
    ],
)
def test_json_that_no_program_needs_is_refused_with_the_reason(text, why):
    with pytest.raises(files.Unfit, match=why):
        files.json_of(text)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(10**17), 10**17)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_every_value_of_usual_depth_is_read_as_it_was_written(value):
    assert files.json_of(json.dumps(value)) == value


@pytest.mark.parametrize("text", [nested(100_000), '{"schema": NaN}', "[" * 100_000])
def test_a_line_or_a_profile_of_such_json_is_an_error_that_names_the_file(text, tmp_path):
    path = tmp_path / "deep.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"deep\.json"):
        profile.load(path)
    [(number, _)] = records.read(path).bad_lines
    assert number == 1


# ---- caches ----------------------------------------------------------------------------------------------------------

FOUND = {"mpi_library": "MPICH", "passed": ["start"], "failed": {}, "notes": {}}


def is_whole(value) -> bool:
    return isinstance(value, dict)


def test_an_entry_is_found_again_as_it_was_kept_and_no_other_user_can_read_or_write_it(tmp_path):
    path = tmp_path / "new" / "entry.json"
    old = os.umask(0)
    try:
        files.keep(path, FOUND)
    finally:
        os.umask(old)
    assert files.kept(path, is_whole) == FOUND
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_keeping_an_entry_writes_through_no_link(tmp_path):
    target, path = tmp_path / "precious", tmp_path / "entry.json"
    target.write_text("mine")
    path.symlink_to(target)
    files.keep(path, FOUND)
    assert target.read_text() == "mine"
    assert files.kept(path, is_whole) == FOUND


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    files.keep(tmp_path / "file" / "entry.json", FOUND)
    (tmp_path / "entry.json").mkdir()
    files.keep(tmp_path / "entry.json", FOUND)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["entry.json", "file"]


def spoil(path: Path, how: str) -> None:
    if how in ("link", "pipe", "folder"):
        path.unlink()
    match how:
        case "link":
            (path.parent / "other").write_text(json.dumps(FOUND))
            path.symlink_to(path.parent / "other")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "writable":
            path.chmod(0o620)
        case "of another":
            os.chown(path, 12345, -1)
        case "large":
            path.write_text(json.dumps(FOUND | {"notes": {"a": "x" * (64 << 10)}}))
        case _:
            path.write_text(how)


SPOILT = [
    "link",
    "pipe",
    "folder",
    "writable",
    "of another",
    "large",
    "",
    "{",
    "\udcff",
    nested(100_000),
    "[]",
    "{}",
    "null",
    "1",
    '{"mpi_library": "", "passed": [], "failed": {"partitioned": 5}, "notes": {}}',
    '{"mpi_library": "", "passed": ["a", 1], "failed": {}, "notes": {}}',
    '{"mpi_library": "", "passed": {}, "failed": [], "notes": {}}',
]


@pytest.mark.parametrize("how", SPOILT)
def test_findings_that_someone_spoilt_are_not_there(how, tmp_path, monkeypatch):
    if how == "of another" and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    path = tmp_path / "entry.json"
    monkeypatch.setattr(probes, "_cache_file", lambda names: path)
    monkeypatch.setattr(probes, "_ask", lambda names: FOUND | {"mpi_library": "asked"})
    files.keep(path, FOUND)
    assert probes.findings() == FOUND
    if how == "\udcff":
        path.write_bytes(b"\xff")
    else:
        spoil(path, how)
    assert probes.findings()["mpi_library"] == "asked"
    if how != "folder":
        assert probes.findings()["mpi_library"] == "asked"
        assert files.kept(path, is_whole)["mpi_library"] == "asked"


def test_records_that_are_written_by_hand_with_numbers_that_are_none_are_left_out(tmp_path):
    text = json.dumps(measurement())
    lines = [text.replace("1.1", word) for word in ("NaN", "Infinity", "0", "-1", "1e400", "1e7")]
    path = write(tmp_path / "r.jsonl", *(f"{line}\n" for line in lines), measurement())
    found = records.read(path)
    assert [number for number, _ in found.bad_lines] == [1, 2, 3, 4, 5, 6]
    assert len(found.records) == 1
