#!/usr/bin/env python3
"""Measure a device: `bench/gpu.py`, one command on a machine that has nvcc, CMake and Python and no network.

Builds the C++ part, checks every device strategy and schedule against the CPU's reference byte for byte, measures kernels
against the device's own copy, and the halo path by whole steps; writes records to results/gpu/<card>/ as it goes and
prints a short table. It ends after --minutes at the latest, with the results so far. To bring along what such a machine
may lack, run `bench/gpu.py --carry` where there is a network: it puts MPICH, the two header-only libraries and the list
of measurements of a device calibration into build/carry. Only the standard library is used, because such a machine has
nothing else. Back home, `haloscope calibrate --from results/gpu/<card>/calibration.jsonl -o card.json` fits the
profile, and `haloscope validate results/gpu/<card>/steps.jsonl --profile card.json` reports its error for steps that
the fit has not seen.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpu_cases import LAPLACE2D, blocks, halo_path, line, verification
from gpu_table import table

ROOT = Path(__file__).resolve().parent.parent
CARRY = ROOT / "build" / "carry"
MPICH = "mpich==5.0.2"
CALIBRATION = "calibration.json"  # lines of requests by number of ranks
TWO = LAPLACE2D | {"cells": (64, 64), "strategy": "ordered/staged", "steps": 2, "repetitions": 1, "verify": 3}
HEADERS = {"nlohmann_json": "nlohmann", "CLI11": "CLI"}  # CMake package: folder of headers


def carry() -> None:
    """Collect in build/carry what the machine with the device has not."""
    shutil.rmtree(CARRY, ignore_errors=True)
    CARRY.mkdir(parents=True)
    wheel = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(CARRY), MPICH]
    subprocess.run(wheel, check=True)
    for package, folder in HEADERS.items():
        shutil.copytree(f"/usr/include/{folder}", CARRY / "include" / folder, dirs_exist_ok=True)
        shutil.copytree(f"/usr/share/cmake/{package}", CARRY / "share" / "cmake" / package, dirs_exist_ok=True)
    (CARRY / CALIBRATION).write_text(json.dumps(calibration_lines("cuda")))
    total = sum(f.stat().st_size for f in CARRY.rglob("*") if f.is_file())
    print(f"{CARRY.relative_to(ROOT)}: {total / 2**20:.0f} MiB")


def calibration_lines(device: str) -> dict[str, list[dict]]:
    """What a quick calibration of messages and of a device measures, by number of ranks."""
    from haloscope.calibration import points

    found: dict[str, list[dict]] = {}
    for point in points.all_points(("network", "device"), 2, 2, points.QUICK, device):
        found.setdefault(str(point.ranks), []).append(point.line())
    return found


def calibration(device: str) -> dict[int, list[dict]]:
    """The lines that were carried along, or those of the package where it is installed; none without either."""
    kept = CARRY / CALIBRATION
    try:
        lines = json.loads(kept.read_text()) if kept.exists() else calibration_lines(device)
    except ImportError:
        lines = {}
    return {int(ranks): [on_device(point, device) for point in found] for ranks, found in lines.items()}


def on_device(point: dict, device: str) -> dict:
    """A line of a calibration for this back end; one of the host alone stays as it is."""
    if "device" not in point["request"]:
        return point
    name = re.sub(r"\bdevice=\w+", f"device={device}", point["id"])
    return point | {"id": name, "request": point["request"] | {"device": device}}


def mpi_prefix() -> Path | None:
    """MPICH from the wheel that was carried along, or None: the one on PATH. The carried one runs as any user."""
    wheels = sorted(CARRY.glob("mpich-*.whl"))
    if not wheels:
        return None
    prefix = ROOT / "build" / wheels[0].stem
    if not prefix.exists():
        with tempfile.TemporaryDirectory(dir=prefix.parent) as unpacked, zipfile.ZipFile(wheels[0]) as wheel:
            wheel.extractall(unpacked)
            (data,) = Path(unpacked).glob("*.data/data")
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


# Without a network, MPICH or its launcher may not detect that all ranks are on this machine.
ALONE = {"HYDRA_IFACE": "lo"}
MPI_WAYS = ({}, ALONE | {"MPIR_CVAR_CH4_NETMOD": "ucx", "UCX_TLS": "sm,self"}, ALONE | {"MPIR_CVAR_CH4_NETMOD": "ofi"})


@contextmanager
def shared_device(device: str) -> Iterator[dict[str, str]]:
    """Environment in which kernels of several processes run at once, by an MPS daemon of our own; empty without one."""
    control = shutil.which("nvidia-cuda-mps-control") if device == "cuda" else None
    if control is None:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="mps") as folder:
        environment = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        quiet = {"env": os.environ | environment, "stdout": subprocess.DEVNULL, "timeout": 30}
        started = subprocess.run([control, "-d"], check=False, **quiet).returncode == 0
        try:
            yield environment if started else {}
        finally:
            if started:
                subprocess.run([control], check=False, input=b"quit\n", **quiet)


class Ranks:
    """Starts the rank program and keeps its records."""

    most_failures = 10  # launches in a row without a record, after which a list is given up

    def __init__(self, folder: Path, prefix: Path | None, device: str):
        self.program = folder / "haloscope-rank"
        self.mpiexec = str(prefix / "bin" / "mpiexec") if prefix else "mpiexec"
        self.device = device
        self.environment: dict[str, str] = {}
        self.launches = 0

    def try_out(self, shared: dict[str, str]) -> str:
        """Find an environment in which two ranks get the right bytes, `shared` if it can be; say what is wrong, or ""."""
        asked, said = line(TWO, 2, self.device), ""
        for self.environment in [s | way for s in ([shared] if shared else []) + [{}] for way in MPI_WAYS]:
            record = (self.run(2, [asked], time.monotonic() + 60) or [{"reason": "it took more than a minute"}])[0]
            if record.get("verification", {}).get("status") == "passed":
                return ""
            said = said or str(record.get("reason", record))
        return said

    def aware(self) -> bool:
        """Whether this MPI sends device memory; one that crashes on it does not."""
        done = self.two([str(self.program), "--probe", "device-aware"], 60)
        return done is not None and '"ok":true' in done.stdout.replace(" ", "")

    def memory_faults(self, lines: list[dict]) -> str | None:
        """What compute-sanitizer finds in a few requests of two ranks, "" nothing; None where it is not there."""
        beside = Path(nvcc()).with_name("compute-sanitizer")
        tool = shutil.which("compute-sanitizer") or (str(beside) if beside.exists() else None)
        if tool is None or self.device != "cuda":
            return None
        file = self.program.with_name("checked.jsonl")
        write(file, lines)
        words = [tool, "--error-exitcode", "77", str(self.program), "--watchdog", "80",  # its first launches are slow
                 "--requests", str(file), "--output", os.devnull]  # fmt: skip
        done = self.two(words, 90)
        if done is None:
            return "it took more than 90 s"
        return "" if done.returncode == 0 else (done.stdout + done.stderr).strip()[-2000:]

    def two(self, words: list[str], limit_s: float) -> subprocess.CompletedProcess | None:
        """A command on two ranks; None where it took too long."""
        try:
            return subprocess.run([self.mpiexec, "-n", "2", *words], capture_output=True, text=True, check=False,
                                  timeout=limit_s, env=os.environ | self.environment)  # fmt: skip
        except subprocess.TimeoutExpired:
            return None

    def run(self, ranks: int, lines: list[dict], until: float) -> list[dict]:
        """Records of the requests, as many as there is time for. One that ends a launch is not tried again."""
        records: list[dict] = []
        failures = 0
        while len(records) < len(lines) and time.monotonic() < until and failures < self.most_failures:
            found, said = self.launch(ranks, lines[len(records) :], until)
            failures = 0 if found else failures + 1
            records += found
            if len(records) < len(lines) and time.monotonic() < until:
                records.append(self.failed(lines[len(records)], said))
        return records

    def failed(self, asked: dict, reason: str) -> dict:
        """The record of a request that ended the last launch."""
        launch = {"id": f"launch-{self.launches}"}
        return asked | {
            "schema": "haloscope.record",
            "schema_version": 2,
            "kind": "failed",
            "launch": launch,
            "reason": reason,
        }

    def launch(self, ranks: int, lines: list[dict], until: float) -> tuple[list[dict], str]:
        """The records of one launch, and the end of what it said to standard error."""
        requests, output = (self.program.with_name(name) for name in ("requests.jsonl", "records.jsonl"))
        self.launches += 1
        write(requests, lines)
        output.unlink(missing_ok=True)
        words = [
            self.mpiexec,
            "-n",
            str(ranks),
            str(self.program),
            "--requests",
            str(requests),
            "--output",
            str(output),
            "--launch-id",
            f"launch-{self.launches}",
        ]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env=os.environ | self.environment) as running:  # fmt: skip
            try:
                said = running.communicate(timeout=max(1.0, until - time.monotonic()))[1]
            except subprocess.TimeoutExpired:
                running.terminate()  # mpiexec takes its ranks along
                try:
                    said = running.communicate(timeout=10)[1]
                except subprocess.TimeoutExpired:
                    running.kill()
                    said = ""
        whole = output.read_text().splitlines() if output.exists() else []
        return [json.loads(line) for line in whole], said.strip()[-2000:] or f"ended with code {running.returncode}"


def write(path: Path, lines: list[dict]) -> None:
    """JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def measure(options: argparse.Namespace) -> int:
    """Run everything in turn; return 0 when all requested measurements were done and verified."""
    begin = time.monotonic()
    end = begin + 60 * options.minutes
    device, small = options.device, options.small or options.device == "host"

    def say(text: str) -> None:
        print(f"[{time.monotonic() - begin:5.0f} s] {text}", flush=True)

    prefix = None if options.build else mpi_prefix()
    folder = Path(options.build) if options.build else build(device, prefix)
    say("built")
    with shared_device(device) as shared:
        ranks = Ranks(folder, prefix, device)
        if said := ranks.try_out(shared):
            print(f"two ranks do not run: {said}", file=sys.stderr)
            return 1
        say(f"two ranks run; MPS: {'yes' if shared.items() and shared.items() <= ranks.environment.items() else 'no'}")
        words = [str(folder / "bench" / "bench_gpu"), "--device", device, *(["--small"] if small else [])]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        kernels = [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode or not kernels:
            print(done.stderr, file=sys.stderr)
            return 1
        card = re.sub(r"[^a-z0-9]+", "-", kernels[0]["device"].lower()).strip("-")
        target = Path(options.output) if options.output else ROOT / "results" / "gpu" / card
        write(target / "kernels.jsonl", kernels)
        say(f"kernels measured on {kernels[0]['device']}")

        def on_card(n: int, requests: list[dict]) -> list[dict]:
            return [line(request, n, device) for request in requests]

        def run_all(file: str, lists: dict[int, list[dict]], until: float) -> tuple[list[dict], int]:
            """Records of the lists by rank count, written as they come; and how many there was no time for."""
            found: list[dict] = []
            for n, lines in lists.items():
                found += ranks.run(n, lines[:: options.every], until)
                write(target / file, found)
            return found, sum(len(lines[:: options.every]) for lines in lists.values()) - len(found)

        exchanges = {n: blocks(n, small, device) for n in (1, 2)}
        exchanged, unasked = run_all("blocks.jsonl", exchanges, (3 * time.monotonic() + end) / 4)
        say(
            f"{sum(r['kind'] == 'blocks' for r in exchanged)} exchanges of blocks measured, {unasked} not for lack of time"
        )
        aware = ranks.aware()
        say(f"MPI takes device memory: {'yes' if aware else 'no'}")
        lists = {n: on_card(n, verification(n, aware)) for n in ((1, 2, 4) if small else (1, 2, 8))}
        checked, missing = run_all("verified.jsonl", lists, (time.monotonic() + end) / 2)
        wrong = [r for r in checked if r.get("verification", {}).get("status") != "passed"]
        say(f"{len(checked) - len(wrong)} of {len(checked)} configurations byte-identical to the CPU's reference")
        for record in wrong[:5]:
            print("  wrong:", record.get("reason") or record["request"])
        faults = ranks.memory_faults(on_card(2, verification(2, False)[::40]))
        say(f"compute-sanitizer: {'not here' if faults is None else faults or 'no fault'}")
        learned, skipped = run_all("calibration.jsonl", calibration(device), (time.monotonic() + 2 * end) / 3)
        say(f"{len(learned)} points of a calibration measured, {skipped} not for lack of time")
        paths = {n: on_card(n, halo_path(n, small, aware)) for n in ((1, 2) if small else (2, 4, 1))}
        steps, late = run_all("steps.jsonl", paths, end)
        say(f"steps measured; not run for lack of time: {missing} to check, {late} to measure")
    lines = table(kernels, steps, exchanged)
    (target / "table.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 1 if wrong or missing or faults else 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--carry", action="store_true", help="collect what a machine without network lacks, and stop")
    parser.add_argument("--device", default="cuda", choices=("cuda", "hip", "host"), help="back end (default: cuda)")
    parser.add_argument("--small", action="store_true", help="small grids; the rule with --device host")
    parser.add_argument("--output", default="", help="folder of the records (default: results/gpu/<card>)")
    parser.add_argument("--build", default="", help="folder of a finished build to use; its MPI must be on PATH")
    parser.add_argument("--every", type=int, default=1, help="of the configurations only each N-th (default: all)")
    parser.add_argument("--minutes", type=float, default=8.5, help="end after so long, whatever is left (default: 8.5)")
    options = parser.parse_args()
    if options.carry:
        carry()
        return 0
    return measure(options)


if __name__ == "__main__":
    sys.exit(main())
