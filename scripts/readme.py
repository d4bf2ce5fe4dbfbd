"""Put measured tables and the figure into README.md, from the records in results/.

usage: .venv/bin/python scripts/readme.py [--check]

Reads results/demo.jsonl (a demo's records), results/test.txt (the last line of `make test`) and results/bench.jsonl (of
each case the newest line). --check only says whether README.md is what they give.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
README = ROOT / "README.md"
sys.path.insert(0, str(ROOT))


def demo() -> str:
    """What `haloscope demo` prints for the recorded run; redraws docs/figures/demo.svg and .png."""
    command = [ROOT / ".venv" / "bin" / "haloscope", "demo", "--from", "results/demo.jsonl", "--output", "docs/figures"]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    kept = [line for line in text.strip().splitlines() if not line.startswith(("records:", "figure:", "took"))]
    records = [json.loads(line) for line in (RESULTS / "demo.jsonl").read_text().splitlines()]
    where = next(r["environment"] for r in records if r["kind"] == "measurement")
    launches = len({r["launch"]["id"] for r in records})
    return "\n".join(kept).strip() + (
        f"\n\nMeasured, not simulated: {where['cpu']}, {where['cores']} cores, 2 ranks, {launches} launches, "
        f"{mpi_name(where)}, {where['compiler']}; records in results/demo.jsonl."
    )


def mpi_name(environment: dict) -> str:
    """The MPI library in a few words."""
    return " ".join(environment["mpi_library"].replace("Version:", "").split()[:2])


def test() -> str:
    """The line pytest ended with."""
    return f"```\n{(RESULTS / 'test.txt').read_text().strip()}\n```"


def bench() -> str:
    """The newest line of each figure's cases, as a table, and where they were measured."""
    from bench.__main__ import table

    newest = {}
    for line in (RESULTS / "bench.jsonl").read_text().splitlines():
        found = json.loads(line)
        newest[found["figure"], found["case"]] = found
    results = [newest[key] for key in sorted(newest)]
    places = sorted({f"{r['environment']['cpu']}, {r['environment']['cores']} cores, "
                     f"{mpi_name(r['environment'])}, {r['environment']['compiler']}"
                     for r in results})  # fmt: skip
    return f"{table(results)}\n\nMeasured, not simulated: {'; '.join(places)}. Records in results/bench.jsonl."


def main() -> int:
    """Rewrite (or check) the marked parts."""
    old = text = README.read_text()
    for name, make in {"demo": demo, "test": test, "bench": bench}.items():
        pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        body = make()
        text = pattern.sub(lambda m, body=body: f"{m[1]}\n{body}\n\n{m[2]}", text)
    if "--check" in sys.argv:
        return int(text != old)
    README.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
