"""Making the plan of a spec: sweeps expanded, names, commands and dependencies resolved."""
