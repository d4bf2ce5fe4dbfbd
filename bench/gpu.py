#!/usr/bin/env python3
"""Measure a device: `bench/gpu.py`, one command on a machine that has nvcc, CMake and Python and no network.

Builds the C++ part, checks every device strategy and schedule against the CPU's reference byte for byte, measures kernels
against the device's own copy, and the halo path by whole steps; writes records to results/gpu/<card>/ and prints a
short table. What such a machine may lack travels along: `bench/gpu.py --carry`, run where there is a network, puts MPICH
and the two header-only libraries into build/carry. Only the standard library is used, because nothing else is there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CARRY = ROOT / "build" / "carry"
MPICH = "mpich==5.0.2"
HEADERS = {"nlohmann_json": "nlohmann", "CLI11": "CLI"}  # CMake package: folder of headers


def carry() -> None:
    """Collect in build/carry what the machine with the device has not."""
    CARRY.mkdir(parents=True, exist_ok=True)
    wheel = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(CARRY), MPICH]
    subprocess.run(wheel, check=True)
    for package, folder in HEADERS.items():
        shutil.copytree(f"/usr/include/{folder}", CARRY / "include" / folder, dirs_exist_ok=True)
        shutil.copytree(f"/usr/share/cmake/{package}", CARRY / "share" / "cmake" / package, dirs_exist_ok=True)
    total = sum(f.stat().st_size for f in CARRY.rglob("*") if f.is_file())
    print(f"{CARRY.relative_to(ROOT)}: {total / 2**20:.0f} MiB")


def mpi_prefix() -> Path | None:
    """MPICH from the wheel that was carried along, or None where an mpicxx is installed."""
    wheels = sorted(CARRY.glob("mpich-*.whl"))
    if shutil.which("mpicxx") or not wheels:
        return None
    prefix = CARRY / "mpich"
    if not prefix.exists():
        with zipfile.ZipFile(wheels[0]) as wheel:
            wheel.extractall(CARRY / "unpacked")
        (data,) = (CARRY / "unpacked").glob("*.data/data")
        data.rename(prefix)
        for program in (prefix / "bin").iterdir():
            program.chmod(0o755)
    return prefix


def build(device: str, prefix: Path | None) -> Path:
    """Configure and build; returns the build folder."""
    folder = ROOT / "build" / f"gpu-{device}"
    options = [f"-DHALOSCOPE_{device.upper()}=ON"] if device != "host" else []
    if device == "cuda":
        options += [f"-DCMAKE_CUDA_ARCHITECTURES={architecture()}", f"-DCMAKE_CUDA_COMPILER={nvcc()}"]
    if prefix:
        options += [f"-DMPI_CXX_COMPILER={prefix / 'bin' / 'mpicxx'}"]
    ninja = ["-G", "Ninja"] if shutil.which("ninja") else []
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), *ninja, "-DCMAKE_BUILD_TYPE=Release", "-DHALOSCOPE_TESTS=OFF",
                 f"-DCMAKE_PREFIX_PATH={CARRY}", *options]  # fmt: skip
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    jobs = str(len(os.sched_getaffinity(0)))
    subprocess.run(["cmake", "--build", str(folder), "-j", jobs, "--target", "haloscope-rank", "bench_gpu"], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    return folder


def nvcc() -> str:
    """The CUDA compiler: on PATH, or where CUDA installs itself."""
    return shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"


def architecture() -> str:
    """Compute capability of the first device, without a dot; 90 where nobody can tell."""
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        return subprocess.run(query, check=True, capture_output=True, text=True).stdout.split()[0].replace(".", "")
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "90"


class Ranks:
    """Starts the rank program and keeps its records."""

    def __init__(self, folder: Path, prefix: Path | None, device: str):
        self.program = folder / "haloscope-rank"
        self.mpiexec = str(prefix / "bin" / "mpiexec") if prefix else "mpiexec"
        self.device = device

    def run(self, ranks: int, lines: list[str], seconds: int = 240) -> list[dict]:
        """Records of the configurations, in one launch of so many ranks."""
        configurations = self.program.parent / "configurations.txt"
        configurations.write_text("".join(f"{line} --device {self.device}\n" for line in lines))
        words = [self.mpiexec, "-n", str(ranks), str(self.program), "--configs", str(configurations)]
        environment = os.environ | {"HALOSCOPE_HOST_DEVICE": os.environ.get("HALOSCOPE_HOST_DEVICE", "")}
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, env=environment, check=False)
        except subprocess.TimeoutExpired:
            return [{"kind": "failed", "reason": f"{ranks} ranks took more than {seconds} s"}]
        records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if len(records) < len(lines):
            records.append({"kind": "failed", "reason": done.stderr.strip()[-2000:]})
        return records


STRATEGIES = (
    "ordered/staged",
    "ordered/staged:pageable",
    "direct/staged",
    "direct:merged/staged",
    "ordered:self-first/staged",
    "ordered/ipc",
    "direct:merged/ipc",
)


def verification(ranks: int, aware: bool) -> list[str]:
    """Every app, kernel, schedule, strategy and depth, each checked against the CPU's reference."""
    apps = {"laplace2d --real f32": "149x117", "laplace2d --real f64": "131x90", "laplace3d --real f32": "43x37x41",
            "advection3d --form dense": "38x33x35", "advection3d --form separable": "36x31x39"}  # fmt: skip
    lines = []
    for app, cells in apps.items():
        for strategy in (*STRATEGIES, "ordered/aware", "direct/aware") if aware else STRATEGIES:
            for schedule in ("bulk", "streams", "resident") if ranks == 1 else ("bulk", "streams"):
                for depth, region in ((1, "full"), (2, "full"), (3, "shrink"), (4, "blocked")):
                    if region == "blocked" and "laplace2d" not in app:
                        continue
                    kernel = ("stream", "shared", "naive")[len(lines) % 3]
                    lines.append(f"{app} --cells {cells} --strategy {strategy} --schedule {schedule} --depth {depth} "
                                 f"--region {region} --device-kernel {kernel} --steps 2 --repetitions 1 --verify 9")  # fmt: skip
        lines += boxes(app, cells, 1, "--steps 2 --repetitions 1 --verify 9")
    return lines


