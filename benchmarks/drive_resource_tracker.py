"""Runs a command under resource-tracker: `drive_resource_tracker.py DIRECTORY COMMAND...`, in the peers' venv."""

import subprocess
import sys
import time

from resource_tracker import ProcessTracker  # type: ignore[import-not-found,unused-ignore]

place, *job = sys.argv[1:]
try:
    process = subprocess.Popen(job)
except OSError as error:
    print(error, file=sys.stderr)
    sys.exit(127)
# Returns when the job's first process has ended, which stays a zombie until `wait` below.
ProcessTracker(process.pid, start_time=time.time(), interval=1, output_file=f"{place}/samples.csv")
code = process.wait()
sys.exit(code if code >= 0 else 128 - code)
