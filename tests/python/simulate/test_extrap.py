"""What `haloscope simulate --extrap` writes, read by Extra-P itself, which is fetched on first use."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from haloscope.cli import main
from paths import ROOT
from programs import ended, run
from toy import TOY

pytestmark = pytest.mark.long
FOLDER = ROOT / "build" / "extrap"
# Extra-P without its windows and its learning, which its reader and its modelling do not load; NumPy is there already.
PACKAGES = ("extrap==4.2.5", "marshmallow==3.26.2", "pycubexr==2.1.1", "tqdm==4.70.1", "packaging==26.3")
READER = """
import json, sys
from extrap.fileio.file_reader.jsonlines_file_reader import read_jsonlines_file
from extrap.modelers.model_generator import ModelGenerator

experiment = read_jsonlines_file(sys.argv[1])
ModelGenerator(experiment, name="times").model_all()
print(json.dumps({
    "parameters": [p.name for p in experiment.parameters],
    "metrics": [m.name for m in experiment.metrics],
    "parents": {n.path.name: c.path.name for c in experiment.call_tree for n in c},
    "values": {
        c.name: [[list(m.coordinate), float(m.median)] for m in found]
        for (c, _), found in experiment.measurements.items()
    },
    "models": {c.name: model.hypothesis.function.to_string(*experiment.parameters)
               for (c, _), model in experiment.modelers[0].models.items()},
}))
"""


@pytest.fixture(scope="module")
def read():
    """Return a function from a file to what Extra-P found in it; skips where Extra-P is not to be had."""
    stamp = FOLDER / f".has-{PACKAGES[0]}"
    if not stamp.exists():
        words = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--upgrade"]
        done = ended(sys.executable, *words, "--target", FOLDER, *PACKAGES)
        if done.returncode:
            pytest.skip(f"Extra-P is not to be had here: {(done.stderr.strip().splitlines() or ['nothing'])[-1]}")
        stamp.touch()

    def read_file(file: Path) -> dict:
        output = run(sys.executable, "-c", READER, file, env=os.environ | {"PYTHONPATH": str(FOLDER)})
        return json.loads(output.splitlines()[-1])

    return read_file


def test_extra_p_reads_every_point_and_which_operation_belongs_to_what(read, toy, tmp_path):
    file = tmp_path / "times.jsonl"
    words = ["laplace2d", "--cells", "512", "--ranks", "4,8,16,32,64", "--depth", "1,2,3,4,5", "--profile", str(TOY)]
    assert main(["simulate", *words, "--extrap", str(file)]) == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    found = read(file)
    assert (found["parameters"], found["metrics"]) == (["ranks", "depth"], ["simulated_s"])
    assert set(found["values"]) == {line["callpath"] for line in lines}
    for path, values in found["values"].items():
        written = [[list(line["params"].values()), line["value"]] for line in lines if line["callpath"] == path]
        assert sorted(values) == sorted(written)
        assert len(values) == 25
    whole = "laplace2d bulk ordered/p2p"
    assert found["parents"] == {path: whole for path in found["values"] if "->" in path}


def test_extra_p_finds_that_a_weak_scaling_sweeps_as_long_on_any_number_of_ranks(read, toy, tmp_path):
    file = tmp_path / "weak.jsonl"
    words = ["laplace2d", "--cells", "64", "--ranks", "16,64,256,1024,4096", "--weak", "--profile", str(TOY)]
    assert main(["simulate", *words, "--extrap", str(file)]) == 0
    found = read(file)
    sweep = next(path for path in found["models"] if path.endswith("->sweep"))
    assert float(found["models"][sweep]) == pytest.approx(found["values"][sweep][0][1])
