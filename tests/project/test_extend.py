"""Worked examples of docs/extend/: applied to a copy of the tree, they do what their page states.

A page shows a new file below a line "`PATH`:", and a change below "In `PATH`:" as a diff without line numbers, whose
old lines stand in the file once.
"""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from haloscope.bridge import build
from haloscope.measure import launch
from paths import ROOT
from programs import run
from toy import TOY

PAGES = ROOT / "docs" / "extend"
SOURCES = ("cmake", "include", "python", "scripts", "src")
SMALL = ("STUDIES", "TESTS", "BENCH", "RANK", "AVX", "OPENMP")  # parts that a library of predictions does not need
BLOCK = re.compile(r"^(In )?`([^`\n]+)`:\n\n```(\w+)\n(.*?)```", re.DOTALL | re.MULTILINE)
# A program with the packages of some folders: an editable installation would be found before any folder.
FROM_FOLDERS = """import sys
sys.meta_path[:] = [one for one in sys.meta_path if "ScikitBuild" not in type(one).__name__]
sys.path[:0] = sys.argv.pop(1).split(":")
"""
COMMAND = f"{FROM_FOLDERS}from haloscope import cli\nsys.exit(cli.main(sys.argv[1:]))"
SCHEMA = f"{FROM_FOLDERS}import runpy\nrunpy.run_path(sys.argv[1], run_name='__main__')"


def blocks_of(page: str) -> list[tuple[bool, str, str]]:
    """Return of each named block of a page whether it is a change, its file, and its text."""
    found = [(bool(change), path, body) for change, path, _, body in BLOCK.findall((PAGES / page).read_text())]
    assert found
    return found


def new_files(page: str) -> dict[str, str]:
    return {path: body for change, path, body in blocks_of(page) if not change}


def changed(text: str, diff: str) -> str:
    """Return a text with a diff applied to it; each blank line of the diff begins another place."""
    for hunk in diff.strip("\n").split("\n\n"):
        lines = hunk.splitlines()
        assert all(line[0] in " +-" for line in lines), hunk
        old, new = ("\n".join(line[1:] for line in lines if line[0] in kept) for kept in (" -", " +"))
        assert text.count(old) == 1, f"{text.count(old)} places have the lines\n{old}"
        text = text.replace(old, new)
    return text


def apply(page: str, tree: Path) -> None:
    """Make the files and changes of a page in a copy of the tree."""
    for change, path, body in blocks_of(page):
        file = tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(changed(file.read_text(), body) if change else body)


def haloscope_of(*folders: Path, words: tuple, code: int = 0) -> str:
    """Run the command with the packages of some folders; return its output, or its error where it ends with a code."""
    return run(sys.executable, "-P", "-c", COMMAND, ":".join(map(str, folders)), *words, code=code, timeout=120)


def install(page: str, folder: Path, name: str) -> None:
    """Make what an installer makes of the page's pyproject.toml: entry points next to the packages."""
    project = tomllib.loads(new_files(page)["pyproject.toml"])["project"]
    info = folder / f"{name}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    text = "\n".join(f"[{group}]\n" + "\n".join(f"{n} = {at}" for n, at in points.items()) for group, points in groups)
    (info / "entry_points.txt").write_text(f"{text}\n")


