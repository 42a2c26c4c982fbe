"""Runs a command under denet: `drive_denet.py DIRECTORY COMMAND...`, in the peers' venv."""

import json
import sys

import denet  # type: ignore[import-not-found,unused-ignore]

place, *job = sys.argv[1:]
code, monitor = denet.execute_with_monitoring(
    job,
    stdout_file="/dev/stdout",
    stderr_file="/dev/stderr",
    base_interval_ms=1000,
    max_interval_ms=1000,
    output_file=f"{place}/samples.jsonl",
    quiet=True,
)
with open(f"{place}/summary.json", "w", encoding="ascii") as file:
    json.dump({**json.loads(monitor.get_summary()), "exit_code": code}, file)
sys.exit(code if code >= 0 else 128 - code)
