"""The back ends of real devices compile where their compilers are; no kernel spills registers, and those that must keep
up with the memory execute no more instructions a cell than it has time for. No card is needed.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

import cuda_code
from guest_cases import guest_cases
from paths import ROOT
from programs import TOOLS, ended

SOURCES = ROOT / "src" / "library" / "haloscope" / "device"
VENV = ROOT / ".venv" / "bin"
BUILD = Path(os.environ["HALOSCOPE_BUILD"])
CUDA_ARCHITECTURES = (pytest.param("sm_80", marks=pytest.mark.long), "sm_90")
HIP_ARCHITECTURE = "gfx90a"
# Of each variant, by forms and types: two of two forms and one of two more.
SWEEPS = {
    "NaiveSweep": 6,
    "SharedSweep": 2 * 6,
    "StreamSweep": 2 * 6,
    "WideSweep": 4,
    "FlatSweep": 2,
    "FusedSweep": (8 + 4) * 2,
    "FaceSweep": 6,
    "CopyBlocks": 1,
    "CombineBlocks": 1,
} | guest_cases("DEVICE_KERNELS")
# Most instructions a cell of an inner loop, and bytes of its widest load: a tenth above what nvcc 13 makes. 32 cells of
# a sweep at the full speed of an H100's memory leave time for 62 in f32, 124 in f64 (docs/machine/devices.md).
BARS = {
    "FlatSweep Laplace2d f32": (14, 16),
    "FlatSweep Laplace2d f64": (22, 16),
    "WideSweep Laplace3d f32": (14, 16),
    "WideSweep Laplace3d f64": (23, 16),
    "WideSweep Dense27 f64": (50, 16),
    "WideSweep Separable27 f64": (33, 16),
    "StreamSweep Laplace2d f32 0": (24.5, 4),
    "StreamSweep Laplace2d f64 0": (30.6, 8),
    "StreamSweep Laplace3d f32 0": (43.5, 4),
    "StreamSweep Laplace3d f64 0": (49, 8),
    "StreamSweep Dense27 f64 0": (93, 8),
    "StreamSweep Separable27 f64 0": (68, 8),
    "SharedSweep Laplace2d f32 2": (65, 0),
    "SharedSweep Laplace3d f32 2": (72, 0),
    "SharedSweep Dense27 f64 2": (99, 0),
    "FusedSweep Laplace2d f32 8": (128, 4),
    "FusedSweep Laplace3d f32 4": (124, 4),
    "CopyBlocks": (24.2, 16),
}


SKETCH = re.compile(r"HydroPassesELi33E")  # the summary's: 32 letters, whichever a cell falls into


def compiler(name: str, remedy: str) -> str:
    """Return the path of a device compiler; skips where it is not installed."""
    path = shutil.which(name, path=TOOLS)
    if path is None:
        pytest.skip(f"needs {name}: {remedy}, or run 'scripts/setup.sh long'")
    return path


def nvcc() -> str:
    """Return the path of nvcc; skips where it is not installed."""
    return compiler("nvcc", "install the CUDA toolkit, 12 or newer")


def run(*words) -> str:
    """Run a compiler or CMake, which must succeed; its whole output."""
    done = ended(*words, cwd=ROOT)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout + done.stderr


def variants(kernels: list[str]) -> Counter:
    """How many instances of each kernel template there are among mangled names."""
    found = [re.search("|".join(SWEEPS), kernel) for kernel in kernels]
    return Counter(match.group(0) for match in found if match)


@pytest.fixture(scope="module", params=CUDA_ARCHITECTURES)
def cuda(request) -> tuple[str, Path]:
    """Return what nvcc reported of all CUDA kernels, and the folder of their code, which the build has made."""
    nvcc()
    folder = BUILD / "cuda_code" / request.param
    run(VENV / "cmake", "--build", BUILD, "--target", f"cuda_code_{request.param}")
    reported = (folder / "cuda.txt").read_text()
    assert (folder / "cuda.o").exists(), reported[-4000:]
    return reported, folder


@pytest.mark.ids("NP1")
@pytest.mark.timeout(3600)
def test_cuda_kernels_compile_without_a_warning_or_a_spill(cuda):
    output, _ = cuda
    compiled = re.findall(
        r"Compiling entry function '(\w+)' for '\w+'\s.*?(\d+) bytes stack frame, "
        r"(\d+) bytes spill stores, (\d+) bytes spill loads\s.*?Used (\d+) registers",
        output,
        re.DOTALL,
    )
    assert variants([name for name, *_ in compiled]) == SWEEPS
    assert output.count("Compiling entry function") == len(compiled)
    kept = [kernel for kernel in compiled if any(map(int, kernel[1:4]))]
    assert [kernel for kernel in kept if not SKETCH.search(kernel[0])] == []
    assert all(int(frame) <= 256 and spilled == "0" for _, frame, spilled, *_ in kept)
    flat = {kernel[0]: int(kernel[4]) for kernel in compiled if "FlatSweep" in kernel[0]}
    assert len(flat) == 2 and max(flat.values()) <= 32, flat  # four blocks of 512 threads share a multiprocessor
    # Blocks of 512 threads fit the 65536 registers of a multiprocessor, those of passes have 128.
    assert max(int(kernel[4]) for kernel in compiled if "PassBlocks" not in kernel[0]) <= 128


@pytest.mark.timeout(3600)
def test_every_kernel_is_in_the_list_of_those_that_are_loaded_beforehand(cuda):
    output, folder = cuda
    launched = set(
        re.findall(r"Compiling entry function '_ZN9haloscope6device4cuda(?:8|16bounded_)run_bodyI(\w+)EEvT_'", output)
    )
    symbols = run("nm", folder / "cuda.o")
    listed = set(re.findall(r" _ZN9haloscope6device4cuda8KernelOfI(\w+)E6numberE$", symbols, re.MULTILINE))
    assert listed == launched != set()


def worse_than(bars: dict[str, tuple[float, int]], listing: str) -> list[str]:
    """What the kernels of a listing exceed of instructions a cell or fall short of in bytes a load."""
    found, worse = cuda_code.inner_loops(listing), []
    for name, (instructions, wide) in bars.items():
        if name not in found:
            worse.append(f"{name}: has no loop that stores")
            continue
        real = cuda_code.real_bytes(name)
        best = min(found[name], key=lambda loop: loop.per_cell(real))
        per_cell, widest = best.per_cell(real), max(best.loads, default=0)
        if per_cell > instructions or widest < wide or best.local:
            worse.append(
                f"{name}: {per_cell:.1f} instructions a cell of {instructions}, loads of {widest} bytes of {wide}, "
                f"{best.local} of local memory"
            )
    return worse


@pytest.mark.timeout(3600)
def test_inner_loops_of_cuda_kernels_execute_no_more_instructions_than_they_may(cuda):
    nvdisasm = compiler("nvdisasm", "install the CUDA toolkit, 12 or newer")
    assert worse_than(BARS, run(nvdisasm, "-c", next(cuda[1].glob("*.cubin")))) == []


def test_a_kernel_that_got_worse_is_told_from_one_that_did_not():
    loop = """\
