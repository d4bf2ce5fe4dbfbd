"""Examples of exchanges in C++: each gives the bits of a plain program in NumPy on any number of ranks."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from long_run import or_long
from paths import ROOT
from toy import TOY

EXAMPLES = ROOT / "examples"
EXCHANGE = EXAMPLES / "exchange"
SCRIPTS = EXAMPLES.parent / "scripts"
TOOLS = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)])
CELLS, STEPS = (18, 20, 24), 50  # z, y, x, as NumPy's axes


def run(*words) -> str:
    command = [shutil.which(str(words[0]), path=TOOLS) or str(words[0]), *map(str, words[1:])]
    done = subprocess.run(
        command, env={**os.environ, "PATH": TOOLS}, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(name: str, prefix: Path, place: Path) -> Path:
    run("cmake", "-S", EXAMPLES / name, "-B", place, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", place)
    return place


@pytest.fixture(scope="module")
def built(prefix, tmp_path_factory) -> Path:
    return build("exchange", prefix, tmp_path_factory.mktemp("exchange"))


@pytest.fixture(scope="module")
def replaced(prefix, tmp_path_factory) -> Path:
    return build("replaced", prefix, tmp_path_factory.mktemp("replaced"))


def bits(*fields: np.ndarray) -> str:
    """Return what the examples print of fields: their bits, each times the odd number of its place."""
    words = np.stack(fields).view(np.uint64).ravel()
    odd = 2 * np.arange(words.size, dtype=np.uint64) + np.uint64(1)
    return f"bits {int((words * odd).sum(dtype=np.uint64)):016x}"


def hot_corner() -> np.ndarray:
    return (np.indices(CELLS).sum(axis=0) < 12).astype(float)


def neighbours(u: np.ndarray) -> np.ndarray:
    """Return the sum of the six neighbours of each point, in the examples' order of operations."""
    in_x, in_y, in_z = (np.roll(u, 1, axis) + np.roll(u, -1, axis) for axis in (2, 1, 0))
    return in_x + in_y + in_z


def heat() -> str:
    u = hot_corner()
    for _ in range(STEPS):
        u = u + 0.1 * (neighbours(u) - 6.0 * u)
    return bits(u)


def heat_between_cold_edges() -> str:
    """The same in a smaller box that wraps around in x and y only."""
    cells = (19, 21, 26)
    u = (np.indices(cells).sum(axis=0) < 12).astype(float)
    for _ in range(STEPS):
        padded = np.pad(u, ((1, 1), (0, 0), (0, 0)))
        u = (padded + 0.1 * (neighbours(padded) - 6.0 * padded))[1:-1]
    return bits(u)


def sound() -> str:
    p, v = hot_corner(), [np.zeros(CELLS) for _ in range(3)]  # v[d]: in x, y, z; on the face below each cell
    for _ in range(STEPS):
        v = [v[d] - 0.3 * (p - np.roll(p, 1, 2 - d)) + 0.05 * (neighbours(v[d]) - 6.0 * v[d]) for d in range(3)]
        out = [np.roll(v[d], -1, 2 - d) - v[d] for d in range(3)]
        p = p - 0.3 * (out[0] + out[1] + out[2])
    return bits(p, *v)


@pytest.mark.parametrize("ranks", or_long([1, 3], [2]))
@pytest.mark.parametrize("example", ["overlap", "shared", "best", "cartesian", "device"])
def test_heat_has_the_bits_of_a_plain_program_however_halos_travel(built, example, ranks):
    lines = run("mpiexec", "-n", ranks, built / example, *([TOY] if example == "best" else [])).splitlines()
    assert lines[0] == heat()
    if example == "shared":
        assert lines[1].startswith("direct:merged/shared+p2p: ")
    if example == "device":
        assert (
            lines[1].startswith("direct:merged/auto-device: ") and "memory of device 0 of back end 'host'" in lines[1]
        )
    if example == "best":
        assert re.match(r"\S+/\S+: .*: predicted \S+ s a step: \S", lines[1])


@pytest.mark.parametrize("ranks", or_long([1, 3], [2]))
def test_fields_of_different_centrings_in_one_exchange_have_the_bits_of_a_plain_program(built, ranks):
    assert run("mpiexec", "-n", ranks, built / "staggered").splitlines() == [sound()]


@pytest.mark.parametrize("ranks", or_long([1, 3], [2]))
def test_what_particles_deposit_across_ranks_is_added_to_the_cells_that_own_it(built, ranks):
    x, y, z = np.indices(CELLS)[::-1]
    mass = 1.0 + (x + 2 * y + 3 * z) % 4
    shifts = itertools.product((0, 1), repeat=3)
    assert run("mpiexec", "-n", ranks, built / "deposit").split("\n")[0] == bits(
        sum(np.roll(mass / 8, shift, (0, 1, 2)) for shift in shifts)
    )


def test_an_example_of_an_exchange_has_60_lines_at_most():
    sources = [*EXCHANGE.iterdir()]
    assert {s.stem for s in sources if s.suffix == ".cpp"} == {
        "staggered",
        "overlap",
        "shared",
        "best",
        "cartesian",
        "deposit",
        "device",
    }
    assert [s.name for s in sources if len(s.read_text().splitlines()) > 60] == []


@pytest.mark.parametrize("ranks", or_long([1, 3], [2]))
@pytest.mark.parametrize("strategy", ["", "direct/p2p", "ordered/persistent"])
def test_a_hand_written_exchange_and_what_replaces_it_give_the_same_bits(replaced, ranks, strategy, monkeypatch):
    if strategy:
        monkeypatch.setenv("HALOSCOPE_STRATEGY", strategy)
    by_hand, other = (run("mpiexec", "-n", ranks, replaced / name) for name in ("by_hand", "with_haloscope"))
    assert by_hand.splitlines() == other.splitlines() == [heat_between_cold_edges()]


def test_a_hand_written_exchange_is_replaced_in_15_lines_as_the_page_shows():
    code = f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); import pages; print(pages.replaced())"
    shown = run(sys.executable, "-c", code).strip()
    assert shown in (EXAMPLES.parent / "docs" / "understand" / "replaced.md").read_text()
    changed = [line for line in shown.splitlines() if re.match(r"[-+](?![-+])", line)]
    assert 2 <= len(changed) <= 15
