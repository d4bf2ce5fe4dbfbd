# Completion of `haloscope` in fish.
_HALOSCOPE_COMPLETE=fish_source haloscope | source
