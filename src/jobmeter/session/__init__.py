"""One run: launch + meter + journal. What the commands, the Python API and every engine call."""
