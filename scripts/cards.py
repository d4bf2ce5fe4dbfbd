"""Put results of GPUs into README.md, docs/understand/measured/gpu.md and studies/coverage.md.

usage: .venv/bin/python scripts/cards.py [--check]

Each folder of results/gpu/ has the results of one GPU, written by bench/gpu.py; results of imitated devices are
ignored. Without results, the pages state that. --check writes nothing; the exit code is 1 where a page differs from the
records.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "gpu"
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

import gpu_table
from gpu_run import Journal, outcome

KEYS = {"kernels": "case"}  # of their lines; others have ids
NONE = "Nothing has run on a GPU yet."
# Rows of checklists that require equal bytes on a device, and the configurations of bench/gpu.py that show them.
SHOWN: Mapping[str, tuple[str, Callable[[dict], bool]]] = {
    "W14": ("E: resident on the GPU", lambda r: r["schedule"] == "resident"),
    "W15": ("F: separate kernels of faces", lambda r: r["schedule"] in ("faces", "faces-overlap")),
    "W16": ("G: two streams", lambda r: r["schedule"] == "streams" and r["app"] == "advection3d"),
    "W17": ("H: block in a box", lambda r: r["schedule"] == "box"),
    "W18": ("I: full overlap", lambda r: r["schedule"] == "box-overlap"),
    "W22": ("several tasks per GPU", lambda r: r["ranks"] > 1),
    "V12": ("transfer staged through the host", lambda r: "/staged" in r["strategy"] and r["app"] == "laplace2d"),
    "V24": ("GPU-aware transfer", lambda r: "/aware" in r["strategy"]),
}


@dataclass
class Card:
    """The results of one GPU."""

    name: str
    folder: Path
    kernels: Sequence[dict]
    steps: Sequence[dict]
    blocks: Sequence[dict]
    verified: Sequence[dict]

    def bars(self) -> list[gpu_table.Bar]:
        """Return the bars that were measured."""
        found = gpu_table.all_bars(self.kernels, self.steps, self.blocks)
        return [bar for bar in found if bar.reached is not None]

    def commit(self) -> str:
        """Return the commit that its programs were built from, by their records."""
        found = [record["environment"]["commit"] for record in self.verified if "environment" in record]
        return ", ".join(dict.fromkeys(found)) or "unknown"


def read(results: Path = RESULTS) -> list[Card]:
    """Return the GPUs that have results, sorted by name."""
    found = []
    for folder in sorted(results.glob("*/")):
        lines = {name: lines_of(folder / f"{name}.jsonl") for name in ("kernels", "steps", "blocks", "verified")}
        device = next((line for line in lines["kernels"] if line.get("figure") == "gpu-device"), None)
        if device and not device["imitated"]:
            found.append(Card(device["device"], folder, **lines))
    return sorted(found, key=lambda card: card.name)


def lines_of(path: Path) -> list[dict]:
    """Return the complete lines of a file of results."""
    return Journal(path, KEYS.get(path.stem, "id"), mends=False).lines


def sentence(cards: Sequence[Card]) -> str:
    """Return the text for the README: a sentence per GPU."""
    sentences = []
    for card in cards:
        bars = card.bars()
        held = sum(bar.verdict() == "yes" for bar in bars)
        right = sum(outcome(record, verified=True) == "good" for record in card.verified)
        sentences.append(
            f"On a GPU, {card.name}, {right} of {len(card.verified)} configurations gave the reference's bytes, "
            f"and {held} of {len(bars)} bars held: [measured/gpu.md](docs/understand/measured/gpu.md)."
        )
    return " ".join(sentences) or NONE


def tables(cards: Sequence[Card]) -> str:
    """Return bars, kernels and overlap of each GPU, for docs/understand/measured/gpu.md."""
    parts = []
    for card in cards:
        lines = gpu_table.card_table(card.kernels, card.steps, card.blocks)
        where = card.folder.relative_to(ROOT) if card.folder.is_relative_to(ROOT) else card.folder
        end = f"Measured at commit {card.commit()}. All other results: {where}/table.md; records in the same folder."
        parts.append("\n".join([f"### {card.name}", "", *lines, "", end]))
    page = "[devices.md](../../machine/devices.md#measuring-a-gpu)"
    return "\n\n".join(parts) or f"{NONE} `bench/gpu.py` measures one ({page})."


def coverage(cards: Sequence[Card]) -> str:
    """Return the configurations of each row with the reference's bytes on each GPU, for studies/coverage.md."""
    if not cards:
        return f"{NONE} Rows with *imitated device* were not run on a GPU."
    lines = [
        ["GPU", "row", "configurations", "bytes of the reference", "refused", "wrong or failed"],
        [":---"] * 3 + ["---:"] * 3,
    ]
    for card in cards:
        for row, (title, shows) in SHOWN.items():
            found = [outcome(record, verified=True) for record in card.verified if shows(record["request"])]
            bad = found.count("wrong") + found.count("failed")
            lines.append([card.name, row, title, *map(str, (found.count("good"), found.count("refused"), bad))])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def marked(text: str, body: str, inline: bool = False) -> str:
    """Return a page with the part between its marks replaced."""
    gap = "" if inline else "\n\n"
    pattern = re.compile(r"(<!-- begin card -->).*?(<!-- end card -->)", re.DOTALL)
    return pattern.sub(lambda m: f"{m[1]}{gap}{body}{gap}{m[2]}", text)


def pages(cards: Sequence[Card], root: Path = ROOT) -> dict[Path, str]:
    """Return the three pages with current contents."""
    parts = {
        "README.md": (sentence(cards), True),
        "docs/understand/measured/gpu.md": (tables(cards), False),
        "studies/coverage.md": (coverage(cards), False),
    }
    return {root / name: marked((root / name).read_text(), *part) for name, part in parts.items()}


def main() -> int:
    """Rewrite (or check) the marked parts."""
    stale = {path: text for path, text in pages(read()).items() if path.read_text() != text}
    if "--check" in sys.argv:
        return int(bool(stale))
    for path, text in stale.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
