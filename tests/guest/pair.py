"""Two jobs of one process, the first over long before the second; prints their records."""

from __future__ import annotations

import json

from jobmeter.api.jobs import start

LOAD = ["/usr/bin/python3", "/guest/load.py"]


def main() -> None:
    first = start([*LOAD, "idle", "/dev/null"], keep=False)
    second = start([*LOAD, "burst", "/dev/null"], keep=False)
    print(json.dumps([first.wait().record, second.wait().record]))


if __name__ == "__main__":
    main()
