"""Measures one run: its job, the readings and the journal. The commands, the Python API and every engine use it."""
