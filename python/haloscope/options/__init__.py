"""Options of commands, by theme."""
