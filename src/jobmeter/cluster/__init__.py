"""What a cluster reserves and uses: samplers on its nodes, the sources that read them, and the monitor."""

ENGINES = ("local", "ray")
"""The engines whose cluster can be watched."""
