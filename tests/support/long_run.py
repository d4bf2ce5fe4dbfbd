"""Whether everything is to be tried instead of a sample, as `make check-long` does."""

import os

LONG = os.environ.get("HALOSCOPE_LONG", "0") not in ("", "0")  # as world.hpp has it
