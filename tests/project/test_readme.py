"""What the README shows is what happens: its example compiles and conserves what it averages."""

import re
import sys

from haloscope.bridge import build
from haloscope.measure import launch
from paths import ROOT
from programs import run

PROGRAM = """#include <cmath>
#include <cstdio>
#include <haloscope/haloscope.hpp>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
%s
    double sum = 0, moved = 0;  // averaging conserves the sum only if every halo is right
    for (auto j = 0; j < grid.cells()[1]; ++j)
      for (auto i = 0; i < grid.cells()[0]; ++i) {
        sum += u[0](i, j);
        if (i + j > 0) moved += u[0](i, j);
      }
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (grid.rank() == 0) std::printf("sum %%.12f moved %%d\\n", sum, moved > 0.1);
  }
  MPI_Finalize();
}
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_example_compiles_and_its_halos_are_right(tmp_path):
    (example,) = blocks("cpp")
    assert len(example.splitlines()) <= 12
    (tmp_path / "example.cpp").write_text(PROGRAM % example)
    built = build.rank_program().parent
    flags = ("-std=c++20", "-O1", "-fopenmp", "-Wall", "-Wextra", "-Werror")
    folders = (f"-I{ROOT / 'include'}", f"-I{built / 'generated'}")
    libraries = (built / "libhaloscope.a", built / "libhaloscope_core.a")
    run("mpicxx", *flags, *folders, tmp_path / "example.cpp", *libraries, "-o", tmp_path / "example")
    words = [*launch.launcher_words(launch.mpiexec(), 2, 1), tmp_path / "example"]
    assert run(*words, timeout=60).strip() == "sum 2.000000000000 moved 1"


def test_python_example_fills_halos(tmp_path):
    (example,) = blocks("python")
    assert len(example.splitlines()) <= 5
    program = tmp_path / "example.py"
    program.write_text(f"import haloscope\nfrom mpi4py import MPI\n\n{example}\nassert (u == 1).all()\n")
    words = [*launch.launcher_words(launch.mpiexec(), 2, 1), sys.executable, "-m", "mpi4py", program]
    run(*words, timeout=60)
