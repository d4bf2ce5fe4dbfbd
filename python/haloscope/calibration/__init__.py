"""From measured points of a machine to the laws of its profile."""
