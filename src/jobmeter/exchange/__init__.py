"""Import of runs that other tools recorded, and export of our own as tables."""
