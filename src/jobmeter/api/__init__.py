"""The Python API: run a command, measure a process or a piece of a program, and read the stored runs."""