.text._ZN9haloscope6device4cuda8run_bodyINS1_11StreamSweepINS1_9Laplace3dIfEELb0EEEEEvT_:
        /*0000*/                   S2R R0, SR_TID.X ;
.L_x_1:
        /*0010*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0020*/                   LDG.E.CONSTANT R8, desc[UR4][R2.64+0x10] ;
        /*0030*/              @!P0 STG.E.128 desc[UR4][R6.64], R4 ;
        /*0040*/               @P0 BRA `(.L_x_1) ;
        /*0050*/                   EXIT ;
"""
    name = "StreamSweep Laplace3d f32 0"
    (found,) = cuda_code.inner_loops(loop)[name]
    assert (found.instructions, found.loads, found.stores, found.first_loads) == (4, (16, 4), (16,), 2)
    assert worse_than({name: (1.0, 16)}, loop) == []
    assert "1.0 instructions a cell of 0.9" in worse_than({name: (0.9, 16)}, loop)[0]
    assert "loads of 4 bytes of 16" in worse_than({name: (1.0, 16)}, loop.replace("LDG.E.128", "LDG.E"))[0]
    spilled = loop.replace("@P0 BRA", "LDL R9, [R1] ;\n        /*0048*/  @P0 BRA")
    assert "1 of local memory" in worse_than({name: (2.0, 16)}, spilled)[0]
    assert "no loop that stores" in worse_than({name: (1.0, 16)}, loop.replace("STG", "ATOMG"))[0]


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_hip_kernels_compile_without_a_warning_or_a_spill(tmp_path):
    flags = ["-std=c++20", "-O3", "-ffp-contract=off", "-Wall", "-Werror", "-Rpass-analysis=kernel-resource-usage"]
    flags += [f"-I{folder}" for folder in ("include", "src/library", "src/lab", "studies")]
    hipcc = compiler("hipcc", "install package hipcc (Debian)")
    files = ("-x", "hip", "-c", BUILD / "hip_code" / "hip.hip", "-o", tmp_path / "hip.o")
    output = run(hipcc, f"--offload-arch={HIP_ARCHITECTURE}", *flags, *files)
    compiled = re.findall(r"remark: Function Name: (\w+)", output)
    assert variants(compiled) == SWEEPS
    # Scalar registers may be spilled: to vector registers, not to memory. Threads of passes keep what they need of
    # neighbours in memory: this compiler does not see that it is of constant size.
    for resource in ("ScratchSize [bytes/lane]", "VGPRs Spill"):
        numbers = re.findall(rf"remark:\s+{re.escape(resource)}: (\d+)", output)
        assert len(numbers) == len(compiled), f"the compiler does not tell {resource}"
        kept = {name: number for name, number in zip(compiled, numbers, strict=True) if number != "0"}
        assert [name for name in kept if "PassBlocks" not in name] == [], f"{resource}: {kept}"


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_a_build_with_cuda_and_hip_runs_where_there_is_no_card(tmp_path):
    hipcc = compiler("hipcc", "install package hipcc (Debian)")
    options = [
        "-G",
        "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={VENV / 'ninja'}",
        f"-DCMAKE_CUDA_COMPILER={nvcc()}",
        f"-DHALOSCOPE_HIPCC={hipcc}",
    ]
    parts = ["-DHALOSCOPE_RANK=OFF", "-DHALOSCOPE_BENCH=OFF", "-DHALOSCOPE_CUDA=ON", "-DHALOSCOPE_HIP=ON"]
    run(VENV / "cmake", "-S", ROOT, "-B", tmp_path, *options, *parts)
    run(VENV / "cmake", "--build", tmp_path, "--target", "haloscope", "test_device")
    defined = re.findall(r" T haloscope::device::(\w+)_backend\(\)", run("nm", "-C", tmp_path / "libhaloscope_core.a"))
    assert sorted(defined) == ["cuda", "hip", "host"], "each back end is defined once"
    run(tmp_path / "tests" / "test_device")
