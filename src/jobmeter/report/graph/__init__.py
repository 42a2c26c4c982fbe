"""The graph of a workflow, drawn."""
