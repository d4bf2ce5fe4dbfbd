"""Layers of the sources: no import and no include points to a layer above its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from paths import ROOT

PACKAGE = ROOT / "python" / "haloscope"
SOURCES = ROOT / "src"

# From the lowest layer to the highest; parts of one layer may use each other.
PYTHON = (
    {"errors", "terminal"},
    {"arguments", "files", "guests", "schemas", "scratch", "data"},
    {"outputs", "patience"},
    {"bridge"},
    {"records"},
    {"model"},
    {"measure"},
    {"simulate"},
    {"fit"},
    {"advice"},
    {"report"},
    {"hdf5", "memory", "ranks", "lifetimes"},
    {"grid", "panels", "fields", "array_grid", "parts"},
    {"exchange", "field_files", "redistribution", "sums"},
    {"jax", "numba", "veros", "__init__"},
    {"options"},
    {"studies"},
    {"commands"},
    {"cli"},
)
CPP = (
    {"library/core"},
    {"library/field", "library/pack"},
    {"library/schedule"},
    {"library/comm"},
    {"library/device"},
    {"library/reduce"},
    {"library/transport"},
    {"library/runner"},
    {"library/stepper"},
    {"model/simulate"},
    {"model/model"},
    {"lab/kernels"},
    {"lab/apps"},
    {"best"},
    {"lab/rank"},
    {"bindings/c"},
    {"bindings/python"},
    {"bindings/fortran", "cluster"},
)
# Each is to go, and none may be added. Registries (`.def`) are lists of names, which core/ reads wherever they are.
UPWARD_PYTHON: set[tuple[str, str]] = set()
UPWARD_CPP: set[tuple[str, str]] = set()
MOST_LINES = 60  # of a command: options, a call of a lower layer, one of report/, an exit code
INCLUDED = re.compile("^(library|model|lab)/")  # include folders: their sources are included as haloscope/...
REGISTRIES = {"device/backends.def", "reduce/reducers.def", "transport/transports.def"}


def layer(order: tuple[set[str], ...], part: str) -> int:
    """The number of the layer that a part of the sources is in; a part in none is an error."""
    [found] = [number for number, parts in enumerate(order) if part in parts]
    return found


def imports(module: Path) -> Iterator[str]:
    """The parts of the package that a module imports, inside functions too."""
    for node in ast.walk(ast.parse(module.read_text())):
        names = [a.name for a in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"haloscope.{n}" for n in names] if node.module == "haloscope" else [node.module or ""]
        yield from (name.split(".")[1] for name in names if name.startswith("haloscope."))


def packages(module: Path) -> Iterator[str]:
    """The packages that a module imports, inside functions too."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]


def test_no_python_module_imports_a_layer_above_its_own():
    upward = set()
    for module in sorted(PACKAGE.rglob("*.py")):
        name = module.relative_to(PACKAGE)
        own = layer(PYTHON, name.parts[0].removesuffix(".py"))
        upward |= {(str(name), part) for part in imports(module) if layer(PYTHON, part) > own}
    assert upward == UPWARD_PYTHON


def test_nothing_outside_the_studies_imports_them():
    modules = [file for top in ("python", "tests", "bench", "scripts") for file in (ROOT / top).rglob("*.py")]
    found = [str(file.relative_to(ROOT)) for file in modules if "haloscope_studies" in set(packages(file))]
    assert len(modules) > 200 and found == []


def test_commands_are_short():
    lengths = {file.name: len(file.read_text().splitlines()) for file in (PACKAGE / "commands").glob("*.py")}
    assert lengths and {name for name, lines in lengths.items() if lines > MOST_LINES} == set()


def part_of_cpp(path: str) -> str:
    """The part of the sources that an include leads to, as CPP names it; "" for public headers."""
    parts = (part for names in CPP for part in names)
    return next((part for part in parts if path.startswith(f"{INCLUDED.sub('haloscope/', part)}/")), "")


def test_no_cpp_file_includes_a_layer_above_its_own():
    upward = set()
    for file in sorted(f for f in SOURCES.rglob("*") if f.is_file()):
        name = str(file.relative_to(SOURCES)).replace("/haloscope/", "/")
        own = next(n for n, names in enumerate(CPP) if any(name.startswith(f"{part}/") for part in names))
        for included in re.findall(r'#include "((?:haloscope|bindings|cluster)/[^"]+)"', file.read_text()):
            part = part_of_cpp(included)
            if part and included.removeprefix("haloscope/") not in REGISTRIES and layer(CPP, part) > own:
                upward.add((name, included))
    assert upward == UPWARD_CPP


def test_no_cpp_file_of_the_house_includes_a_study():
    files = [f for top in (SOURCES, ROOT / "include") for f in top.rglob("*") if f.is_file()]
    found = [str(f.relative_to(ROOT)) for f in files if re.search(r'#include "\w+\d{4}/', f.read_text())]
    assert len(files) > 300 and found == []
