"""Valen 2023: deep halos, exchange order and overlap of a 2D stencil on GPUs."""
