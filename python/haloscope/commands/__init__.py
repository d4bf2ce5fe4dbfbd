"""Subcommands of `haloscope`, one module each, each with a `command`."""
