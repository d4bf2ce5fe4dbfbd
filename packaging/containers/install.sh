#!/bin/sh
# Installs Haloscope from its checkout into a container of Debian 12, as root, on Debian's MPICH: the libraries for C,
# C++ and Fortran into /usr/local, the commands and the Python package into /opt/haloscope.
#   usage: packaging/containers/install.sh     (run by Dockerfile and haloscope.def)
set -eu
cd "$(dirname "$0")/../.."
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends ca-certificates cmake g++ gfortran git libcli11-dev libmpich-dev make \
  mpich ninja-build nlohmann-json3-dev pkg-config python3-dev python3-venv
rm -rf /var/lib/apt/lists/*
cmake --workflow --preset library
cmake --install build/library --prefix /usr/local
ldconfig
python3 -m venv /opt/haloscope
# mpi4py is compiled: its wheels look for a library of another name than Debian's.
/opt/haloscope/bin/pip install --no-cache-dir --no-binary mpi4py '.[exchange]'
ln -s /opt/haloscope/bin/haloscope /usr/local/bin/haloscope
