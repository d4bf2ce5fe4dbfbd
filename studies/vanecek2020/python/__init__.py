"""Vanecek 2020: blocks of a GPU that signal the CPU to send."""
