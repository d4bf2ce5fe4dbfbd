"""Temporary folders: those of processes that were killed are removed later, and no others."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from pathlib import Path

import pytest

from haloscope import cli, scratch

ENDED = 2**22 + 7  # more than any process has
ENDLESS = ("run", "laplace2d", "--cells", "64", "-n", "2", "--seconds", "1000", "--repetitions", "1")


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    """Temporary folders of a test lie in a folder of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_the_next_run_removes_the_folder_of_one_that_was_killed(tmp_path):
    words = [*ENDLESS, "--output", str(tmp_path / "records.jsonl")]
    run = multiprocessing.get_context("fork").Process(target=cli.main, args=(words,))
    run.start()
    try:
        while not list(tmp_path.glob(f"{scratch.RUN}*/board")):
            assert run.is_alive()
            time.sleep(0.05)
        with scratch.folder():
            assert len(list(tmp_path.glob(f"{scratch.RUN}*"))) == 2, "the folder of a run that goes on stays"
    finally:
        run.kill()
        run.join()
    assert len(list(tmp_path.glob(f"{scratch.RUN}*"))) == 1
    with scratch.folder() as own:
        assert list(tmp_path.glob(f"{scratch.RUN}*")) == [own]
    assert not own.exists()


def test_folders_of_other_places_users_and_kinds_stay(tmp_path, monkeypatch):
    place = scratch._place()
    names = {
        kind: f"{scratch.RUN}{where}-{number}-x"
        for kind, where, number in (
            ("own", place, ENDED),
            ("of a living process", place, os.getpid()),
            ("of another container", f"{place}1", ENDED),
            ("without a number", place, "x"),
            ("with another digit", place, "²"),
        )
    }
    names["of a cluster"] = f"{scratch.LAB}{place}-{ENDED}-x"
    for name in names.values():
        (tmp_path / name).mkdir()
    with monkeypatch.context() as other:
        other.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert scratch.sweep(scratch.RUN) == []
    assert scratch.sweep(scratch.RUN) == [tmp_path / names.pop("own")]
    assert {path.name for path in tmp_path.iterdir()} == set(names.values())


def test_where_the_system_shows_no_place_folders_are_made_all_the_same(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", refuse)
    with scratch.folder() as own:
        assert own.is_dir()
    assert scratch.sweep(scratch.RUN) == []
