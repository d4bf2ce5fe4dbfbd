"""The short table of `bench/gpu.py`: kernels against copies, steps, and what overlap and the box bring. Standard library only."""

from __future__ import annotations

import statistics


def share_of_copy(line: dict) -> float:
    """Median of copy time over kernel time, sample by sample; 0 for a case that did not run."""
    if "seconds" not in line:
        return 0.0
    return statistics.median(c / s for s, c in zip(line["seconds"], line["copy_seconds"], strict=True))


def table(kernels: list[dict], steps: list[dict]) -> list[str]:
    """The short table, best block shapes only."""
    out = ["| kernel | variant | block | of copy |", "|---|---|---|---|"]
    best: dict[tuple, dict] = {}
    for line in kernels:
        if line["figure"] == "gpu-sweep":
            key = (line["app"], line["form"], line["variant"], line["levels"])
            if key not in best or share_of_copy(line) > share_of_copy(best[key]):
                best[key] = line
    for (app, form, variant, levels), line in best.items():
        steps_s = share_of_copy(line) * levels
        extra = f", {levels} steps: {steps_s:.2f} of one copy a step" if levels > 1 else ""
        block = "x".join(str(n) for n in line["block"] if n) or "default"
        out.append(f"| {app} {form} {line['real']} | {variant}{extra} | {block} | {share_of_copy(line):.3f} |")
    for line in kernels:
        if line["figure"] == "gpu-pack":
            floor = statistics.median(line["one_piece_seconds"]) / statistics.median(line["seconds"])
            out.append(f"| pack, 6 faces of 4 fields of {line['cells']}^3 | one launch | | {share_of_copy(line):.3f} "
                       f"(launch floor {floor:.2f} of it) |")  # fmt: skip
    one, fused = (max((share_of_copy(line) * line["levels"] for line in best.values()
                       if line["app"] == "laplace2d" and (line["levels"] > 1) == several), default=0.0)
                  for several in (False, True))  # fmt: skip
    if one and fused:
        out.append(f"| laplace2d, steps a second, fused over one by one | | | {fused / one:.2f} |")
    measured = [record for record in steps if record.get("kind") == "measurement"]
    out += ["", "| steps | ranks | ms a step |", "|---|---|---|"]
    for record in measured:
        r = record["request"]
        box = f" of {r['box']}" if "box" in r else ""
        name = f"{problem(record)} {r['strategy']} {r['schedule']}{box} depth {r['depth']}"
        out.append(f"| {name} | {r['ranks']} | {step_s(record) * 1e3:.4f} |")
    return out + comparisons(measured)


def problem(record: dict) -> str:
    """App, form and grid of a measurement."""
    r = record["request"]
    return f"{r['app']} {r['form']} {'x'.join(map(str, r['cells']))}"


def step_s(record: dict) -> float:
    """Median seconds of a step."""
    return record["time_s"]["step"]["median"]


def comparisons(measured: list[dict]) -> list[str]:
    """What of the exchange the streams hide, and how much better than plain the best run and the box are."""
    out = [
        "",
        "| problem | ranks | exchange hidden by streams | plain over best | plain over box-overlap |",
        "|---|---|---|---|---|",
    ]
    for name, ranks in dict.fromkeys((problem(r), r["request"]["ranks"]) for r in measured):
        same = [r for r in measured if (problem(r), r["request"]["ranks"]) == (name, ranks) and
                r["request"]["schedule"] != "resident"]  # fmt: skip
        step: dict[tuple, float] = {}
        swept: dict[tuple, float] = {}
        for r in same:
            q = r["request"]
            key = (q["schedule"], q["strategy"], q["depth"])
            step[key] = min(step_s(r), step.get(key, step_s(r)))
            swept[key] = r["phases_s"]["compute"]["max"]
        hidden = [(bulk - step["streams", *way]) / (bulk - swept[schedule, *way]) for (schedule, *way), bulk in step.items()
                  if schedule == "bulk" and ("streams", *way) in step and bulk > swept[schedule, *way]]  # fmt: skip
        plain = step.get(("bulk", "ordered/staged", 1))
        boxed = [t for (schedule, *_), t in step.items() if schedule == "box-overlap"]
        out.append(f"| {name} | {ranks} | {f'{max(hidden):.2f}' if hidden else ''} | "
                   f"{f'{plain / min(step.values()):.2f}' if plain else ''} | "
                   f"{f'{plain / min(boxed):.2f}' if plain and boxed else ''} |")  # fmt: skip
    return out
