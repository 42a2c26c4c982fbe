"""The entry point of `jobmeter` and of `python -m jobmeter`."""

# Until a command installs its own handler, Ctrl-C ends the process silently. Python would print a traceback.
try:
    import _signal  # type: ignore[import-not-found]  # `signal` itself takes long to import

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
except KeyboardInterrupt:
    raise SystemExit(130) from None

from jobmeter.cli.main import entry

if __name__ == "__main__":
    entry()
