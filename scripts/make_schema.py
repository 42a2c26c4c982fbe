"""Writes the JSON Schemas of the run record and of the cluster report, generated from their types, into the package."""

from __future__ import annotations

from jobmeter.record.schema import as_text, cluster_schema, run_schema
from jobmeter.record.schema_files import path_of

if __name__ == "__main__":
    for name, schema in (("run", run_schema()), ("cluster", cluster_schema())):
        with open(path_of(name), "w", encoding="utf-8") as file:
            file.write(as_text(schema))
