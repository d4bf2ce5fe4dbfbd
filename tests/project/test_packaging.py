"""Descriptions of the project agree: versions, the changelog, and the recipe for Spack.

Spack itself is not needed: stand-ins for its modules write down what the recipe declares and calls.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import re
import sys
import sysconfig
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from paths import ROOT
from programs import ended, executable

RECIPE = ROOT / "packaging" / "spack" / "spack_repo" / "haloscope" / "packages" / "haloscope" / "package.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STUDIES = tomllib.loads((ROOT / "studies" / "pyproject.toml").read_text())
BUILDER, *_ = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
CMAKE = "\n".join(f.read_text() for f in (ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")))
PIP = ("--no-deps", "--ignore-installed", "--no-build-isolation", "--no-index")  # of what Spack passes to pip


class Spec:
    """The variants of one build, asked as Spack's specs are."""

    def __init__(self, variants: dict):
        self.variants = variants

    def satisfies(self, text: str) -> bool:
        name, _, value = text.lstrip("+").partition("=")
        return self.variants[name] == value if value else bool(self.variants[name])

    def __getitem__(self, name: str):
        return SimpleNamespace(command=self.variants[name])


class CMakePackage:
    """Defines options as Spack's class of this name does."""

    spec: Spec

    def define(self, name: str, value) -> str:
        if isinstance(value, bool):
            return f"-D{name}:BOOL={'ON' if value else 'OFF'}"
        return f"-D{name}:STRING={value}"

    def define_from_variant(self, name: str, variant: str) -> str:
        return self.define(name, self.spec.variants[variant])


@pytest.fixture
def recipe(monkeypatch) -> SimpleNamespace:
    """The recipe's class, and what it declares: (directive, its arguments, its options)."""
    declared = []

    def directive(name: str):
        return lambda *words, **options: declared.append((name, words, options))

    modules = {
        name: ModuleType(name)
        for name in (
            "spack",
            "spack.package",
            "spack_repo",
            "spack_repo.builtin",
            "spack_repo.builtin.build_systems",
            *(f"spack_repo.builtin.build_systems.{kind}" for kind in ("cmake", "cuda", "python")),
        )
    }
    for name in ("version", "variant", "depends_on", "conflicts", "extends", "license"):
        setattr(modules["spack.package"], name, directive(name))
    modules["spack.package"].run_after = lambda phase, when: lambda method: method
    modules["spack.package"].working_dir = contextlib.chdir
    modules["spack_repo.builtin.build_systems.cmake"].CMakePackage = CMakePackage
    modules["spack_repo.builtin.build_systems.cuda"].CudaPackage = type("CudaPackage", (), {})
    modules["spack_repo.builtin.build_systems.python"].PythonPipBuilder = SimpleNamespace(
        std_args=lambda package: ["install", *PIP]
    )
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    described = importlib.util.spec_from_file_location("package", RECIPE)
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return SimpleNamespace(package=module.Haloscope, declared=declared)


def words_of(recipe, directive: str) -> list[str]:
    return [words[0] for name, words, _ in recipe.declared if name == directive]


def variants_of(recipe) -> dict:
    own = {words[0]: options["default"] for name, words, options in recipe.declared if name == "variant"}
    return own | {"cuda": False, "cuda_arch": "none"}  # those that CudaPackage brings


def options_of(recipe, variants: dict) -> dict[str, str]:
    package = recipe.package()
    package.spec = Spec(variants)
    return dict(re.fullmatch(r"-D(\w+):\w+=(.*)", arg).groups() for arg in package.cmake_args())


