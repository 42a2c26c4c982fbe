"""jobmeter tells what a job really used, and what to ask for next time."""

__version__ = "0.1.0"
