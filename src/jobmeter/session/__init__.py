"""One run: a job, its measuring and its journal. What the commands, the Python API and every engine call."""
