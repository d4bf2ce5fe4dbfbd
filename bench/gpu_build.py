"""The programs of bench/gpu.py: built beforehand and carried along, or built on the machine with the device.

The module imports only the standard library, because nothing else exists on that machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from gpu_run import Deadline, Ended, Log, Trouble, run

ROOT = Path(__file__).resolve().parent.parent
CARRY = ROOT / "build" / "carry"
MPICH = ROOT / "scripts" / "locked" / "mpich.txt"
TOOLS = ROOT / "scripts" / "locked" / "tools.txt"
NEEDED = ("cffi", "pycparser", "mpi4py")  # seldom installed on machines with a GPU; CuPy or PyTorch must be there
CALIBRATION = "calibration.json"  # lines of requests by number of ranks
HEADERS = {"nlohmann_json": "nlohmann", "CLI11": "CLI"}  # CMake package: folder of headers
ARCHITECTURES = "80-real;90"  # machine code for both, and code that drivers of newer GPUs translate
# A carried program finds its MPI by a relative path. Libraries that may be older elsewhere are linked statically.
MOVABLE = [
    "-DHALOSCOPE_MPI_RUN_PATH=$ORIGIN/../mpi/lib",  # of haloscope-rank, and of bench_gpu:
    "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON",
    "-DCMAKE_INSTALL_RPATH=$ORIGIN/../mpi/lib",
    "-DCMAKE_EXE_LINKER_FLAGS=-static-libstdc++ -static-libgcc -Wl,--as-needed -s",
]
# The carried files in the build, by target.
CARRIED = {
    "bench_gpu": "bench/bench_gpu",
    "haloscope-rank": "haloscope-rank",
    "test_device": "tests/test_device",
    "haloscope_bridge": "libhaloscope_bridge.so",
    "haloscope_exchange": "libhaloscope_exchange.so",
}
MOST_MIB = 45  # next to a working tree, of 64 MiB in all
# Kernels for several GPUs are most of the archive, and some machines accept only small archives.
COMPRESSED = "--compress-mode=size"


@dataclass
class Programs:
    """The programs to run. rank: None where building it failed, or is still to be done in folder `unfinished`. mpiexec:
    of its MPI."""

    kernels: Path
    rank: Path | None
    mpiexec: str
    unfinished: Path | None = None
    tests: Path | None = None  # the test program of devices; None: not built
    library: Path | None = None  # of exchanges, for Python


# ---- carrying --------------------------------------------------------------------------------------------------------


def carry(device: str, architectures: str = ARCHITECTURES, folder: Path = CARRY, python: str = "") -> None:
    """Collect in a folder all dependencies that a machine with a device may lack: programs, tests, MPI, headers,
    packages of its Python (a version, as "3.12"; default: of this Python), points of a calibration. Raises Trouble
    where the archive is too large to carry."""
    folder.mkdir(parents=True, exist_ok=True)
    fetch_mpi(folder)
    fetch_packages(folder, python)
    for package, headers in HEADERS.items():
        shutil.copytree(f"/usr/include/{headers}", folder / "include" / headers, dirs_exist_ok=True)
        shutil.copytree(f"/usr/share/cmake/{package}", folder / "share" / "cmake" / package, dirs_exist_ok=True)
    (folder / CALIBRATION).write_text(json.dumps(calibration_lines("cuda")))
    carry_programs(device, architectures, folder)
    packed = packed_name(folder)
    with tarfile.open(packed, "w:xz") as file:
        file.add(folder, folder.name)
    total = packed.stat().st_size / 2**20
    print(f"{packed}: {total:.0f} MiB")
    if total > MOST_MIB:
        raise Trouble(f"{packed} has {total:.0f} MiB, too large for most machines: the limit is {MOST_MIB} MiB")


def packed_name(folder: Path = CARRY) -> Path:
    """Return the archive of the carried folder, next to it."""
    return folder.with_name(f"{folder.name}.tar.xz")


def unpack(folder: Path = CARRY) -> None:
    """Unpack the archive if the folder is missing."""
    if not folder.exists() and packed_name(folder).exists():
        shutil.unpack_archive(packed_name(folder), folder.parent)


def download(listed: Path, folder: Path, *options: str, into: str = "") -> None:
    """Download the wheels that a file lists with their hashes into a folder, and unpack them there, or in its subfolder
    `into`.
    """
    words = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        *options,
        "-d",
        str(folder),
        "-r",
        str(listed),
    ]
    subprocess.run(words, check=True)
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder / into)


def fetch_mpi(folder: Path) -> None:
    """Fetch MPICH from its wheel, without the files of the standard ABI and without aliases of the launcher."""
    prefix = folder / "mpi"
    if prefix.exists():
        return
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        download(MPICH, Path(scratch))
        (data,) = Path(scratch).glob("*.data/data")
        for unused in ("lib/libmpi_abi*", "bin/*_abi", "bin/mpirun", "bin/mpiexec.*"):
            for file in data.glob(unused):
                file.unlink()
        make_executable(data / "bin")
        data.rename(prefix)


def packages(folder: Path = CARRY, python: str = "") -> Path:
    """Return the folder of the packages that exchanges of arrays need, for a Python version (default: this one's)."""
    return folder / f"packages-{python or f'{sys.version_info.major}.{sys.version_info.minor}'}"


def fetch_packages(folder: Path, python: str) -> None:
    """Fetch the packages that exchanges of arrays need."""
    wanted = packages(folder, python)
    if wanted.exists():
        return
    version = wanted.name.partition("-")[2]
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        listed = Path(scratch) / "asked.txt"
        entries = re.split(r"\n(?=\S)", TOOLS.read_text())
        listed.write_text("\n".join(e for e in entries if e.partition("==")[0] in NEEDED) + "\n")
        platforms = [f"--platform=manylinux{tag}_x86_64" for tag in ("_2_28", "_2_17", "2014", "_2_5", "1")]
        download(
            listed, Path(scratch), f"--python-version={version}", "--implementation=cp", *platforms, into=wanted.name
        )
        (Path(scratch) / wanted.name).rename(wanted)


def carry_programs(device: str, architectures: str, folder: Path) -> None:
    """Build programs and libraries so that they run from any folder."""
    if device == "cuda" and not Path(nvcc()).exists():
        print("no nvcc here: the machine with the GPU has to build the programs itself")
        return
    built = ROOT / "build" / f"carry-{device}"
    configure = configuration(device, built, folder, architectures)
    configure += [*MOVABLE, "-DHALOSCOPE_TESTS=ON", *(compressed() if device == "cuda" else [])]
    for words in (configure, compile_words(built, *CARRIED)):
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL if words[1] != "--build" else None)
    (folder / device).mkdir(exist_ok=True)
    for file in CARRIED.values():
        shutil.copy2(built / file, folder / device)


