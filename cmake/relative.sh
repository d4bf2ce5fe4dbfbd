#!/bin/sh
# Runs a compiler that writes the names of its sources into its output: names below the current folder are passed
# relative to it.
for word; do
  shift
  set -- "$@" "${word#"$PWD"/}"
done
exec "$@"
