"""scripts/cards.py: what cards have shown, from their records to the pages."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from paths import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import cards

from test_bench_gpu import sweep_line

PAGES = ("README.md", "docs/understand/measured/gpu.md", "studies/coverage.md")


def device(name: str, imitated: bool = False) -> dict:
    """A run's description of its device."""
    return {"figure": "gpu-device", "case": "device", "device": name, "imitated": imitated}


def kernel(share: float) -> dict:
    """A sweep that takes 1/share of its copy's time."""
    rates = {"gb_per_s": 4000 * share, "copy_gb_per_s": 4000.0}
    return sweep_line("laplace2d", "star", share) | {"case": "sweep", "block": [128, 1, 128]} | rates


def checked(schedule: str, status: str = "passed") -> dict:
    """A configuration compared with the reference."""
    request = {"app": "advection3d", "schedule": schedule, "strategy": "ordered/staged", "ranks": 2}
    return {"id": schedule, "kind": "measurement", "request": request, "verification": {"status": status}}


def put(folder: Path, **files: list[dict]) -> None:
    """Results as bench/gpu.py leaves them."""
    folder.mkdir(parents=True)
    for name, lines in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def root(tmp_path):
    """A copy of the pages."""
    for page in PAGES:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / page, tmp_path / page)
    return tmp_path


def rewritten(root: Path) -> dict[str, str]:
    """The pages with what the records in root say."""
    found = cards.pages(cards.read(root / "results"), root)
    for path, text in found.items():
        path.write_text(text)
    assert cards.pages(cards.read(root / "results"), root) == found
    return {str(path.relative_to(root)): text for path, text in found.items()}


def test_without_a_card_all_pages_say_so_whatever_was_imitated(root):
    put(root / "results" / "host", kernels=[device("imitated", imitated=True), kernel(0.5)])
    assert all(cards.NONE in text for text in rewritten(root).values())


def test_a_cards_results_come_into_all_pages_with_its_name(root):
    put(
        root / "results" / "big",
        kernels=[device("NVIDIA H100"), kernel(0.96)],
        verified=[
            checked("streams"),
            checked("box"),
            checked("faces", "failed"),
            {**checked("resident"), "kind": "skipped"},
        ],
    )
    (root / "results" / "big" / "steps.jsonl").write_text('{"half a li')  # as a lost machine leaves it
    found = rewritten(root)
    assert not [text for text in found.values() if cards.NONE in text]
    readme = found["README.md"]
    assert "On a GPU, NVIDIA H100, 2 of 4 configurations gave the reference's bytes, and 1 of 1 bars held" in readme
    assert len(readme.splitlines()) <= 100
    measured = found["docs/understand/measured/gpu.md"]
    assert "### NVIDIA H100" in measured
    assert "| laplace2d star f32 | stream | 128x1x128 | 0.960 | 3840 of 4000 |" in measured
    assert "| laplace2d star f32: share of the copy's rate | 0.95 | 0.96 | yes |" in measured
    coverage = found["studies/coverage.md"]
    assert "| NVIDIA H100 | W16 | G: two streams | 1 | 0 | 0 |" in coverage
    assert "| NVIDIA H100 | W15 | F: separate kernels of faces | 0 | 0 | 1 |" in coverage
    assert "| NVIDIA H100 | W14 | E: resident on the GPU | 0 | 1 | 0 |" in coverage
    shutil.rmtree(root / "results")
    assert all(cards.NONE in text for text in rewritten(root).values())


def test_the_pages_in_the_repository_are_what_its_records_give(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["cards.py", "--check"])
    assert cards.main() == 0
