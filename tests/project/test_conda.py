"""The recipe for conda, rendered, built and tested by rattler-build.

conda-forge is not needed: a channel in a folder has packages of the same names, whose programs start the machine's.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import platform
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from paths import ROOT
from programs import TOOLS, executable, run
from test_packaging import BUILDER, CMAKE, PROJECT

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]  # it compiles the libraries

# By stand-in, its programs, and the machine's programs that they start.
PROGRAMS = {
    "gcc_linux-64": {"cc": "gcc"},
    "gxx_linux-64": {"c++": "g++"},
    "gfortran_linux-64": {"gfortran": "gfortran"},
    "cmake": {"cmake": "cmake"},
    "ninja": {"ninja": "ninja"},
    "mpich": {name: name for name in ("mpicc", "mpicc_abi", "mpicxx", "mpiexec")},
    "pkg-config": {"pkg-config": "pkg-config"},
}
VERSIONS = {"sysroot_linux-64": "2.28", "python": platform.python_version()}  # 99 of all others


def builder() -> ModuleType:
    """Return rattler-build, which `make check-long` installs."""
    return importlib.import_module("rattler_build")


@functools.cache
def rendered() -> list:
    """Return the packages of the recipe, for each MPI."""
    folder = ROOT / "packaging" / "conda"
    recipe = builder().Stage0Recipe.from_file(folder / "recipe.yaml")
    return recipe.render(builder().VariantConfig.from_file(folder / "variants.yaml"))


def facts(package) -> dict:
    return package.recipe.to_dict()


def requirements_of(package) -> set[str]:
    """Return all that a package requires from other recipes to be built, run and tested."""
    found = facts(package)
    parts = [found, *found.get("staging_caches", ()), *found["tests"]]
    words = [word for part in parts for words in part.get("requirements", {}).values() for word in words]
    own = {facts(one)["package"]["name"] for one in rendered()}
    named = (word for word in words if isinstance(word, str) and not word.startswith("__"))
    return {word for word in named if word.split()[0] not in own}


def test_libraries_are_packages_of_each_mpi_and_python_is_one_package():
    found = [(facts(one)["package"]["name"], one.variant.get("mpi")) for one in rendered()]
    libraries = [("libhaloscope", mpi) for mpi in ("mpich", "openmpi")]
    assert set(found) == {*libraries, *(("libhaloscope-fortran", mpi) for _, mpi in libraries), ("haloscope", None)}
    assert {facts(one)["package"]["version"] for one in rendered()} == {PROJECT["version"]}


def test_the_recipe_for_conda_requires_what_the_build_and_the_python_package_require():
    (python,) = {json.dumps(facts(one)["requirements"]) for one in rendered() if not one.variant.get("mpi")}
    names = {"matplotlib": "matplotlib-base"}
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["exchange"]]
    pairs = [word.split(">=") for word in wanted]
    found = json.loads(python)
    assert set(found["run"]) == {f"{names.get(name, name)} >={least}" for name, least in pairs} | {
        "__linux",
        f"python {PROJECT['requires-python']}",
        f"libhaloscope =={PROJECT['version']}",
    }
    assert BUILDER.replace(">=", " >=") in found["host"]
    least = CMAKE.partition("cmake_minimum_required(VERSION ")[2].partition(")")[0]
    assert all(f"cmake >={least}" in requirements_of(one) for one in rendered() if one.variant.get("mpi"))


class Channel:
    """A folder of packages that conda's tools read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.packages: dict[str, dict] = {}

    def add(self, name: str, tree: Path) -> None:
        """Add a package of the files of a tree."""
        version = VERSIONS.get(name, "99")
        made = builder().assemble_package(name, version, "linux-64", "0", self.folder / "linux-64", files_dir=tree)
        data = Path(made.path).read_bytes()
        self.packages[Path(made.path).name] = {
            "name": name,
            "version": version,
            "build": "0",
            "build_number": 0,
            "depends": [],
            "subdir": "linux-64",
            "md5": hashlib.md5(data).hexdigest(),
            "sha256": hashlib.sha256(data).hexdigest(),
            "size": len(data),
        }

    def write_index(self) -> None:
        for platform_, packages in (("linux-64", self.packages), ("noarch", {})):
            (self.folder / platform_).mkdir(exist_ok=True)
            index = {"info": {"subdir": platform_}, "packages": {}, "packages.conda": packages, "repodata_version": 1}
            (self.folder / platform_ / "repodata.json").write_text(json.dumps(index))


def make_stand_in(tree: Path, name: str) -> None:
    """Write the files of a package's stand-in."""
    (tree / "bin").mkdir(parents=True)
    (tree / "share").mkdir()
    (tree / "share" / name).touch()  # a package has a file
    for program, started in PROGRAMS.get(name, {}).items():
        machines = Path(shutil.which(started, path=TOOLS))
        libraries = f'LD_LIBRARY_PATH="{machines.parents[1] / "lib"}"' if program == "mpiexec" else ""  # of MPI
        executable(tree / "bin" / program, f'{libraries} exec "{machines}" "$@"')
    if name == "python":  # its own packages come before the machine's
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        own = f'PYTHONPATH="$(dirname "$0")/../lib/{version}/site-packages"'
        for program in ("python", version):  # commands of packages start the second
            executable(tree / "bin" / program, f'{own} exec "{sys.executable}" "$@"')


@pytest.mark.filterwarnings("ignore:build_recipes is deprecated")  # it builds the libraries once for two packages
def test_packages_of_the_recipe_are_built_and_pass_their_tests(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", TOOLS)  # rattler-build starts patchelf
    run("git", "clone", "-q", ROOT, tmp_path / "checkout")
    packages = [one for one in rendered() if one.variant.get("mpi", "mpich") == "mpich"]
    channel = Channel(tmp_path / "channel")
    for name in sorted({word.split()[0] for one in packages for word in requirements_of(one)}):
        make_stand_in(tmp_path / "trees" / name, name)
        channel.add(name, tmp_path / "trees" / name)
    channel.write_index()
    builder().build_recipes(
        [tmp_path / "checkout" / "packaging" / "conda" / "recipe.yaml"],
        channel=[channel.folder.as_uri()],
        variant_overrides={"mpi": ["mpich"]},
        output_dir=tmp_path / "packages",
        test="native",
    )
    built = {path.name.split(f"-{PROJECT['version']}-")[0] for path in (tmp_path / "packages").glob("*/*.conda")}
    assert built == {"libhaloscope", "libhaloscope-fortran", "haloscope"}
