"""Where the compiled parts are looked for: where the package is installed or checked out, never in folders above
that.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from haloscope.bridge import build
from haloscope.errors import UnavailableError

# Above the package; each is an installed tree of somebody else.
FOLDERS = ("scratch", "scratch/home", "scratch/home/code")
PACKAGES = {
    "a checkout": "scratch/home/code/checkout/python/haloscope",
    "a wheel": "scratch/home/code/venv/lib/python3.11/site-packages/haloscope",
    "an installed tree": "scratch/home/code/prefix/lib64/python3.11/site-packages/haloscope",
    "Debian's installed tree": "scratch/home/code/prefix/local/lib/python3.11/dist-packages/haloscope",
    "a folder of packages": "scratch/home/code/packages/haloscope",
}
# What holds the compiled parts of each, from the package.
PARTS = {
    "a checkout": "../../build/release",
    "a wheel": ".",
    "an installed tree": "../../../..",
    "Debian's installed tree": "../../../../..",
    "a folder of packages": ".",
}


def plant(tree: Path) -> Path:
    """Make an installed tree of empty files; return its library."""
    for name in (f"{build.HEADERS[0]}/status.h", f"lib/{build.LIBRARY}", f"bin/{build.RANK_PROGRAM}"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch(mode=0o755)
    return tree / "lib" / build.LIBRARY


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a function that puts the package somewhere below planted trees, and returns its folder."""

    def put(kind: str) -> Path:
        for folder in FOLDERS:
            plant(tmp_path / folder)
        package = tmp_path / PACKAGES[kind]
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        if kind == "a checkout":
            (package.parents[1] / "CMakeLists.txt").touch()
        monkeypatch.setattr(build, "_PACKAGE", package)
        monkeypatch.setattr(build, "_CHECKOUT", package.parents[1])
        return package

    monkeypatch.delenv("HALOSCOPE_BUILD")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    old = os.umask(0o022)
    yield put
    os.umask(old)


@pytest.mark.parametrize("kind", PACKAGES)
def test_nothing_is_loaded_from_a_folder_above_the_package(kind, place):
    place(kind)
    for ask in (build.library, build.built_rank_program):
        with pytest.raises(UnavailableError, match="was not found in"):
            ask()


@pytest.mark.parametrize("kind", PACKAGES)
def test_the_tree_that_holds_the_package_is_found(kind, place):
    package = place(kind)
    tree = Path(os.path.normpath(package / PARTS[kind]))
    library = plant(tree)
    assert build.library() == library
    assert build.header("status.h").is_relative_to(tree)
    assert build.built_rank_program() == tree / "bin" / build.RANK_PROGRAM


def test_a_program_on_path_leads_to_the_tree_that_it_is_in(place, tmp_path, monkeypatch):
    place("a wheel")
    library = plant(tmp_path / "tree")
    monkeypatch.setenv("PATH", str(tmp_path / "tree" / "bin"))
    assert build.library() == library


SPOILS = {
    "a library of all": lambda library: library.chmod(0o757),
    "a library of a group": lambda library: library.chmod(0o775),
    "a library of another user": lambda library: os.chown(library, 12345, -1),
    "a folder of all": lambda library: library.parent.chmod(0o777),
    "a folder of another user": lambda library: os.chown(library.parent, 12345, -1),
}


@pytest.mark.parametrize("how", SPOILS)
def test_a_library_that_others_can_change_is_refused_by_name_unless_the_user_names_it(how, place, monkeypatch):
    if "another user" in how and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    library = plant(place("a wheel"))
    SPOILS[how](library)
    spoilt = library.parent if "folder" in how else library
    with pytest.raises(
        UnavailableError, match=rf"{spoilt} (belongs to another|can be changed by other).*HALOSCOPE_BUILD"
    ):
        build.library()
    monkeypatch.setenv("HALOSCOPE_BUILD", str(library.parents[1]))
    assert build.library() == library


def test_who_can_change_the_package_may_change_its_library(place):
    """Files of a container, or of a mounted folder, may all belong to one other user, or to everybody."""
    package = place("a wheel")
    library = plant(package)
    (package / "__init__.py").chmod(0o666)
    library.chmod(0o777)
    if os.geteuid() == 0:
        os.chown(package / "__init__.py", 12345, -1)
        os.chown(library, 12345, -1)
    assert build.library() == library


def test_a_folder_in_which_nobody_renames_what_others_own_may_be_on_the_way(place, tmp_path):
    package = place("a checkout")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    library = plant(shared / "mine")
    (package.parents[1] / "build").mkdir()
    (package.parents[1] / "build" / "release").symlink_to(shared / "mine")
    assert build.library().resolve() == library
    shared.chmod(0o777)
    with pytest.raises(UnavailableError, match=rf"{shared} can be changed"):
        build.library()


def test_the_header_is_that_of_the_sources_that_a_build_was_made_from(place, tmp_path, monkeypatch):
    place("a checkout")
    plant(tmp_path / "sources")
    made = tmp_path / "scratch" / "made"
    made.mkdir()
    (made / build.LIBRARY).touch()
    (made / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={tmp_path / 'sources'}\n")
    monkeypatch.setenv("HALOSCOPE_BUILD", str(made))
    assert build.header("status.h") == tmp_path / "sources" / build.HEADERS[0] / "status.h"
    (made / "CMakeCache.txt").unlink()
    with pytest.raises(UnavailableError, match="was not found near"):
        build.header("status.h")


def test_an_interpreter_that_is_started_runs_nothing_from_the_current_folder(tmp_path):
    (tmp_path / "click.py").write_text("raise SystemExit('it ran')")
    for words in (["-c", "import click"], ["-m", "haloscope.cli", "--help"]):
        assert subprocess.run(build.python(*words), cwd=tmp_path, check=False, capture_output=True).returncode == 0