@pytest.fixture
def copy(tmp_path) -> Path:
    """A copy of the Python package."""
    shutil.copytree(ROOT / "python", tmp_path / "python", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


HALO = ("halo", "laplace2d", "--cells", "512", "--ranks", "1,4")
HALO_OF_FOUR = "|       4 |           8192 |          0.125 |"  # four sides of 256 cells of 8 bytes; 256 x 256 cells


def test_the_subcommand_of_the_page_runs_and_is_listed(copy):
    apply("subcommand.md", copy)
    assert "$ haloscope " + " ".join(HALO) in (PAGES / "subcommand.md").read_text()
    assert HALO_OF_FOUR in haloscope_of(copy / "python", words=HALO)
    assert re.search(
        r"^Understand:\n(  .*\n)*  halo +Bytes of halos", haloscope_of(copy / "python", words=("--help",)), re.M
    )


def test_the_subcommand_of_the_page_runs_from_another_distribution(tmp_path):
    package = tmp_path / "haloscope_halo"
    package.mkdir()
    texts = {Path(path).parent.name: text for path, text in new_files("subcommand.md").items()}
    (package / "report.py").write_text(texts["report"])
    imported = "from haloscope.report import halo as report"
    assert imported in texts["commands"]
    (package / "command.py").write_text(texts["commands"].replace(imported, "from haloscope_halo import report"))
    install("subcommand.md", tmp_path, "haloscope_halo")
    assert HALO_OF_FOUR in haloscope_of(ROOT / "python", tmp_path, words=HALO)
    assert re.search(
        r"^Studies:\n(  .*\n)*  halo +Bytes of halos", haloscope_of(ROOT / "python", tmp_path, words=("--help",)), re.M
    )


def test_the_study_of_the_page_measures_and_reports(tmp_path):
    package = tmp_path / "haloscope_deep"
    package.mkdir()
    (package / "study.py").write_text(new_files("study.md")["haloscope_deep/study.py"])
    install("study.md", tmp_path, "haloscope_deep")
    words = ("study", "deep", "--quick", "--output", tmp_path / "records.jsonl")
    out = haloscope_of(ROOT / "python", tmp_path, words=words)
    assert re.search(r"\|\s+64 \|\s+1 \|\s+1(\.0+)? \|\s+\|", out)
    assert re.search(r"\|\s+64 \|\s+4 \|\s+[\d.]+ \|\s+1\.9 \|", out)


@pytest.mark.parametrize("page", ["field.md", "model-term.md"])
def test_the_sources_that_a_page_changes_compile(page, tmp_path):
    for folder in ("include", "src", "python/haloscope"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    apply(page, tmp_path)
    compiled = [path for _, path, _ in blocks_of(page) if path.endswith(".cpp")]
    assert compiled
    generated = build.rank_program().parent / "generated"
    for path in compiled:
        folders = ("include", "src/library", "src/model", generated)
        words = ["-std=c++20", "-fsyntax-only", "-Wall", "-Werror", *(f"-I{folder}" for folder in folders), path]
        run("g++", *words, cwd=tmp_path)


def test_the_kind_of_request_of_the_page_compiles(tmp_path):
    program = tmp_path / "barriers.cpp"
    program.write_text(new_files("request-kind.md")[program.name])
    run("mpicxx", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", program)


def shown(page: str) -> list[str]:
    """Return the lines of a page's console: a command, then its output."""
    return re.search(r"```console\n\$ haloscope (.*?)```", (PAGES / page).read_text(), re.DOTALL)[1].splitlines()


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_library_with_the_field_and_the_term_of_the_pages_uses_them(tmp_path, monkeypatch):
    tree, build_folder = tmp_path / "tree", tmp_path / "build"
    for folder in SOURCES:
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "CMakeLists.txt", tree)
    for page in ("field.md", "model-term.md"):
        apply(page, tree)
    without = [f"-DHALOSCOPE_{part}=OFF" for part in SMALL]
    subprocess.run(["cmake", "-S", tree, "-B", build_folder, "-DCMAKE_BUILD_TYPE=Debug", *without], check=True)
    subprocess.run(["cmake", "--build", build_folder, "--target", "haloscope_bridge", "-j", "2"], check=True)
    monkeypatch.setenv("HALOSCOPE_BUILD", str(build_folder))

    schema = [sys.executable, "-P", "-c", SCHEMA, tree / "python", tree / "scripts" / "schema.py"]
    subprocess.run(schema, check=True)

    command, error = shown("field.md")
    assert haloscope_of(tree / "python", words=command.split(), code=2).strip() == error

    def step_s(per_sweep_s: float) -> float:
        machine = json.loads(TOY.read_text())
        machine.setdefault("steps", {})["per_sweep_s"] = per_sweep_s
        file = tmp_path / "machine.json"
        file.write_text(json.dumps(machine))
        words = ("predict", "laplace2d", "--cells", "64", "--profile", file, "--samples", "0", "--json")
        [found] = json.loads(haloscope_of(tree / "python", words=words))["predictions"]
        return found["time_s"]

    assert step_s(3e-6) - step_s(0) == pytest.approx(3e-6)


# ---- the binding of language.md --------------------------------------------------------------------------------------

BINDING = ROOT / "examples" / "binding"


def started(ranks: int, *words) -> str:
    """Run a Python program on some ranks; return its output."""
    start = launch.launcher_words(launch.mpiexec(), ranks, 1)
    return run(*start, *build.python("-m", "mpi4py"), *words, timeout=60)


def test_the_binding_of_the_page_prints_the_digits_of_the_other_languages():
    alone = started(1, ROOT / "examples" / "heat" / "heat.py")
    assert alone in (PAGES / "language.md").read_text()
    library = build.library(build.EXCHANGE_LIBRARY)
    assert [started(ranks, BINDING / "heat.py", library) for ranks in (1, 2, 3)] == [alone] * 3


def test_the_structs_of_the_binding_lie_as_in_c(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BINDING))
    import binding

    structs = {
        "hs_box": binding.Box,
        "hs_grid_options": binding.GridOptions,
        "hs_field": binding.Field,
        "hs_exchange_options": binding.ExchangeOptions,
    }
    lines = ["#include <haloscope/exchange.h>", "#include <stddef.h>", f'_Static_assert(HS_ABI == {binding.ABI}, "");']
    for name, struct in structs.items():
        lines.append(f'_Static_assert(sizeof({name}) == {ctypes.sizeof(struct)}, "{name}");')
        for member, *_ in struct._fields_:
            offset = getattr(struct, member).offset
            lines.append(f'_Static_assert(offsetof({name}, {member}) == {offset}, "{name}.{member}");')
    (tmp_path / "layout.c").write_text("\n".join(lines))
    folders = (ROOT / "include", build.rank_program().parent / "generated")
    run("mpicc", "-fsyntax-only", *(f"-I{folder}" for folder in folders), tmp_path / "layout.c")
