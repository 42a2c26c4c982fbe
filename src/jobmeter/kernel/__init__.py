"""Reads the machine: processes, cgroups and counters. Knows nothing of measurements."""
