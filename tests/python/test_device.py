"""The back ends of real devices compile where their compilers are; no kernel spills registers. No card is needed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from haloscope.core import build

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "haloscope" / "device"
VENV = ROOT / ".venv" / "bin"
TOOLS = os.pathsep.join([os.environ["PATH"], str(VENV)])  # where set-up puts what the system does not have
CUDA_ARCHITECTURES = (pytest.param("sm_80", marks=pytest.mark.long), "sm_90")
HIP_ARCHITECTURE = "gfx90a"
# Of each variant, by forms and types: two of two forms and one of two more.
SWEEPS = {
    "NaiveSweep": 6,
    "SharedSweep": 6,
    "StreamSweep": 2 * 6,
    "FusedSweep": (8 + 4) * 2,
    "FaceSweep": 6,
    "CopyBlocks": 1,
    "PassBlocks": 24,
    "CombineBlocks": 1,
}


SKETCH = re.compile(r"HydroPassesELi33E")  # the summary's: 32 letters, whichever a cell falls into


def compiler(name: str, remedy: str) -> str:
    """Return the path of a device compiler; skips where it is not installed."""
    path = shutil.which(name, path=TOOLS)
    if path is None:
        pytest.skip(f"needs {name}: {remedy}, or run 'scripts/setup.sh long'")
    return path


def nvcc() -> str:
    """Return the path of nvcc."""
    return compiler("nvcc", "install the CUDA toolkit, 12 or newer")


def run(*words) -> str:
    """Run a compiler or CMake, which must succeed; everything it said."""
    done = subprocess.run(
        list(map(str, words)), cwd=ROOT, env={**os.environ, "PATH": TOOLS}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout + done.stderr


def variants(kernels: list[str]) -> Counter:
    """How many instances of each kernel template there are among mangled names."""
    found = [re.search("|".join(SWEEPS), kernel) for kernel in kernels]
    return Counter(match.group(0) for match in found if match)


@pytest.mark.ids("NP1")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("architecture", CUDA_ARCHITECTURES)
def test_cuda_kernels_compile_without_a_warning_or_a_spill(tmp_path, architecture):
    flags = [
        "-std=c++20",
        "-O3",
        "-fmad=false",
        "-Iinclude",
        "-Isrc",
        f"-I{build.library().parent / 'generated'}",
        "-Xptxas",
        "-v",
        "-Werror",
        "all-warnings",
    ]
    code = f"-gencode=arch={architecture.replace('sm', 'compute')},code={architecture}"
    said = run(nvcc(), *flags, code, "-c", SOURCES / "cuda.cu", "-o", tmp_path / "cuda.o")
    compiled = re.findall(
        r"Compiling entry function '(\w+)' for '\w+'\s.*?(\d+) bytes stack frame, "
        r"(\d+) bytes spill stores, (\d+) bytes spill loads\s.*?Used (\d+) registers",
        said,
        re.DOTALL,
    )
    assert variants([name for name, *_ in compiled]) == SWEEPS
    assert said.count("Compiling entry function") == len(compiled)
    kept = [kernel for kernel in compiled if any(map(int, kernel[1:4]))]
    assert [kernel for kernel in kept if not SKETCH.search(kernel[0])] == []
    assert all(int(frame) <= 256 and spilled == "0" for _, frame, spilled, *_ in kept)
    # Blocks of 512 threads fit the 65536 registers of a multiprocessor, those of passes have 128.
    assert max(int(kernel[4]) for kernel in compiled if "PassBlocks" not in kernel[0]) <= 128


@pytest.mark.long
@pytest.mark.timeout(600)
def test_hip_kernels_compile_without_a_warning_or_a_spill(tmp_path):
    flags = [
        "-std=c++20",
        "-O3",
        "-ffp-contract=off",
        "-Iinclude",
        "-Isrc",
        f"-I{build.library().parent / 'generated'}",
        "-Wall",
        "-Werror",
        "-Rpass-analysis=kernel-resource-usage",
    ]
    hipcc = compiler("hipcc", "install package hipcc (Debian)")
    said = run(hipcc, f"--offload-arch={HIP_ARCHITECTURE}", *flags, "-x", "hip", "-c", SOURCES / "hip.hip", "-o",
               tmp_path / "hip.o")  # fmt: skip
    compiled = re.findall(r"remark: Function Name: (\w+)", said)
    assert variants(compiled) == SWEEPS
    # Scalar registers may be spilled: to vector registers, not to memory. Threads of passes keep what they need of
    # neighbours in memory: this compiler does not see that it is of constant size.
    for what in ("ScratchSize [bytes/lane]", "VGPRs Spill"):
        numbers = re.findall(rf"remark:\s+{re.escape(what)}: (\d+)", said)
        assert len(numbers) == len(compiled), f"the compiler does not tell {what}"
        kept = {name: number for name, number in zip(compiled, numbers, strict=True) if number != "0"}
        assert [name for name in kept if "PassBlocks" not in name] == [], f"{what}: {kept}"


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_a_build_with_cuda_and_hip_runs_where_there_is_no_card(tmp_path):
    hipcc = compiler("hipcc", "install package hipcc (Debian)")
    options = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={VENV / 'ninja'}", f"-DCMAKE_CUDA_COMPILER={nvcc()}",
               f"-DHALOSCOPE_HIPCC={hipcc}"]  # fmt: skip
    parts = ["-DHALOSCOPE_RANK=OFF", "-DHALOSCOPE_BENCH=OFF", "-DHALOSCOPE_CUDA=ON", "-DHALOSCOPE_HIP=ON"]
    run(VENV / "cmake", "-S", ROOT, "-B", tmp_path, *options, *parts)
    run(VENV / "cmake", "--build", tmp_path, "--target", "haloscope", "test_device")
    defined = re.findall(r" T haloscope::device::(\w+)_backend\(\)", run("nm", "-C", tmp_path / "libhaloscope.a"))
    assert sorted(defined) == ["cuda", "hip", "host"], "each back end is defined once"
    run(tmp_path / "tests" / "cpp" / "test_device")