def compressed() -> list[str]:
    """Return the option for small code, which nvcc supports from 12.8 on, as a list; [] without support."""
    help_text = subprocess.run([nvcc(), "--help"], capture_output=True, text=True, check=False).stdout
    return [f"-DCMAKE_CUDA_FLAGS={COMPRESSED}"] if COMPRESSED.partition("=")[0] in help_text else []


def calibration_lines(device: str) -> dict[str, list[dict]]:
    """Return the requests of a quick calibration of messages and of a device, by number of ranks."""
    from haloscope.fit import points

    found: dict[str, list[dict]] = {}
    for point in points.all_points(("network", "device"), 2, 2, points.QUICK, device):
        found.setdefault(str(point.ranks), []).append(point.line())
    return found


def calibration(device: str) -> dict[int, list[dict]]:
    """Return the carried lines, else lines of the package where it is installed; none without either."""
    kept = CARRY / CALIBRATION
    try:
        lines = json.loads(kept.read_text()) if kept.exists() else calibration_lines(device)
    except ImportError:
        lines = {}
    return {int(ranks): [on_device(point, device) for point in found] for ranks, found in lines.items()}


def on_device(point: dict, device: str) -> dict:
    """Return a line of a calibration for this back end; a line without a device stays unchanged."""
    if "device" not in point["request"]:
        return point
    name = re.sub(r"\bdevice=\w+", f"device={device}", point["id"])
    return point | {"id": name, "request": point["request"] | {"device": device}}


# ---- finding or building ---------------------------------------------------------------------------------------------


def find_programs(folder: str, device: str, log: Log, deadline: Deadline, mark: Path) -> Programs:
    """Return the programs of a finished build, else the carried ones if they run here, else newly built ones.

    Raises Trouble where the device or its driver does not work, or the build fails.
    """
    if folder:
        programs = Programs(
            Path(folder) / "bench" / "bench_gpu",
            Path(folder) / "haloscope-rank",
            shutil.which("mpiexec") or mpiexec(CARRY),
            **tests_in(Path(folder), "tests"),
        )
        check_device(ask_device(programs.kernels, device, mark, deadline), deadline)
        return programs
    unpack()
    if carried := carried_programs(device):
        answer = ask_device(carried.kernels, device, mark, deadline)
        if answer.code == 0:
            log.say("the carried programs run here")
            return carried
        if answer.code == 3 and not is_too_old(answer.output):
            check_device(answer, deadline)
        log.say(f"the carried programs do not run here, building: {answer.reason()}")
    built = build(device, log, deadline, mark)
    check_device(ask_device(built.kernels, device, mark, deadline), deadline)
    return built


def carried_programs(device: str, folder: Path = CARRY) -> Programs | None:
    """Return the programs in the folder, or None. Sets their execute permissions, which a copy may have lost."""
    kernels, rank = (folder / device / name for name in ("bench_gpu", "haloscope-rank"))
    if not (kernels.exists() and rank.exists()):
        return None
    make_executable(folder / device)
    return Programs(kernels, rank, mpiexec(folder), **tests_in(folder / device, ""))


def tests_in(folder: Path, inside: str) -> dict[str, Path]:
    """Return the tests and the library for Python in a folder, as far as they exist."""
    found = {"tests": folder / inside / "test_device", "library": folder / "libhaloscope_exchange.so"}
    return {name: file for name, file in found.items() if file.exists()}


