"""Fits: points to measure, and models fitted to Haloscope's measurements or to third-party tables of exchanges."""
