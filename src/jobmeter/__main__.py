"""`jobmeter`, and `python -m jobmeter`."""

import _signal  # type: ignore[import-not-found]  # `signal` itself takes long to import

# Until a command has its own handling, Ctrl-C ends the process silently: Python would print where an import was.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from jobmeter.cli.main import entry

if __name__ == "__main__":
    entry()
