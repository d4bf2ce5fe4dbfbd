"""Vanecek 2020: blocks of a GPU that tell the CPU when to send."""
