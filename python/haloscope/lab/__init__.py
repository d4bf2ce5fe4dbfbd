"""An emulated cluster on one machine: hosts that are namespaces, joined by a network of set latency and bandwidth."""
