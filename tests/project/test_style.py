"""Rules of the sources that the tools of `make lint` do not check."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from paths import ROOT

PACKAGE = ROOT / "python" / "haloscope"
ENDINGS = {".cpp", ".hpp", ".h", ".cu", ".hip"}


def modules() -> list[Path]:
    """The modules of the package and of the studies."""
    return sorted([*PACKAGE.rglob("*.py"), *ROOT.glob("studies/*/python/**/*.py")])


def name_of(module: Path) -> str:
    """The name of a module's file, in the package or in the checkout."""
    return str(module.relative_to(ROOT)).removeprefix("python/haloscope/")


def ended(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


WIDTHS = {".f90": 132, ".c": 120, ".def": 120, ".py": 120} | dict.fromkeys(ENDINGS, 120)  # 132: the limit of Fortran


def test_lines_of_sources_are_not_longer_than_a_screen_is_wide():
    listed = ended("git", "ls-files").stdout.splitlines()
    sources = [name for name in listed if Path(name).suffix in WIDTHS]
    assert sources
    wide = []
    for name in sources:
        lines = (ROOT / name).read_text().splitlines()
        most = WIDTHS[Path(name).suffix]
        wide += [f"{name}:{n}: {len(line)} columns" for n, line in enumerate(lines, 1) if len(line) > most]
    assert not wide, "\n".join(wide)


# Functions of MPI without a return code, and one that does not return.
UNCHECKED = {"MPI_Wtime", "MPI_Comm_f2c", "MPI_Comm_fromint", "MPI_Abort"}
# Where codes are read by hand: the check itself, and what counts the calls of the program around it.
OWN_CHECKS = {"mpi_call.cpp", "mpi_call.hpp", "mpi_calls.cpp"}


def test_every_call_of_mpi_is_checked():
    unread = []
    for folder in ("include", "src"):
        for source in sorted((ROOT / folder).rglob("*.[ch]pp")):
            if source.name in OWN_CHECKS:
                continue
            code = re.sub(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"', "", source.read_text())
            for call in re.finditer(r"(\w+\(\s*)?\b(MPI_[A-Z][a-z]\w*)\(", code):
                wrapped = (call[1] or "").strip() in ("CHECK_MPI(", "REQUIRE_MPI(")
                if not wrapped and call[2] not in UNCHECKED:
                    unread.append(f"{source.relative_to(ROOT)}: {call[2]}")
    assert not unread, f"wrap these in CHECK_MPI() or REQUIRE_MPI() of comm/mpi_call.hpp: {unread}"


COMMUNICATORS = {"comm", "mpi_comm", "world", "COMM_WORLD", "COMM_SELF"}
LOWER = ("allgather", "allreduce", "alltoall", "barrier", "bcast")
COLLECTIVE = {*LOWER, *map(str.capitalize, LOWER), *(f"I{name}" for name in LOWER), "Create_cart", "Dup", "Split"}


def last_name(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def calls_mpi4py(node: ast.AST) -> bool:
    """Return whether an expression is a member of a communicator of mpi4py's, or a call of one of its functions."""
    if isinstance(node, ast.Attribute) and last_name(node.value) in COMMUNICATORS:
        return node.attr != "py2f"  # which MPI cannot refuse
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return last_name(node.func.value) == "MPI" or node.func.attr in COLLECTIVE


def test_every_call_of_mpi4py_is_checked():
    unchecked = []
    for source in modules():
        nodes = list(ast.walk(ast.parse(source.read_text())))
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        passed = [call.args[0] for call in calls if call.args and last_name(call.func) == "checked"]
        texts = [ast.unparse(node) for node in nodes if calls_mpi4py(node) and node not in passed]
        unchecked += [f"{name_of(source)}: {text}" for text in texts if text != "MPI.get_vendor()"]
    assert not unchecked, f"make local ones by checked(), the others by agree() and gather() of ranks.py: {unchecked}"


def test_every_window_is_made_where_a_communicator_is_left():
    missing = []
    for source in sorted((ROOT / "src").rglob("*.cpp")):
        lines = source.read_text().splitlines()
        for at, line in enumerate(lines):
            makes = re.search(r"CHECK_MPI\(MPI_Win_(allocate|create)", line)
            if makes and "require_communicator_left(" not in lines[at - 1]:
                missing.append(f"{source.relative_to(ROOT)}:{at + 1}")
    assert not missing, f"call require_communicator_left() on the line before: {missing}"


def test_no_interpreter_is_started_where_the_current_folder_counts():
    found = [
        f"{name_of(source)}: {line.strip()}"
        for source in modules()
        for line in source.read_text().splitlines()
        if "sys.executable" in line and source.name not in ("build.py", "launch.py")  # the latter looks beside it
    ]
    assert not found, f"start it by python() of bridge/build.py: {found}"


def test_temporary_folders_are_made_where_a_later_run_finds_them():
    makers = [name_of(p) for p in modules() if re.search(r"TemporaryDirectory|mkdtemp", p.read_text())]
    assert makers == ["scratch.py"], "use folder() of scratch.py: a killed run leaves its folder to the next one"


def test_texts_are_written_by_streams_that_lose_nothing():
    streams = [
        f"{source.relative_to(ROOT)}:{number}"
        for source in sorted((ROOT / "src").rglob("*.[ch]pp"))
        for number, line in enumerate(source.read_text().splitlines(), 1)
        if re.search(r"std::[io]?stringstream", line) and "class TextStream" not in line
    ]
    assert not streams, (
        f"streams of the standard library swallow std::bad_alloc; use TextStream of core/text.hpp: {streams}"
    )


# Where files are written past the gate of outputs.py: drafts, records that are added, folders that are the program's
# own.
OWN_WRITERS = {
    "files.py": "drafts",
    "report/figures.py": "savefig on a draft",
    "records/__init__.py": "records are added",
    "measure/cluster.py": "the folder of a cluster",
    "measure/check.py": "the folder of a run",
    "measure/launch.py": "the folder of a launch",
    "measure/host_mapping.py": "the folder of a launch",
    "measure/user_program.py": "the folder of a run",
    "simulate/simgrid.py": "the folder of a simulation",
    "outputs.py": "the gate",
}
WRITERS = re.compile(
    r"(os|shutil)\.(replace|rename|copy\w*|move|symlink|link|truncate|fdopen)|json\.dump|np\.save\w*"
    r"|tempfile\.(mkstemp|NamedTemporaryFile)|.*\.(write_text|write_bytes|savefig|rename|symlink_to|touch)"
)


def writes(call: ast.Call) -> bool:
    """Whether a call may write over a file: opening for anything but reading, or a function that does."""
    name = ast.unparse(call.func)
    if name.endswith(".replace") and name != "os.replace":  # of a path: that of a text has two arguments
        return len(call.args) == 1 and not call.keywords
    if re.fullmatch(r"(.*\.)?open", name):
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        texts = [value.value for value in values if isinstance(value, ast.Constant)]
        return any(re.fullmatch("(?=.*[wax+])[rwaxbt+]+", str(text)) for text in texts)
    return bool(WRITERS.fullmatch(name))


def test_files_are_written_over_by_the_gate_alone():
    found = [
        f"{name_of(source)}:{node.lineno}"
        for source in modules()
        if name_of(source) not in OWN_WRITERS
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Call) and writes(node)
    ]
    assert not found, f"use write() or writing() of outputs.py, which spare files of others and full disks: {found}"


@pytest.mark.parametrize(
    ("code", "is_one"),
    [
        ("path.write_text(a)", True),
        ('path.open("w")', True),
        ('open(path, mode="ab")', True),
        ("figure.savefig(file)", True),
        ("json.dump(a, file)", True),
        ("os.replace(a, b)", True),
        ("path.replace(target)", True),
        ("shutil.copy(a, b)", True),
        ('path.open("rb")', False),
        ('"word".replace("a", "b")', False),
        ("profile.save(data, path)", False),
    ],
)
def test_calls_that_write_over_files_are_told_from_others(code, is_one):
    assert writes(ast.parse(code).body[0].value) == is_one
