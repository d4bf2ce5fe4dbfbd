"""Options of the candidates that advice compares, and of the spots of a map."""

from __future__ import annotations

from haloscope.options.kinds import ANY_PATH, option, options_of

# Fields of a choice that advice decides.
_OF_SCHEDULES = ("schedule", "substeps", "depth", "tiles", "sharing", "pack", "capture", "barrier")
_OF_PLACES = ("device_kernel", "device_block", "reorder", "process_grid")
DECIDED = ("strategy", "stage_strategies", *_OF_SCHEDULES, *_OF_PLACES)
DEPTHS = option(
    "--depth", "-d", default="1,2,4,8,16", metavar="LIST", help="Time steps per exchange to try. [1,2,4,8,16]"
)
TRIED = options_of(
    DEPTHS,
    option(
        "--reorder",
        default="none,nodes",
        metavar="LIST",
        group="nodes",
        help="Orders of ranks to try, where they differ. [none,nodes]",
    ),
    option(
        "--process-grid",
        default="",
        metavar="LIST",
        group="grid",
        help="Rules or process grids to try, where they differ: slabs,cubic,8x2. [the app's rule]",
    ),
)
SPOTS = options_of(
    option(
        "--blocks",
        default="16,32,64,128,256",
        metavar="LIST",
        help="Cells of a rank in each dimension. [16,32,64,128,256]",
    ),
    option(
        "--latency",
        default="2us,20us,200us,1ms",
        metavar="LIST",
        help="One-way latency of the network between ranks. [2us,20us,200us,1ms]",
    ),
    option(
        "--bandwidth",
        default="10Gbit",
        metavar="RATE",
        help="Bandwidth of each rank's link, each way; 0: no limit. [10Gbit]",
    ),
)
MEASURED = option(
    "--measured",
    multiple=True,
    type=ANY_PATH,
    metavar="FILE",
    help="Records of `haloscope run --lab`, for a second map of measurements; repeatable.",
)
