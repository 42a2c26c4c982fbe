"""Writes the JSON Schema of the run record, generated from its types, into the package."""

from __future__ import annotations

from jobmeter.record.schema import as_text, run_schema
from jobmeter.record.schema_files import path_of

if __name__ == "__main__":
    text = as_text(run_schema())
    with open(path_of("run"), "w", encoding="utf-8") as file:
        file.write(text)
