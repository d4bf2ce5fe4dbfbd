#!/usr/bin/env bash
# Records `haloscope demo` in a terminal as an animated SVG, docs/screenshots/demo.svg. Pauses are cut to half a second.
#   usage: scripts/record_demo.sh     (after `make build`, on a quiet machine; termtosvg comes from PyPI into build/)
set -euo pipefail
cd "$(dirname "$0")/.."
recorder=build/recorder
[[ -x $recorder/bin/termtosvg ]] || python3 -m venv $recorder
$recorder/bin/pip install -q termtosvg==1.1.0
PATH=$PWD/.venv/bin:$PATH HALOSCOPE_BUILD=$PWD/build/release $recorder/bin/termtosvg docs/screenshots/demo.svg \
  -g 118x50 -M 500 -D 8000 -t window_frame -c "haloscope demo --output $recorder/demo"