def boxes(app: str, cells: str, threads: int, measure: str) -> list[str]:
    """A device's block in a box of the host, both schedules, by thickness."""
    return [f"{app} --cells {cells} --strategy ordered/p2p --schedule {schedule} --box {layers} --threads {threads} {measure}"
            for schedule in ("box", "box-overlap") for layers in (1, 2, 3, 6)]  # fmt: skip


def halo_path(ranks: int, small: bool) -> list[str]:
    """Whole steps: the four programs of the 2023 study at its depths, and 3D, at several sizes."""
    sides = (96,) if small else (2048, 8192, 16384)
    depths = (1, 4) if small else (1, 2, 4, 8, 16, 32, 64)
    measure = "--seconds 0.02 --repetitions 3" if small else "--seconds 0.15 --repetitions 5"
    lines = [f"laplace2d --real f32 --cells {side}x{side} --strategy {strategy} --schedule {schedule} --depth {depth} {measure}"
             for side in sides for strategy in ("ordered/staged", "direct/staged", "ordered/ipc") for schedule in ("bulk", "streams")
             for depth in depths]  # fmt: skip
    side = 24 if small else 420
    lines += [f"advection3d --form {form} --cells {side} --strategy {strategy} --schedule {schedule} {measure}"
              for form in ("dense", "separable") for strategy in ("ordered/staged", "ordered/staged:pageable")
              for schedule in (("bulk", "streams", "resident") if ranks == 1 else ("bulk", "streams"))]  # fmt: skip
    threads = max(1, len(os.sched_getaffinity(0)) // ranks)
    return lines + boxes("advection3d --form dense", str(side), threads, measure)


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
    out += ["", "| steps | ranks | ms a step |", "|---|---|---|"]
    for record in steps:
        if record.get("kind") == "measurement":
            r = record["request"]
            name = f"{r['app']} {r['form']} {'x'.join(map(str, r['cells']))} {r['strategy']} {r['schedule']} depth {r['depth']}"
            out.append(f"| {name} | {r['ranks']} | {record['time_s']['step']['median'] * 1e3:.4f} |")
    return out


def write(path: Path, lines: list[dict]) -> None:
    """JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def measure(device: str, small: bool, output: str, built: str, every: int) -> int:
    """Everything in turn; 0 when all that was verified is right. every: of the configurations only each so-manieth."""
    begin = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - begin:5.0f} s] {text}", flush=True)

    prefix = None if built else mpi_prefix()
    folder = Path(built) if built else build(device, prefix)
    say("built")
    words = [str(folder / "bench" / "bench_gpu"), "--device", device, *(["--small"] if small else [])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    kernels = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or not kernels:
        print(done.stderr, file=sys.stderr)
        return 1
    card = re.sub(r"[^a-z0-9]+", "-", kernels[0]["device"].lower()).strip("-")
    target = Path(output) if output else ROOT / "results" / "gpu" / card
    write(target / "kernels.jsonl", kernels)
    say(f"kernels measured on {kernels[0]['device']}")

    ranks = Ranks(folder, prefix, device)
    checked = [record for n in (1, 2, 4) for record in ranks.run(n, verification(n, device == "host")[::every])]
    write(target / "verified.jsonl", checked)
    wrong = [r for r in checked if r.get("verification", {}).get("status") != "passed"]
    say(f"{len(checked) - len(wrong)} of {len(checked)} configurations byte-identical to the CPU's reference")
    for record in wrong[:5]:
        print("  wrong:", record.get("reason") or record["request"])

    steps = [record for n in ((1, 2) if small else (1, 2, 4)) for record in ranks.run(n, halo_path(n, small)[::every])]
    write(target / "steps.jsonl", steps)
    say("steps measured")
    lines = table(kernels, steps)
    (target / "table.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 1 if wrong else 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--carry", action="store_true", help="collect what a machine without network lacks, and stop")
    parser.add_argument("--device", default="cuda", choices=("cuda", "hip", "host"), help="back end (default: cuda)")
    parser.add_argument("--small", action="store_true", help="small grids; the rule with --device host")
    parser.add_argument("--output", default="", help="folder of the records (default: results/gpu/<card>)")
    parser.add_argument("--build", default="", help="folder of a finished build to use; its MPI must be on PATH")
    parser.add_argument("--every", type=int, default=1, help="of the configurations only each N-th (default: all)")
    options = parser.parse_args()
    if options.carry:
        carry()
        return 0
    small = options.small or options.device == "host"
    return measure(options.device, small, options.output, options.build, options.every)


if __name__ == "__main__":
    sys.exit(main())