def test_the_version_is_one_everywhere_and_the_changelog_has_it(recipe):
    version = PROJECT["version"]
    assert re.search(r"project\(haloscope VERSION (\S+) ", CMAKE)[1] == version
    assert words_of(recipe, "version") == ["main", version]
    assert (STUDIES["project"]["version"], STUDIES["project"]["dependencies"]) == (version, [f"haloscope=={version}"])
    released = re.findall(
        r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert released[0] == version
    assert released == sorted(released, key=lambda text: tuple(map(int, text.split("."))), reverse=True)


def test_the_changelog_keeps_its_form():
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    headings = [line for line in lines if line.startswith("#")]
    assert headings[:2] == ["# Changelog", "## [Unreleased]"]
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    releases = [i for i, line in enumerate(headings) if line.startswith("## ")]
    for begin, end in itertools.pairwise([*releases, len(headings)]):
        found = [line.removeprefix("### ") for line in headings[begin + 1 : end]]
        assert set(found) <= kinds
        assert len(found) == len(set(found)), f"{headings[begin]}: a kind of change stands there twice"


def test_every_folder_of_data_has_its_source_named():
    data = ROOT / "python" / "haloscope" / "data"
    folders = {entry.name for entry in data.iterdir() if entry.is_dir() and entry.name != "__pycache__"}
    assert folders <= set(re.findall(r"`(\w+)`", (data / "SOURCES.md").read_text()))


def test_projects_that_ask_for_a_version_get_this_one():
    """`find_package(haloscope 0.1)` of the examples: versions are compatible within a minor one."""
    versions = {
        found
        for file in [
            *ROOT.glob("examples/*/CMakeLists.txt"),
            ROOT / "tests/consumer/CMakeLists.txt",
            ROOT / "docs/extend/app.md",
        ]
        for found in re.findall(r"find_package\(haloscope (\S+) REQUIRED\)", file.read_text())
    }
    assert versions == {".".join(PROJECT["version"].split(".")[:2])}


def test_every_variant_of_the_recipe_is_an_option_of_the_build(recipe):
    known = set(re.findall(r"^option\((\w+)", CMAKE, re.MULTILINE)) | {"CMAKE_CUDA_ARCHITECTURES"}
    switches = {
        "fortran": "HALOSCOPE_FORTRAN",
        "mpi_abi": "HALOSCOPE_MPI_ABI",
        "openmp": "HALOSCOPE_OPENMP",
        "cuda": "HALOSCOPE_CUDA",
    }
    assert set(variants_of(recipe)) == {*switches, "python", "cuda_arch"}
    for values in itertools.product((False, True), repeat=len(switches)):
        chosen = dict(zip(switches, values, strict=True))
        options = options_of(recipe, variants_of(recipe) | chosen | {"cuda_arch": "90"})
        assert set(options) <= known
        assert {name: options[option] == "ON" for name, option in switches.items()} == chosen
        assert options.get("CMAKE_CUDA_ARCHITECTURES") == ("90" if chosen["cuda"] else None)
    assert "CMAKE_CUDA_ARCHITECTURES" not in options_of(recipe, variants_of(recipe) | {"cuda": True})


def test_the_recipe_needs_what_the_python_package_needs(recipe):
    wanted = {
        f"py-{word.replace('>=', '@')}:"
        for word in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["exchange"]]
        if ";" not in word  # on some machines only: the package works without it, and Spack has no such package
    }
    run = {
        words[0] for name, words, options in recipe.declared if name == "depends_on" and options.get("type") == "run"
    }
    assert run == wanted
    assert f"python@{PROJECT['requires-python'].removeprefix('>=')}:" in words_of(recipe, "depends_on")
    assert f"py-{BUILDER.replace('>=', '@')}:" in words_of(recipe, "depends_on")
    assert f"cmake@{re.search(r'cmake_minimum_required.VERSION (.*).$', CMAKE, re.MULTILINE)[1]}:" in words_of(
        recipe, "depends_on"
    )


