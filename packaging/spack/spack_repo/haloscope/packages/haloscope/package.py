"""Haloscope for Spack; for its use see docs/use/install.md."""

from pathlib import Path

from spack.package import conflicts, depends_on, extends, license, run_after, variant, version, working_dir
from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.python import PythonPipBuilder


class Haloscope(CMakePackage, CudaPackage):
    """Halo exchanges of structured-grid codes: all variants, measured, predicted and as a library call."""

    git = Path(__file__).resolve().parents[6].as_uri()  # the checkout that this recipe is part of

    license("Apache-2.0")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("fortran", default=True, description="Module haloscope for Fortran")
    variant("mpi_abi", default=True, description="Also libraries for the standard ABI of MPI 5.0, if the MPI has it")
    variant("openmp", default=True, description="Threads by OpenMP")
    variant("python", default=True, description="Command line haloscope and halo exchange in Python")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.25:", type="build")
    depends_on("mpi")
    depends_on("nlohmann-json", type="build")
    depends_on("cli11", type="build")
    depends_on("cuda@12:", when="+cuda")
    conflicts("%gcc@:11", msg="Haloscope needs the C++20 support of GCC 12")

    extends("python", when="+python")
    depends_on("python@3.11:", type=("build", "run"), when="+python")
    depends_on("py-pip@22.1:", type="build", when="+python")
    depends_on("py-scikit-build-core@1.1:", type="build", when="+python")
    depends_on("py-click@8.1:", type="run", when="+python")
    depends_on("py-rich@13:", type="run", when="+python")
    depends_on("py-tabulate@0.9:", type="run", when="+python")
    depends_on("py-numpy@1.26:", type="run", when="+python")
    depends_on("py-scipy@1.11:", type="run", when="+python")
    depends_on("py-matplotlib@3.8:", type="run", when="+python")
    depends_on("py-jsonschema@4.20:", type="run", when="+python")
    depends_on("py-psutil@5.9:", type="run", when="+python")
    depends_on("py-cffi@1.16:", type="run", when="+python")
    depends_on("py-jinja2@3.1:", type="run", when="+python")
    depends_on("py-plotly@6:", type="run", when="+python")
    depends_on("py-mpi4py@4:", type="run", when="+python")

    def cmake_args(self):
        """Return the CMake options that follow from the variants."""
        args = [
            self.define("HALOSCOPE_TESTS", False),
            self.define("HALOSCOPE_BENCH", False),
            self.define("HALOSCOPE_RANK", True),
            self.define_from_variant("HALOSCOPE_FORTRAN", "fortran"),
            self.define_from_variant("HALOSCOPE_MPI_ABI", "mpi_abi"),
            self.define_from_variant("HALOSCOPE_OPENMP", "openmp"),
            self.define_from_variant("HALOSCOPE_CUDA", "cuda"),
        ]
        if self.spec.satisfies("+cuda") and not self.spec.satisfies("cuda_arch=none"):
            args.append(self.define_from_variant("CMAKE_CUDA_ARCHITECTURES", "cuda_arch"))
        return args

    @run_after("install", when="+python")
    def install_python(self):
        """Install the Python package without another build: it finds the libraries in the prefix that contains it."""
        pip = self.spec["python"].command
        pip.add_default_arg("-m", "pip")
        with working_dir(self.stage.source_path):
            pip(*PythonPipBuilder.std_args(self), f"--prefix={self.prefix}", "--config-settings=wheel.cmake=false", ".")
