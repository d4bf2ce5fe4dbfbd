"""Apps of one's own: the examples, built against an installed library, through every command, as the library's own."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import haloscope as package
from haloscope import records
from long_run import LONG
from paths import ROOT
from programs import run
from toy import TOY

HALOSCOPE = (sys.executable, "-m", "haloscope.cli")
SMALL = ("--cells", "48x40", "--steps", "6", "--repetitions", "2", "--launches", "1")


@dataclass
class Example:
    """A built example: its app, its program, and the command line on it in a folder of its own."""

    app: str
    program: Path
    folder: Path
    built: Callable

    def haloscope(self, command: str, *words, code: int = 0) -> str:
        own = [] if command == "validate" else [self.app]
        return run(*HALOSCOPE, command, *own, "--program", self.program, *words, cwd=self.folder, code=code)

    def measured(self, line: str) -> list[dict]:
        file = self.folder / "r.jsonl"
        file.unlink(missing_ok=True)
        self.haloscope("run", *SMALL, *line.split(), "--output", file)
        found = records.read(file)
        assert not found.bad_lines
        return [r for r in found.records if r["kind"] == "measurement"]


def build_example(name: str, prefix: Path, place: Path) -> Example:
    options = ("-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "-S", ROOT / "examples" / name, "-B", place, *options)
    run("cmake", "--build", place)
    return Example(name, place / name, place, run)


@pytest.fixture(scope="module")
def gray_scott(prefix, tmp_path_factory) -> Example:
    return build_example("gray-scott", prefix, tmp_path_factory.mktemp("gray-scott"))


@pytest.fixture(scope="module")
def wave(prefix, tmp_path_factory) -> Example:
    return build_example("wave", prefix, tmp_path_factory.mktemp("wave"))


@pytest.fixture(params=["gray_scott", "wave"])
def example(request) -> Example:
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def profiles(gray_scott, wave) -> dict[str, Path]:
    """A machine profile for each example: made by hand but for its sweeps, which are measured here."""
    found = {}
    for made in (gray_scott, wave):
        measured, profile = made.folder / "kernels.json", made.folder / "machine.json"
        line = f"calibrate --quick --ranks 2 --launches 1 --sections kernels --app {made.app} --apps {made.app}"
        run(*HALOSCOPE, *line.split(), "-o", measured, "--program", made.program)
        kernels = json.loads(measured.read_text())["kernels"]
        profile.write_text(json.dumps(json.loads(TOY.read_text()) | {"kernels": kernels}))
        found[made.app] = profile
    return found


@pytest.mark.parametrize("name", ["diffusion", "wave", "stepper"])
def test_an_example_is_one_file_of_90_lines_at_most_and_a_project_of_its_own(name):
    files = sorted(f.name for f in (ROOT / "examples" / name).iterdir())
    assert files == ["CMakeLists.txt", f"{name.replace('-', '_')}.cpp"]
    assert all(len((ROOT / "examples" / name / f).read_text().splitlines()) <= 90 for f in files)


def test_the_smallest_app_gives_the_bytes_of_reference_by_every_choice(prefix, tmp_path):
    found = build_example("diffusion", prefix, tmp_path / "diffusion").measured(
        "--ranks 1,2,3 --strategy ordered/p2p,direct:merged/p2p --schedule bulk,split --depth 1,2"
    )
    assert len(found) >= 15 and {r["verification"]["status"] for r in found} == {"passed"}


def test_the_example_with_kernels_is_an_app_a_program_and_three_headers():
    files = sorted(f.name for f in (ROOT / "examples" / "gray-scott").iterdir())
    assert files == ["CMakeLists.txt", "device.hpp", "gray_scott.cpp", "kernels.hpp", "main.cpp", "react.hpp"]
    assert sum(len((ROOT / "examples" / "gray-scott" / f).read_text().splitlines()) for f in files) <= 220


def heat_left(time: float) -> float:
    """What is left of a strip of 64 hot cells at a cold edge, by the heat equation on a half line from the first ghost
    cell.
    """
    scale = math.sqrt(4 * time)

    def spread(edge):
        x = edge / scale
        return edge + scale * (math.exp(-x * x) / math.sqrt(math.pi) - x * math.erfc(x))

    return spread(64.5) - spread(0.5)


def test_a_program_steps_its_own_field_alike_by_any_choice_on_any_ranks(prefix, tmp_path):
    stepper = build_example("stepper", prefix, tmp_path / "stepper").program
    assert len((ROOT / "examples" / "stepper" / "stepper.cpp").read_text().splitlines()) <= 60
    shutil.copy(TOY, tmp_path / "machine.json")
    alone, two, three, best = (
        run("mpiexec", "-n", ranks, stepper, *profile, timeout=60).splitlines()
        for ranks, profile in ((1, []), (2, []), (3, []), (2, [tmp_path / "machine.json"]))
    )
    assert alone[0] == two[0] == three[0] == best[0]
    total = alone[0].removeprefix("heat after 1000 steps: ")
    assert float(total) == pytest.approx(192 * heat_left(200.0), rel=1e-4)
    assert two[1].startswith("schedule split, depth 4 shrink; ordered/p2p: ")
    chosen = package.best(2, (192, 256), 2, TOY, periodic=(True, False), process_grid="2x1").choice
    deep = f", depth {chosen.depth} {chosen.substeps}" if chosen.depth > 1 else ", depth 1"
    assert best[1].startswith(f"schedule {chosen.schedule}{deep}")


def test_two_fields_run_by_every_schedule_strategy_and_depth_like_reference(gray_scott):
    strategies = "ordered/*" if LONG else "ordered/p2p,ordered/shared,ordered/rma-fence"
    found = gray_scott.measured(f"--ranks 3 --strategy {strategies} --schedule bulk,split --depth 1,2 --repetitions 1")
    assert len({(r["request"]["strategy"], r["request"].get("depth", 1)) for r in found}) > (10 if LONG else 5)
    assert {r["verification"]["status"] for r in found} == {"passed"}
    assert len({r["verification"]["checksum"] for r in found if r["request"].get("depth", 1) == 2}) == 1


def test_kernels_of_an_app_from_outside_run_by_the_best_instruction_set_with_the_bits_of_its_function(gray_scott):
    found = gray_scott.measured("--ranks 1,2 --form vector,plain --repetitions 1")
    best = json.loads(run(gray_scott.program, "--info"))["isas"][0]
    assert {(r["request"]["form"], r["environment"]["isa"]) for r in found} == {("vector", best), ("plain", "")}
    assert len({r["verification"]["checksum"] for r in found}) == 1


def test_kernels_of_an_app_from_outside_run_on_devices_like_reference(gray_scott):
    found = gray_scott.measured("--ranks 2 --device host --strategy ordered/staged --schedule bulk,streams")
    assert len(found) == 2 and {r["verification"]["status"] for r in found} == {"passed"}


def test_two_stages_run_by_every_schedule_each_stage_with_a_strategy_of_its_own(wave):
    found = wave.measured(
        "--ranks 2,3 --strategy ordered/p2p,direct:merged/p2p,ordered/shared "
        "--schedule bulk,split,interleaved,comm-thread --stage-strategies push=ordered/persistent --threads 2"
    )
    assert {r["request"].get("schedule", "bulk") for r in found} == {"bulk", "split", "interleaved", "comm-thread"}
    assert {r["verification"]["status"] for r in found} == {"passed"}
    assert all(r["request"]["stage_strategies"] == {"push": "ordered/persistent"} for r in found)


@pytest.mark.parametrize("mode", ["blocking", "nonblocking", "deferred"])
def test_the_energy_of_all_ranks_is_on_record_and_is_conserved(wave, mode):
    energies = []
    for ranks in ("1", "3"):
        [record] = wave.measured(f"--ranks {ranks} --set energy={mode}")
        assert record["counts"]["reductions"] > 0
        energies.append([sum(numbers) for numbers in record["outcome"]["reduced"]["energy"]])
    assert energies[0] == pytest.approx(energies[1])  # rounded in another order
    assert max(energies[0]) == pytest.approx(min(energies[0]), rel=0.01)


def test_plan_says_what_each_stage_moves_and_when(example):
    plan = json.loads(example.haloscope("plan", "--cells", "64x64", "--ranks", "4", "--json"))
    assert [s["name"] for s in plan["stages"]] == (["push", "compress"] if example.app == "wave" else ["step"])
    text = example.haloscope("plan", "--cells", "64x64", "--ranks", "4")
    assert ("pressure (8 bytes)" in text) == (example.app == "wave")


@pytest.mark.parametrize("example", ["wave", pytest.param("gray_scott", marks=pytest.mark.long)], indirect=True)
def test_predictions_advice_and_simulations_follow_from_its_own_measured_sweeps(example, profiles):
    profile = profiles[example.app]
    kernels = json.loads(profile.read_text())["kernels"]
    assert any(name.startswith(f"{example.app}/") for name in kernels)
    words = ("--cells", "256x256", "--ranks", "2", "--profile", profile)
    [predicted] = json.loads(example.haloscope("predict", *words, "--json"))["predictions"]
    assert predicted["time_s"] > 0
    simulated = json.loads(example.haloscope("simulate", *words, "--steps", "5", "--json"))["simulations"]
    assert simulated[0]["time_s"] == pytest.approx(predicted["time_s"], rel=0.05)
    advice = example.haloscope("advise", *words, "--depth", "1")
    assert f"--program {example.program}" in advice and "## To measure it" in advice
    [command] = [line for line in advice.splitlines() if line.startswith("`haloscope run")]
    assert "verified" not in command
    example.haloscope(
        *command.strip("`").split()[1:2], *command.strip("`").split()[3:], "--steps", "2", "--launches", "1"
    )


def test_measurements_can_be_held_against_predictions(example, profiles):
    example.measured("--ranks 2 --strategy ordered/p2p,direct/p2p")
    text = example.haloscope("validate", "r.jsonl", "--profile", profiles[example.app])
    assert "# Predicted against measured: 2 choices" in text


@pytest.mark.long
def test_tune_finds_the_fastest(example, profiles):
    line = (
        "--cells 64x64 --ranks 2 --strategy ordered/p2p,ordered/persistent --depth 1 --schedule bulk --budget 2 "
        "--confirm 1"
    )
    assert "is the choice" in example.haloscope("tune", *line.split(), "--profile", profiles[example.app])


def test_a_trace_shows_the_operations_of_every_stage(example):
    example.measured("--ranks 2 --trace t.json --timeline")
    events = json.loads((example.folder / "t.json").read_text())
    names = {e["name"].split()[0] for e in events if e.get("ph") == "X"}
    assert {"sweep", "send", "wait"} <= names
    assert ("reduce" in names) == (example.app == "wave")


def test_what_its_schema_forbids_is_refused_before_anything_starts(gray_scott):
    output = gray_scott.haloscope("run", *SMALL, "--set", "feed=nan", code=2)
    assert "parameter feed = 'nan' is not possible" in output
    output = gray_scott.haloscope("run", *SMALL, "--set", "fed=0.1", code=2)
    assert "did you mean feed" in output
    refusal = run(*HALOSCOPE, "run", "gray-scot", "--program", gray_scott.program, *SMALL, code=2)
    assert "did you mean gray-scott?" in refusal
