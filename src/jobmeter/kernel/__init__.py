"""Reads the machine. Knows processes, cgroups and counters, and no measurements."""