def run(*words, **environment) -> str:
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = ended(*words, env={**os.environ, "PATH": tools, **environment})
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def test_cmake_takes_the_options_of_the_recipe(recipe, tmp_path):
    options = [f"-D{name}={value}" for name, value in options_of(recipe, variants_of(recipe)).items()]
    output = run("cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *options)
    assert "not used by the project" not in output
    assert recipe.package.git == ROOT.as_uri()


@pytest.mark.long
def test_the_recipe_installs_a_command_line_that_finds_its_libraries(recipe, prefix, tmp_path, monkeypatch):
    arguments = []
    package = recipe.package()
    package.prefix, package.stage = prefix, SimpleNamespace(source_path=ROOT)

    class Python:
        def add_default_arg(self, *words):
            arguments.extend(words)

        def __call__(self, *words):
            builder = tmp_path / "builder"
            run(sys.executable, "-m", "pip", "install", "-q", "--target", builder, BUILDER)
            run(sys.executable, *arguments, *words, PYTHONPATH=str(builder))

    package.spec = Spec({"python": Python()})
    package.install_python()
    assert arguments == ["-m", "pip"]
    [site] = prefix.glob("lib/python*/site-packages")
    monkeypatch.delenv("HALOSCOPE_BUILD")
    path = os.pathsep.join(
        [str(site), sysconfig.get_path("purelib")]
    )  # without site: the checkout's package is set up there
    code = (
        "import haloscope; from haloscope.bridge import build; "
        "print(haloscope.__file__, build.library(), build.rank_program())"
    )
    found = run(sys.executable, "-S", "-c", code, PYTHONPATH=path).split()
    assert len(found) == 3
    assert [file for file in found if not file.startswith(str(prefix))] == []
    words = ("plan", "laplace2d", "--cells", "32x32", "--ranks", "2")
    output = run(sys.executable, "-S", prefix / "bin" / "haloscope", *words, PYTHONPATH=path)
    assert "ordered" in output


# ---- what set-up installs --------------------------------------------------------------------------------------------

LOCKED = ROOT / "scripts" / "locked"


def locked(name: str) -> dict[str, str]:
    """Return version by package of a list; each has the hash of a file at least."""
    text = (LOCKED / f"{name}.txt").read_text().replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        package, version, hashes = re.fullmatch(
            r"([\w.-]+)==(\S+)(?: ; [^\\]*?)?((?:\s+--hash=sha256:[0-9a-f]{64})+)", line.strip()
        ).groups()
        assert hashes
        found[package] = version
    return found


def test_all_that_set_up_fetches_from_pypi_is_a_wheel_with_a_version_and_hashes():
    from packaging.requirements import Requirement

    for script in ("setup.sh", "other_mpi.sh"):
        text = (ROOT / "scripts" / script).read_text().replace("\\\n", " ")
        for line in re.findall(r"pip install .*", text):
            assert {"--require-hashes", "--only-binary"} <= set(line.split()) or "--no-build-isolation -e ." in re.sub(
                " +", " ", line
            )
        for name in re.findall(r"(?:install|install_once|fetch_wheel) ([a-z]+\d?)(?:$| \")", text, re.MULTILINE):
            assert locked(name)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = PROJECT["optional-dependencies"]
    builders = [*project["build-system"]["requires"], *STUDIES["build-system"]["requires"]]
    wanted = [*builders, *PROJECT["dependencies"], *(word for words in extras.values() for word in words)]
    versions = locked("compiled") | locked("tools")
    for requirement in (Requirement(word) for word in wanted):
        if requirement.name != PROJECT["name"]:
            assert requirement.specifier.contains(versions[requirement.name]), requirement
    (mpich,) = [Requirement(entry["wheel"]) for entry in project["tool"]["dynamic-metadata"]]
    assert mpich.specifier.contains(locked("mpich")[mpich.name])


@pytest.mark.parametrize("site", [True, False])
def test_pip_takes_the_mpi_of_the_machine_or_the_wheel_of_mpich_where_there_is_none(monkeypatch, tmp_path, site):
    monkeypatch.syspath_prepend(ROOT / "packaging")
    import mpi_wheel

    for name in ("CMAKE_ARGS", "MPI_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    settings, wheel = {"wheel": "mpich==1"}, [] if site else ["mpich==1"]

    def require(expected: list[str]) -> None:
        assert mpi_wheel.get_requires_for_dynamic_metadata(settings) == expected
        assert mpi_wheel.dynamic_metadata(settings, {}) == {"dependencies": expected}

    require(["mpich==1"])
    executable(tmp_path / "bin" / "mpicxx", "")
    if not site:  # what pip has installed for the build
        (tmp_path / "lib" / "python3.12" / "site-packages" / "mpich-1.dist-info").mkdir(parents=True)
    require(wheel)
    monkeypatch.setenv("CMAKE_ARGS", "-DMPI_CXX_COMPILER=/opt/mpi/bin/mpicxx")
    require([])
