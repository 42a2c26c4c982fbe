"""`python -m jobmeter`."""

from jobmeter.cli.main import entry

entry()