def ask_device(kernels: Path, device: str, mark: Path, deadline: Deadline) -> Ended:
    """Run the program for a description of the device; its first start may take some seconds."""
    try:
        return run([kernels, "--device", device, "--info"], 30, {}, mark, until=deadline)
    except OSError as error:
        return Ended(127, str(error))


def check_device(answer: Ended, deadline: Deadline) -> None:
    """Raise Trouble unless a program got an answer from the device, or its time was up."""
    if answer.code != 0 and not deadline.has_cut(answer):
        raise Trouble(f"the device does not work: {answer.reason()}")


def is_too_old(output: str) -> bool:
    """Return whether the driver supports only an older CUDA than that of the programs: a build by the nvcc here may
    work.
    """
    return "insufficient" in output and bool(shutil.which("nvidia-smi")) and Path(nvcc()).exists()


def build(device: str, log: Log, deadline: Deadline, mark: Path) -> Programs:
    """Configure, and build the kernels: they are measured before the rank program is needed."""
    folder = ROOT / "build" / f"gpu-{device}"
    steps = {
        "configuring": configuration(device, folder, CARRY, architecture()),
        "building the kernels": compile_words(folder, "bench_gpu"),
    }
    for name, words in steps.items():
        if not run_step(name, words, log, deadline, mark):
            raise Trouble(f"{name} failed, see {log.path}")
    return Programs(folder / "bench" / "bench_gpu", None, mpiexec(CARRY), unfinished=folder)


def finish_build(programs: Programs, log: Log, deadline: Deadline, mark: Path) -> None:
    """Build the rank program if that is still to be done; `programs.rank` stays None where the build fails."""
    folder, programs.unfinished = programs.unfinished, None
    if folder is None:
        return
    if run_step("building the rank program", compile_words(folder, "haloscope-rank"), log, deadline, mark):
        programs.rank = folder / "haloscope-rank"
    else:
        log.say(f"the rank program is not built, see {log.path}; only kernels can be measured")


def run_step(name: str, words: list[str], log: Log, deadline: Deadline, mark: Path) -> bool:
    """Run a step of a build; return whether it succeeded. The output goes to the log; its end is printed on failure."""
    log.say(name)
    try:
        done = run(words, deadline.left(), {}, mark)
    except OSError as error:
        done = Ended(127, str(error))
    log.keep(done.output)
    if done.code != 0:
        log.show_end(done.output)
    return done.code == 0


def configuration(device: str, folder: Path, carried: Path, architectures: str) -> list[str]:
    """Return the command that configures a build, with carried MPI and headers if they exist."""
    options = [f"-DHALOSCOPE_{device.upper()}=ON"] if device != "host" else []
    if device == "cuda":
        options += [f"-DCMAKE_CUDA_ARCHITECTURES={architectures}", f"-DCMAKE_CUDA_COMPILER={nvcc()}"]
    if (carried / "mpi").exists():
        make_executable(carried / "mpi" / "bin")
        options += [f"-DMPI_CXX_COMPILER={carried / 'mpi' / 'bin' / 'mpicxx'}"]
    if ninja := find_tool("ninja"):
        options += ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    return [
        find_tool("cmake") or "cmake",
        "-S",
        str(ROOT),
        "-B",
        str(folder),
        f"-DCMAKE_PREFIX_PATH={carried}",
        "-DCMAKE_BUILD_TYPE=Release",
        "-DHALOSCOPE_TESTS=OFF",
        *options,
    ]


def compile_words(folder: Path, *targets: str) -> list[str]:
    """Return the command that builds targets on all cores."""
    return [
        find_tool("cmake") or "cmake",
        "--build",
        str(folder),
        "-j",
        str(len(os.sched_getaffinity(0))),
        "--target",
        *targets,
    ]


def find_tool(name: str) -> str | None:
    """Return a tool, preferably next to this Python: CUDA 13 needs a newer CMake than some systems have."""
    return shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


def mpiexec(carried: Path) -> str:
    """Return the launcher: the carried one if it exists, else from PATH."""
    beside = carried / "mpi" / "bin"
    if not beside.exists():
        return "mpiexec"
    make_executable(beside)
    return str(beside / "mpiexec")


def mpi_library(carried: Path = CARRY) -> Path:
    """Return the library of the carried MPI."""
    return carried / "mpi" / "lib" / "libmpi.so.12"


def make_executable(folder: Path) -> None:
    """Make all files in a folder executable."""
    for program in folder.iterdir():
        program.chmod(0o755)


def nvcc() -> str:
    """Return the CUDA compiler: from PATH, or in CUDA's default folder."""
    return shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"


def architecture() -> str:
    """Return the compute capability of the first device, without a dot; 90 where nvidia-smi does not report it."""
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        return (
            subprocess.run(query, check=True, capture_output=True, text=True, timeout=20)
            .stdout.split()[0]
            .replace(".", "")
        )
    except (OSError, subprocess.SubprocessError, IndexError):
        return "90"
