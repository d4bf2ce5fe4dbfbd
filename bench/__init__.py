"""Performance figures: `python -m bench`."""
