"""The run record, schema `jobmeter.run/1`: its types, its schema, and how one is built and rendered."""
