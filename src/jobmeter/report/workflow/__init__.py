"""The report of a workflow: one page with its timeline, its graph, what its jobs requested and used, their curves."""
