"""The library call: the whole choice as one value, in Python and in C++."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import haloscope as package
from haloscope import bridge
from haloscope.advice import advise
from haloscope.bridge import build
from haloscope.errors import UnavailableError, UsageError
from haloscope.measure import launch
from haloscope.model import predict
from paths import ROOT
from programs import run
from toy import TOY, changed, kernel_row, make_uncertain

PROGRAM = """#include <cstdio>
#include <haloscope/haloscope.hpp>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    haloscope::Grid<2> grid(MPI_COMM_WORLD, {.cells = {64, 64}, .periodic = {true, true}});
    const auto sweep = [](const haloscope::SweepArgs& args) {
      const auto in = args.read<double, 2>(0);
      const auto out = args.write<double, 2>(0);
      for (auto j = args.region.lo[1]; j < args.region.hi[1]; ++j)
        for (auto i = args.region.lo[0]; i < args.region.hi[0]; ++i)
          out(i, j) = 0.25 * (in(i - 1, j) + in(i + 1, j) + in(i, j - 1) + in(i, j + 1));
    };
%s
    step.run(4);
    const haloscope::Choice& c = best.choice;
    std::printf("%%s, %%s, depth %%d\\n", to_string(c.strategy).c_str(), c.schedule->name.c_str(), c.depth);
  }
  MPI_Finalize();
}
"""
FEW = {"depths": (1,), "samples": 20}


def test_it_is_what_advise_puts_first_with_its_prediction(toy):
    found = package.best("laplace2d", 64, 4, toy, depths=(1, 2), samples=20)
    advised = advise.advise(
        bridge.Choice("laplace2d", cells=(64, 64), periodic=(True, True), ranks=4), toy, depths=(1, 2)
    )
    assert found.choice == advised.best.choice
    assert found.reason == advised.best.prediction.reason
    assert found.equals == tuple(c.choice for c in advised.equals[1:])
    assert found.wins is (len(advised.equals) == 1)
    assert found.time_s == predict.predict(found.choice, toy, samples=0).time_s
    assert bridge.illegal(found.choice) == ""
    assert found.halo == found.choice.depth
    assert found.profile == "toy"


def test_it_has_an_interval_where_the_profile_has(toy):
    assert package.best("laplace2d", 64, 4, toy, **FEW).interval is None
    uncertain = changed(toy, lambda data: make_uncertain(kernel_row(data), "per_cell_s", 0.1))
    found = package.best("laplace2d", 64, 4, uncertain, **FEW)
    assert found.interval[0] < found.time_s < found.interval[1]


def test_dimensions_stand_for_an_app_and_the_answer_says_so(toy):
    found = package.best(2, (64, 48), 4, toy, **FEW)
    assert found.choice.app == "laplace2d"
    assert any("assumed to be the sweep of laplace2d" in note for note in found.notes)
    assert not any("taken to be" in note for note in package.best("laplace2d", 64, 4, toy, **FEW).notes)
    with pytest.raises(UsageError, match="no app represents grids of 1 dimensions"):
        package.best(1, 64, 4, toy)


def test_seconds_per_cell_replace_the_kernel_of_the_profile(toy):
    with pytest.raises(UnavailableError, match=r"no cost of kernel 'laplace3d/star/f64'.*seconds_per_cell"):
        package.best(3, 32, 4, toy)
    found = package.best(3, 32, 4, toy, seconds_per_cell=1e-6, **FEW)
    assert found.time_s == pytest.approx(32**3 / 4 * 1e-6, rel=0.1)
    assert not any("cells per thread" in note or "active cores" in note for note in found.notes)
    both = {"depths": (1, 4), "samples": 0}
    slow, fast = (package.best("laplace2d", 128, 4, toy, seconds_per_cell=s, **both) for s in (1e-6, 1e-10))
    assert slow.choice.depth == 1 and fast.choice.depth == 4  # redundant cells are dear, or messages are
    bare = changed(toy, lambda data: data.pop("kernels"))
    assert package.best("laplace2d", 64, 4, bare, seconds_per_cell=1e-9, **FEW).time_s > 0
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="seconds_per_cell"):
            package.best("laplace2d", 64, 4, toy, seconds_per_cell=wrong)


def test_fused_sweeps_are_chosen_only_by_programs_that_have_them(toy):
    def add(data):
        row = {"from_cells": 0, "to_cells": None, "fixed_s": 0.0, "per_cell_s": 1e-12}
        data["fused"] = {"laplace2d/star/f64": {"2": {"1": [row], "4": [row]}}}

    fast = changed(toy, add)
    two = {"depths": (2,), "samples": 0}
    assert package.best("laplace2d", 64, 4, fast, fused=True, **two).choice.substeps == "blocked"
    for other in ({}, {"fused": True, "seconds_per_cell": 1e-9}):
        assert package.best("laplace2d", 64, 4, fast, **other, **two).choice.substeps != "blocked"


def test_without_shared_memory_no_strategy_reaches_into_neighbours_fields(toy):
    free, own = (package.best("laplace2d", 64, 4, toy, shared_memory=s, depths=(8,), samples=0) for s in (True, False))
    assert free.shared_memory
    assert not own.shared_memory
    assert not any(bridge.needs_shared_fields(c.strategy) for c in own.equals)
    assert own.time_s >= free.time_s


def test_the_depth_fits_the_halo(toy):
    fitting = package.best("laplace2d", 64, 4, toy, halo=2, samples=0)
    assert fitting.halo == 2  # without a limit it is 8
    assert all(c.depth <= 2 for c in fitting.equals)
    assert any("deeper exchanges were skipped" in note for note in fitting.notes)
    with pytest.raises(UsageError, match="no room for depth 4"):
        package.best("laplace2d", 64, 4, toy, halo=2, depths=(4, 8))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"app": "laplac2d"}, "did you mean laplace2d"),
        ({"cells": (64, 64, 64)}, "laplace2d has 2 dimensions"),
        ({"periodic": (True,)}, "laplace2d has 2 dimensions"),
        ({"ranks": 10000}, "ranks"),
        ({"process_grid": "3x2"}, "3x2"),
        ({"real": "f16"}, "unknown scalar type 'f16'"),
        ({"form": "stra"}, "unknown form of laplace2d 'stra'"),
        ({"depths": ()}, "depths"),
        ({"depths": (0, 1)}, "depths"),
        ({"profile": "hecto"}, "did you mean hector"),
        ({"profile": "nowhere.json"}, "cannot read the profile nowhere.json"),
    ],
)
def test_what_cannot_be_right_is_refused(wrong, message):
    arguments = {"app": "laplace2d", "cells": 64, "ranks": 4, "profile": TOY} | wrong
    with pytest.raises(UsageError, match=message):
        package.best(**arguments)


WRONG = {
    "app": (None, 2.0, [2], b"laplace2d", "laplace2d\0", "\udc80"),
    "cells": (None, "64x64", 64.0, 0, (-4, 4), 2**62, 2**70, {0: 64, 1: 64}, np.ones((2, 2), int)),
    "ranks": (None, "4", 4.0, 0, -4, 10**8, np.array([4])),
    "profile": (None, {}, b"toy.json", "toy\0.json"),
    "periodic": ("no", ("no", "no"), None, (2, 0), {0: True, 1: False}),
    "process_grid": (None, 4, (2.0, 2), (-2, -2), "2x2\0", {0: 2, 1: 2}),
    "threads": (None, "1", float("nan"), 0, 10**6),
    "real": (None, 64, "f\0"),
    "form": (None, 1),
    "nodes": (None, "2", -1, 2**40),
    "depths": (2, {1, 2}, "12", ("1",), (0,), (10**6,), np.array([], int), None),
    "seconds_per_cell": ("1e-9", b"1", [1e-9], 1j, np.nan, 0, 10**400),
    "fused": ("no", None, 2),
    "halo": ("2", 1.5, 2**40, (1, 1)),
    "shared_memory": ("no", None),
    "samples": (None, "20", -1, 2.0, 10**7),
    "here": (5, "cpu", {"cpu": 5}),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_argument_that_cannot_be_right_is_named(name):
    for value in WRONG[name]:
        arguments = {"app": "laplace2d", "cells": 64, "ranks": 4, "profile": TOY, **FEW} | {name: value}
        with pytest.raises(UsageError) as caught:
            package.best(**arguments)
        assert re.search(rf"(?<!--)\b{name}\b", str(caught.value)), caught.value


def test_every_argument_is_among_those_that_are_tried():
    assert list(WRONG) == list(inspect.signature(package.best).parameters)


def test_numbers_and_lists_of_numpy_are_as_good_as_those_of_python(toy):
    own = {
        "app": 2,
        "cells": (64, 48),
        "ranks": 4,
        "periodic": (True, False),
        "process_grid": "4x1",
        "threads": 1,
        "nodes": 2,
        "depths": (1, 2),
        "seconds_per_cell": 2.0**-30,
        "fused": True,
        "halo": 2,
        "shared_memory": False,
        "samples": 20,
    }
    theirs = {
        "app": np.int64(2),
        "cells": np.array([64, 48]),
        "ranks": np.int32(4),
        "periodic": np.array([True, False]),
        "process_grid": np.array([4, 1]),
        "threads": np.uint8(1),
        "nodes": np.int64(2),
        "depths": np.arange(1, 3),
        "seconds_per_cell": np.float32(2.0**-30),
        "fused": np.True_,
        "halo": np.int64(2),
        "shared_memory": np.False_,
        "samples": np.int16(20),
    }
    assert package.best(profile=toy, **theirs) == package.best(profile=toy, **own)


def test_one_number_or_flag_stands_for_all_dimensions(toy):
    for wraps in (True, False):
        one = package.best("laplace2d", np.int64(64), 4, toy, periodic=wraps, **FEW)
        assert one == package.best("laplace2d", (64, 64), 4, toy, periodic=[wraps, wraps], **FEW)
        assert one.choice.periodic == (wraps, wraps)


def test_a_profile_of_another_machine_is_said_to_be_one(toy):
    notes = package.best("laplace2d", 64, 4, toy, here={"cpu": "toy", "mpi_library": "MPICH"}, **FEW).notes
    assert [note for note in notes if "another" in note] == [
        "the profile 'toy' is of another MPI (none) than this program (MPICH)"
    ]


# ---- what C++ programs ask -------------------------------------------------------------------------------------------


def test_the_example_of_the_page_gives_all_ranks_what_python_gives(tmp_path, toy):
    (example,) = re.findall(r"```cpp\n(.*?)```", (ROOT / "docs" / "understand" / "why-slow.md").read_text(), re.DOTALL)
    (tmp_path / "example.cpp").write_text(PROGRAM % example)
    built = build.rank_program().parent
    folders = [f"-I{ROOT / 'include'}", f"-I{built / 'generated'}"]
    flags = ["-std=c++20", "-fopenmp", "-Wall", "-Wextra", "-Werror", *folders]
    libraries = [built / f"libhaloscope{part}.a" for part in ("", "_apps", "_model", "_core")]
    run("mpicxx", *flags, "example.cpp", *libraries, "-o", "example", cwd=tmp_path)
    shutil.copy(TOY, tmp_path / "machine.json")
    words = [*launch.launcher_words(launch.mpiexec(), 2, 1), tmp_path / "example"]
    lines = run(*words, cwd=tmp_path, timeout=100).splitlines()
    c = package.best(2, 64, 2, toy).choice
    assert lines == [f"{c.strategy}, {c.schedule}, depth {c.depth}"] * 2


def test_the_package_itself_imports_nothing_before_it_is_asked():
    code = "import sys, haloscope; assert not any(m.startswith('haloscope.') for m in sys.modules); haloscope.best"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="has no attribute 'bset'"):
        _ = package.bset
