"""The image of packaging/containers/Dockerfile, built by buildah on a Debian that debootstrap makes, and used.

Such a build needs no server of images and no virtual machine, but root.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from paths import ROOT
from programs import run

RECIPES = ROOT / "packaging" / "containers"
BASE = "debian:bookworm-slim"
HEAT = "after 100 steps the hottest cell has 0.584141112193374"

pytestmark = pytest.mark.timeout(3600)  # the first test in the image builds it


def lines_of(recipe: str) -> list[str]:
    lines = map(str.strip, (RECIPES / recipe).read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def test_docker_and_apptainer_start_from_one_image_and_run_one_script():
    docker, apptainer = lines_of("Dockerfile"), lines_of("haloscope.def")
    script = "/src/haloscope/packaging/containers/install.sh"
    assert f"FROM {BASE}" in docker and f"From: {BASE}" in apptainer
    assert f"RUN {script} && rm -rf /src" in docker and script in apptainer
    assert os.access(RECIPES / "install.sh", os.X_OK)


@dataclass(frozen=True)
class Store:
    """Images in a folder."""

    folder: Path

    def buildah(self, *words) -> str:
        places = ("--storage-driver", "vfs", "--root", self.folder / "images", "--runroot", self.folder / "run")
        return run("buildah", *places, *words)

    def keep_base(self) -> None:
        """Make the image that the recipe starts from, of Debian's packages."""
        tree = self.folder / "tree"
        run("debootstrap", "--variant=minbase", "bookworm", tree)
        container = self.buildah("from", "scratch").strip()
        self.buildah("add", container, tree, "/")
        self.buildah("commit", "--rm", container, f"docker.io/library/{BASE}")
        shutil.rmtree(tree)


@pytest.fixture(scope="module")
def inside(tmp_path_factory):
    """Build the image of the sources; return a function that runs a command of a shell in it."""
    if os.geteuid() != 0:
        pytest.skip("only root can build an image without a server")
    store = Store(tmp_path_factory.mktemp("containers"))
    store.keep_base()
    sources, certificates = store.folder / "sources", store.folder / "pip.conf"
    run("git", "clone", "-q", ROOT, sources)
    certificates.write_text("[global]\ncert = /etc/machine.crt\n")  # the machine's, for its network
    mounts = (f"{os.environ.get('PIP_CERT', '/etc/ssl/certs/ca-certificates.crt')}:/etc/machine.crt:ro",)
    mounts += (f"{certificates}:/etc/pip.conf:ro",)
    volumes = [word for mount in mounts for word in ("--volume", mount)]
    recipe = sources / "packaging" / "containers" / "Dockerfile"
    chroot = ("--isolation", "chroot")
    store.buildah("bud", "--pull-never", *chroot, *volumes, "-f", recipe, "-t", "haloscope", sources)
    container = store.buildah("from", "--pull-never", "haloscope").strip()
    store.buildah("copy", container, ROOT / "examples" / "heat", "/heat")
    yield lambda command: store.buildah("run", *chroot, container, "sh", "-c", command)
    store.buildah("rm", container)
    shutil.rmtree(store.folder)


@pytest.mark.long
def test_commands_of_an_image_run_on_the_mpi_of_its_distribution(inside):
    assert "MPICH 4.0.2" in inside("haloscope info")
    words = "laplace2d --cells 32x32 --ranks 2 --strategy ordered/p2p --launches 1 --output /tmp/r.jsonl"
    assert "| passed " in inside(f"haloscope run {words}")


@pytest.mark.long
@pytest.mark.parametrize(
    ("compiler", "source", "package"),
    [
        ("mpicc", "heat.c", "haloscope-c"),
        ("mpicxx -std=c++20 -O1", "heat.cpp", "haloscope-cxx"),
        ("mpifort", "heat.f90", "haloscope-fortran"),
    ],
)
def test_programs_compile_and_exchange_in_an_image(inside, compiler, source, package):
    flags = f"$(pkg-config --cflags --libs {package})"
    assert HEAT in inside(f"cd /heat && {compiler} {source} {flags} -o /tmp/heat && mpiexec -n 2 /tmp/heat")


@pytest.mark.long
def test_python_exchanges_in_an_image(inside):
    assert HEAT in inside("mpiexec -n 2 /opt/haloscope/bin/python /heat/heat.py")
