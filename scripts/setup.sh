#!/usr/bin/env bash
# Prepares all requirements of a build: a private .venv in the checkout with the build tools and the Python packages,
# and an MPI.
#   usage: scripts/setup.sh [test|long|site]     (run by the Makefile; safe to run again; `test` adds the needs of
#                                                 `make test`, `long` of `make check-long`, `site` of `make site`;
#                                                 with HALOSCOPE_STUDIES=OFF in the environment, without the studies)
# Compilers and headers must come from the system. As root on Debian, the script installs them by apt, which changes the
# system; without root, nothing outside the checkout changes, and the script names the missing packages. scripts/locked
# lists the packages from PyPI with versions and hashes of their files (scripts/lock.sh writes these lists).
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }

install() { # install NAME: install the wheels that scripts/locked/NAME.txt lists, no others
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-compile --no-deps --only-binary :all: --require-hashes \
    -r "scripts/locked/$1.txt"
}

install_once() { # install_once NAME TEXT: the same, with a text, where the list has changed since the last time
  local stamp
  stamp=.venv/.$1-$(sha256sum "scripts/locked/$1.txt" | cut -c1-16)
  if [[ ! -e $stamp ]]; then
    say "installing $2"
    install "$1"
    rm -f ".venv/.$1"-*
    touch "$stamp"
  fi
}

# -- 1. system packages -------------------------------------------------------------------------------------------
missing=()
need() { # need PACKAGE TEST...: remember PACKAGE when TEST fails
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
want() { # want PACKAGE TEST...: as root, install PACKAGE when TEST fails; without it a part of the project is not built or tested
  [[ $(id -u) != 0 ]] || need "$@"
}
header() { printf '#include <%s>\n' "$1" | "${CXX:-g++}" -E -x c++ - ; }
venv_works() { python3 -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))'; }

need g++ command -v "${CXX:-g++}"
need python3 command -v python3
need python3-venv venv_works
need libgtest-dev header gtest/gtest.h
need nlohmann-json3-dev header nlohmann/json.hpp
need libcli11-dev header CLI/CLI.hpp
want gfortran command -v gfortran # the module for Fortran
if [[ ${1:-} =~ ^(test|long)$ ]]; then
  want chromium command -v chromium # pages in a real browser
  want chromium-driver command -v chromedriver
fi
if [[ ${1:-} == long ]]; then
  need clang-19 command -v clang++-19
  need libomp-19-dev test -e /usr/lib/llvm-19/lib/libarcher.so
  need libclang-rt-19-dev test -e /usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.tsan-x86_64.a
  need hipcc command -v hipcc
  want buildah command -v buildah # images of containers
  want debootstrap command -v debootstrap
  want libhdf5-dev test -e /usr/include/hdf5/serial/hdf5.h
fi

if [[ ${1:-} == site ]]; then
  need doxygen command -v doxygen
fi

if ((${#missing[@]})); then
  if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    say "installing ${missing[*]}"
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  else
    say "missing: ${missing[*]}"
    say "install them with your package manager (Debian: sudo apt-get install ${missing[*]}), then run this again"
    exit 3
  fi
fi

# -- 2. private Python environment ---------------------------------------------------------------------------------
if [[ ! -x .venv/bin/python ]]; then
  say "creating .venv"
  python3 -m venv .venv
fi
stamp=.venv/.haloscope-$({ echo "${HALOSCOPE_STUDIES:-ON}"; cat pyproject.toml studies/pyproject.toml scripts/locked/tools.txt; } | sha256sum | cut -c1-16)
if [[ ! -e $stamp ]]; then
  say "installing the Python tools (first time only)"
  install tools
  .venv/bin/python -m pip install -q --no-compile --disable-pip-version-check --no-deps --no-build-isolation -e . \
    --config-settings wheel.cmake=false
  if [[ ${HALOSCOPE_STUDIES:-ON} == ON ]]; then
    .venv/bin/python -m pip install -q --no-compile --disable-pip-version-check --no-deps --no-build-isolation -e ./studies
  else
    .venv/bin/python -m pip uninstall -q -y haloscope-studies 2>/dev/null
  fi
  rm -f .venv/.haloscope-*
  touch "$stamp"
fi

# -- 3. JAX and Numba for `test`, `long` and `site`: a build needs neither, and they are large -----------------------
if [[ ${1:-} =~ ^(test|long|site)$ ]]; then
  install_once compiled "JAX and Numba"
fi

# -- 4. the builder of conda's packages for `long` -----------------------------------------------------------------
if [[ ${1:-} == long ]]; then
  install_once conda "rattler-build"
fi

# -- 5. MPI: the mpicxx on PATH, else MPICH from PyPI --------------------------------------------------------------
if ! command -v mpicxx >/dev/null && [[ ! -x .venv/bin/mpicxx ]]; then
  say "no mpicxx on PATH: installing MPICH from PyPI into .venv"
  install mpich
fi

# -- 6. nvcc for `long`: the one on PATH, else the compiler's wheels from PyPI --------------------------------------
if [[ ${1:-} == long ]] && ! command -v nvcc >/dev/null && [[ ! -x .venv/bin/nvcc ]]; then
  say "no nvcc on PATH: installing CUDA's compiler from PyPI into .venv"
  install nvcc
  cuda=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia/cu13
  ln -sfn lib "$cuda/lib64"  # the folder in which nvcc and CMake search for libraries
  ln -sfn libcudart.so.13 "$cuda/lib/libcudart.so"
  printf '#!/bin/sh\nexec "%s/bin/nvcc" "$@"\n' "$cuda" >.venv/bin/nvcc
  chmod +x .venv/bin/nvcc
fi

# -- 7. nvdisasm next to nvcc: tests count the instructions of compiled kernels --------------------------------------
if PATH="$PATH:.venv/bin" command -v nvcc >/dev/null && ! PATH="$PATH:.venv/bin" command -v nvdisasm >/dev/null; then
  say "no nvdisasm on PATH: installing it from PyPI into .venv"
  install nvdisasm
  ln -sfn "$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia/cu13/bin/nvdisasm" .venv/bin/nvdisasm
fi

# -- 8. generator of the site for `site` ------------------------------------------------------------------------------
if [[ ${1:-} == site ]]; then
  install_once site "the generator of the site"
fi
