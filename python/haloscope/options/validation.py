"""Options for comparing records with a profile's predictions, and for the report."""

from __future__ import annotations

from haloscope.options.kinds import FileName, option, options_of
from haloscope.options.machine import profile, samples
from haloscope.options.request import program

VALIDATED = options_of(
    profile(required=False),
    samples("everyday"),
    option(
        "--keep-intervals",
        is_flag=True,
        help="Store the errors of these measurements in the profile, as its 90 % intervals from now on.",
    ),
    option(
        "-o",
        "--output",
        "stem",
        type=FileName(stem=True),
        help="Write STEM.md, and a plot of predicted against measured times as STEM.svg and STEM.png.",
    ),
    program(help="Program with the app of the records, whose main() calls rank_main()."),
)
