#!/bin/sh
# Runs a compiler that writes the names of its sources into what it makes: those below the current
# folder are given relative to it.
for word; do
  shift
  set -- "$@" "${word#"$PWD"/}"
done
exec "$@"
