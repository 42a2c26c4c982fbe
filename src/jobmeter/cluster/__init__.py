"""What a cluster reserves and uses: samplers on its nodes, what they are asked by, and the monitor of it all."""

ENGINES = ("local", "ray")
"""Those that have a cluster to watch."""
